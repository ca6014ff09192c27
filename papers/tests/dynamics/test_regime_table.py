"""Regime tables against the report's printed cells."""

import numpy as np
import pytest

from ontogeny.dynamics import compare_regimes, regime_table
from ontogeny.errors import ArgumentError

# Bernas 2025, Table 2: early mean, SD, late mean, SD of the eleven layers.
SYNTACTIC = np.array(
    [
        (0.597, 0.145, 0.440, 0.115),
        (0.514, 0.077, 0.594, 0.184),
        (0.543, 0.146, 0.480, 0.150),
        (0.385, 0.180, 0.341, 0.237),
        (0.483, 0.176, 0.506, 0.264),
        (0.342, 0.116, 0.574, 0.250),
        (0.606, 0.156, 0.484, 0.221),
        (0.541, 0.087, 0.337, 0.203),
        (0.501, 0.168, 0.725, 0.162),
        (0.512, 0.230, 0.619, 0.247),
        (0.593, 0.172, 0.657, 0.275),
    ]
)
SEMANTIC = np.array(
    [
        (0.571, 0.137, 0.581, 0.109),
        (0.535, 0.186, 0.635, 0.179),
        (0.329, 0.128, 0.339, 0.191),
        (0.423, 0.183, 0.577, 0.294),
        (0.441, 0.235, 0.367, 0.201),
        (0.308, 0.126, 0.528, 0.270),
        (0.650, 0.205, 0.277, 0.232),
        (0.502, 0.175, 0.541, 0.248),
        (0.663, 0.173, 0.572, 0.291),
        (0.684, 0.162, 0.491, 0.284),
        (0.606, 0.277, 0.678, 0.190),
    ]
)


@pytest.mark.parametrize(
    ("cells", "plain", "aware", "improving"),
    [(SYNTACTIC, 0.140, 0.118, 6), (SEMANTIC, -0.126, -0.289, 7)],
)
def test_the_reports_cells_give_its_aggregates(cells, plain, aware, improving):
    table = compare_regimes(*cells.T)
    assert round(float(table.sum_difference), 3) == plain
    assert round(float(table.sigma_aware_sum), 3) == aware
    assert int(table.improving) == improving


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
