"""Rates at which labels that mean nothing are called significant, where texts are not independent.

The rates of the guide to error rates come from the same functions with more repeats
(`python -m helpers.document_effects 400` in `tests`).
"""

import numpy as np
import pytest

from helpers.document_effects import against_random, labels_at_random

REPEATS = 60


@pytest.mark.parametrize("sizes", [(10, 10), (4, 16)])
@pytest.mark.parametrize("share", [0.2, 0.4])
def test_labels_of_documents_are_significant_at_most_at_the_level(share, sizes):
    """Share: of the variance that documents make, the intraclass correlation."""
    found = [labels_at_random(seed, share, sizes) for seed in range(REPEATS)]
    assert np.mean(np.array(found) <= 0.05) <= 0.13  # 0.05; above with probability 1 %


def test_without_documents_the_same_labels_are_significant_far_too_often():
    found = [labels_at_random(seed, 0.4, (10, 10), grouped=False) for seed in range(20)]
    assert np.mean(np.array(found) <= 0.05) > 0.5


def test_random_labels_of_texts_repeated_five_times_keep_the_level():
    found = [
        labels_at_random(seed, 1.0, (5, 5), documents=40) for seed in range(REPEATS)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.13
    leaking = [labels_at_random(s, 1.0, (5, 5), 40, grouped=False) for s in range(10)]
    assert np.mean(np.array(leaking) <= 0.05) > 0.5


def test_labels_that_vary_within_documents_keep_the_level():
    found = [
        labels_at_random(seed, 0.4, (10, 10), constant=False) for seed in range(REPEATS)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.13


def test_a_concept_of_documents_like_the_others_keeps_the_level():
    found = [against_random(seed) for seed in range(100)]
    assert np.mean(np.array(found) <= 0.05) <= 0.12
    mixed = [against_random(seed, grouped=False) for seed in range(100)]
    assert np.mean(np.array(mixed) <= 0.05) > np.mean(np.array(found) <= 0.05)


def test_a_concept_of_documents_that_differ_is_found():
    found = [against_random(seed, effect=4.0) for seed in range(30)]
    assert np.mean(np.array(found) <= 0.05) > 0.6
    labelled = [labels_at_random(seed, 0.2, (10, 10), effect=2.0) for seed in range(20)]
    assert np.mean(np.array(labelled) <= 0.05) > 0.8
