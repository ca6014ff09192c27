"""Frequencies of rows in a cyclic order: closed forms, invariances, and what is refused."""

import numpy as np
import pytest

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.geometry import row_frequencies


@pytest.mark.parametrize("n", [7, 12])
def test_a_planted_mixture_is_recovered(n):
    a = np.arange(n)
    waves = [np.cos(2 * np.pi * 2 * a / n), 3 * np.sin(2 * np.pi * 3 * a / n)]
    found = row_frequencies(np.stack(waves, axis=1) + 5.0)
    expected = np.zeros(n // 2)
    expected[[1, 2]] = 0.1, 0.9  # variances 1/2 and 9/2
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_highest_frequency_of_an_even_number_counts_once():
    alternating = np.tile([1.0, -1.0], 4)  # variance 1
    wave = np.cos(2 * np.pi * np.arange(8) / 8)  # variance 1/2
    found = row_frequencies(np.stack([alternating, wave], axis=1))
    np.testing.assert_allclose(found, [1 / 3, 0, 0, 2 / 3], atol=1e-12)


def test_turning_scaling_shifting_and_cycling_change_nothing():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(11, 4))
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    same = 1e-200 * (np.roll(E, 3, axis=0) @ turned + 2.0)
    np.testing.assert_allclose(row_frequencies(same), row_frequencies(E), atol=1e-12)
    assert row_frequencies(E).sum() == pytest.approx(1)


def test_what_has_no_frequencies_is_refused():
    with pytest.raises(
        ArgumentError, match=r"at least 4 rows and two dimensions; got \(3, 2\)"
    ):
        row_frequencies(np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="rows that differ"):
        row_frequencies(np.full((5, 2), 0.1))
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        row_frequencies(np.full((5, 2), np.nan))
