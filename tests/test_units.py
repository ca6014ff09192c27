"""Units of noise: shuffles, bootstraps and errors."""

import numpy as np
import pytest

from ontogeny.errors import ArgumentError
from ontogeny.units import Units


def test_units_with_one_label_exchange_their_labels_whatever_their_sizes():
    groups = np.array([0, 0, 0, 1, 2, 2, 3])
    labels = np.array([1, 1, 1, 0, 0, 0, 1])
    draws = [
        labels[r] for r in Units(groups).shuffles(labels, np.random.default_rng(0), 400)
    ]
    for draw in draws:
        assert Units(groups).constant(draw)
        assert sorted(draw[[0, 3, 4, 6]]) == [0, 0, 1, 1]
    assert len({tuple(draw) for draw in draws}) == 6  # 4 choose 2


def test_mixed_units_permute_within_and_exchange_with_units_of_their_size():
    groups = np.array([0, 0, 1, 1, 2, 2, 2])
    labels = np.array([0, 1, 2, 2, 3, 4, 5])
    draws = {
        tuple(labels[r])
        for r in Units(groups).shuffles(labels, np.random.default_rng(0), 2000)
    }
    # The pair (0, 1) in two places and orders, three of three.
    assert len(draws) == 2 * 2 * 6
    for draw in draws:
        assert sorted(draw[4:]) == [3, 4, 5]
        assert {tuple(sorted(draw[:2])), tuple(sorted(draw[2:4]))} == {(0, 1), (2, 2)}


def test_rows_of_their_own_are_permuted_as_numpy_does():
    labels = np.arange(9)
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    for rows in Units(labels).shuffles(labels, rng, 4):
        np.testing.assert_array_equal(labels[rows], again.permutation(labels))


def test_the_effective_count_is_that_of_units_where_rows_are_copies():
    rng = np.random.default_rng(0)
    once = rng.random(40) < 0.3
    assert Units(np.repeat(np.arange(40), 5)).effective_count(
        np.repeat(once, 5)
    ) == pytest.approx(40, rel=0.03)
    independent = [
        Units(np.repeat(np.arange(40), 5)).effective_count(rng.random(200) < 0.3)
        for _ in range(200)
    ]
    assert 150 < np.mean(independent) <= 200
    assert Units(np.arange(7)).effective_count(np.ones(7)) == 7
    assert Units(np.repeat([0, 1], 5)).effective_count(np.ones(10)) == 2


def test_means_and_sums_over_units():
    units = Units(np.array([4, 2, 4, 2]))
    means, weights = units.means([[1.0, 2.0, 3.0, 6.0]], weights=[1, 1, 3, 0])
    np.testing.assert_allclose(means, [[2.0, 2.5]])
    np.testing.assert_allclose(weights, [1, 4])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"one unit for each of 3 texts; got shape \(2,\)"),
        ([[0, 1, 2]], r"got shape \(1, 3\)"),
        (
            [0.0, 1.0, np.nan],
            "groups must be numbers or texts, .* got nan among float64 values",
        ),
        (["a", None, "b"], "groups must be numbers or texts"),
    ],
)
def test_groups_that_name_no_unit_for_each_row_are_refused(groups, message):
    with pytest.raises(ArgumentError, match=message):
        Units.of(groups, 3, "texts")
