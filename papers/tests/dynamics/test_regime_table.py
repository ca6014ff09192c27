"""Regime tables: their windows, and what they refuse; the printed cells are judged by a recipe."""

import numpy as np
import pytest

from ontogeny.dynamics import compare_regimes, regime_table
from ontogeny.errors import ArgumentError


def test_windows_pick_their_steps():
    rng = np.random.default_rng(0)
    steps = np.arange(0, 480_001, 10_000)
    scores = rng.uniform(size=(3, len(steps)))
    table = regime_table(scores, steps, layers=["a", "b", "c"])
    early = scores[:, 2:11]
    np.testing.assert_allclose(table.early_mean, early.mean(1))
    np.testing.assert_allclose(table.early_sd, early.std(1, ddof=1))
    np.testing.assert_allclose(table.late_mean, scores[:, 38:47].mean(1))
    np.testing.assert_allclose(table.overall_sd, scores.std(1, ddof=1))
    assert (
        table.early_steps.values.tolist() == table.late_steps.values.tolist() == [9] * 3
    )
    scores[1, 3] = np.nan
    assert regime_table(scores, steps).early_steps.values.tolist() == [9, 8, 9]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: regime_table(np.ones((2, 5)), np.arange(4)),
            "one entry of steps each",
        ),
        (
            lambda: regime_table(np.ones((2, 5)), np.arange(5)),
            r"early=\(20000, 100000\) holds 0",
        ),
        (lambda: compare_regimes([1], [0.1], [1, 2], [0.1]), "one per layer"),
        (
            lambda: compare_regimes([1], [-0.1], [1], [0.1]),
            "early_sd must not be negative",
        ),
        (lambda: compare_regimes([1], [0], [2], [0]), "the change of 0 has no scale"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
