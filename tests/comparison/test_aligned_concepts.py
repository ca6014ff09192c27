"""Concepts over runs with other tokenizers: the same places of the same texts, or refused."""

from dataclasses import replace

import numpy as np
import pytest

import ontogeny as og
from helpers.word_tables import SHARED, WORDS, models_of
from ontogeny.comparison.concepts.aligned import aligned_tokens, rows_of
from ontogeny.comparison.concepts.shared import concepts_of_runs
from ontogeny.errors import ArgumentError
from ontogeny.study.progress import chosen_progress


def cut(pieces):
    """Return inputs of words of four letters, each cut into so many pieces of its own."""
    rng = np.random.default_rng(0)
    share = np.where(np.arange(WORDS) < 2 * SHARED, 1.0, 3.0)
    words = rng.choice(WORDS, (60, 20), p=share / share.sum())
    texts = tuple(" ".join(f"w{word:03d}" for word in row) for row in words)
    ends = 4 - 2 * np.arange(pieces)[::-1]  # the last piece ends where the word does
    ids = (words[:, :, None] + WORDS * np.arange(pieces)[::-1]).reshape(len(words), -1)
    stop = (5 * np.arange(words.shape[1])[:, None] + ends).ravel()
    start = np.concatenate([[0], stop[:-1]])
    spans = np.tile(np.stack([start, stop], axis=-1), (len(words), 1, 1))
    mask = np.ones(ids.shape, bool)
    return og.Inputs(
        ids=ids,
        mask=mask,
        special=~mask,
        spans=spans,
        texts=texts,
        vocab_size=pieces * WORDS,
    )


def test_word_classes_are_shared_by_runs_with_other_tokens(tmp_path):
    concepts = og.observables.JointConcepts(
        "layer", n_concepts=12, n_active=1, examples=1
    )
    studies = {}
    for pieces in (1, 2):
        run = og.Trajectory.from_models(models_of(pieces - 1, pieces))
        made = og.Study(run, cut(pieces), [concepts], device="cpu", noise=0)
        (tmp_path / str(pieces)).mkdir()
        studies[f"{pieces} a word"] = (made, tmp_path / str(pieces))
    node = concepts_of_runs(studies, chosen_progress(False)).isel(layer=0)
    assert int(node.in_all) == SHARED and int(node.by_chance) == 0
    words = "end at the same characters of 60 of 60 texts are compared, 1,200 places"
    assert words in str(node.attrs["statements"])


def test_a_place_is_where_tokens_of_both_end():
    one, two = cut(1), cut(2)
    samples, words = aligned_tokens([one, two], ["a", "b"], 500, 0)
    assert len(samples[0]) == len(samples[1]) == 500 and "1,200 places" in words
    ends = [
        inputs.spans[sample.text, sample.position, 1]
        for inputs, sample in zip((one, two), samples, strict=True)
    ]
    np.testing.assert_array_equal(*ends)
    whole = two.sample("all")
    rows = rows_of(two, samples[1])
    np.testing.assert_array_equal(whole.position[rows], samples[1].position)


def test_texts_that_cannot_be_aligned_are_refused_with_the_reason():
    one = cut(1)
    ids = replace(one, spans=None)
    with pytest.raises(ArgumentError, match="those of 'b' are not known"):
        aligned_tokens([one, ids], ["a", "b"])
    moved = replace(one, spans=np.maximum(one.spans - 1, 0))
    with pytest.raises(
        ArgumentError, match="of 60 texts only 0 have tokens of 'a' and 'b'"
    ):
        aligned_tokens([one, moved], ["a", "b"])
    few = one.subset(range(20))
    with pytest.raises(ArgumentError, match="of 60 texts only 20"):
        aligned_tokens([one, few], ["a", "b"])
