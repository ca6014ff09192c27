"""A count is sure beside that of controls at the stated rate."""

import math

import numpy as np
import pytest

from ontogeny.claims import Certainty, Reason
from ontogeny.claims.counts import sureness_of_counts


def is_sure(count, of_controls):
    [found] = sureness_of_counts([count], [of_controls])
    return found["certainty"] is Certainty.SURE


@pytest.mark.parametrize("rate", [2, 8, 30])
def test_counts_of_mere_motion_are_sure_at_the_stated_rate(rate):
    pairs = np.random.default_rng(0).poisson(rate, (4000, 2)).tolist()
    assert np.mean([is_sure(*pair) for pair in pairs if pair[0]]) <= 0.05


def test_three_times_as_many_are_sure():
    pairs = np.random.default_rng(0).poisson([30, 10], (400, 2)).tolist()
    assert np.mean([is_sure(*pair) for pair in pairs]) > 0.8


def test_many_counts_are_corrected_together():
    pairs = np.random.default_rng(0).poisson(20, (500, 4, 2)).astype(float)
    pages = [sureness_of_counts(*page.T.tolist()) for page in pairs]
    assert {each["corrected_over"] for page in pages for each in page} == {4}
    sure = [any(c["certainty"] is Certainty.SURE for c in page) for page in pages]
    assert np.mean(sure) <= 0.05


def test_counts_without_controls_are_not_tested_and_not_corrected_over():
    alone, tested = sureness_of_counts([9.0, 9.0], [math.nan, 0.0])
    assert alone == {"certainty": Certainty.NOT_TESTED, "reason": Reason.NO_CONTROLS}
    assert tested["certainty"] is Certainty.SURE and tested["corrected_over"] == 1
