"""Correlated walks, lines with noise and Gaussian matrices: planted cases, theory, simulation."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from ontogeny import geometry
from ontogeny.errors import ArgumentError
from ontogeny_papers.geometry.path_models import _line, increment_cosines
from ontogeny_papers.geometry.snapshots import increments_gram


def walk(steps=60, size=4000, cosine=0.0, seed=0):
    """A path whose increments are an AR(1) process with this cosine at lag 1."""
    rng = np.random.default_rng(seed)
    increments = rng.normal(size=(steps, size)) / np.sqrt(size)
    for t in range(1, steps):
        increments[t] = (
            cosine * increments[t - 1] + np.sqrt(1 - cosine**2) * increments[t]
        )
    return np.vstack([np.zeros(size), increments.cumsum(axis=0)])


def test_cosines_of_a_planted_process_fall_with_the_lag():
    cosines = increment_cosines(geometry.gram(walk(200, cosine=0.8)))
    np.testing.assert_allclose(cosines[:6], 0.8 ** np.arange(6), atol=0.03)


@pytest.mark.parametrize(("cosine", "rank"), [(0.0, 6), (0.5, 4), (0.8, 3)])
def test_a_correlated_walk_is_explained_by_its_lag_cosines(cosine, rank):
    path = walk(60, cosine=cosine)
    null = geometry.lag_cosine_null(path, n_draws=60)
    assert null.interval[0] <= null.observed <= null.interval[1]
    assert abs(float(null.mean) - rank) < 0.8
    if cosine == 0.8:  # which a random walk does not explain
        assert geometry.random_walk_null(path, n_draws=60).p_lower < 0.05


def test_draws_are_those_of_correlated_gaussian_paths_made_in_full():
    path = walk(12, 40, cosine=0.6, seed=3)
    null = geometry.lag_cosine_null(path, n_draws=800, variance=0.97)
    cosines = increment_cosines(geometry.gram(path))
    correlation = cosines[np.abs(np.subtract.outer(np.arange(12), np.arange(12)))]
    values, vectors = np.linalg.eigh(correlation)
    mix = vectors * np.sqrt(np.maximum(values, 0))
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    rng, explicit = np.random.default_rng(0), []
    for _ in range(800):
        steps = mix @ rng.normal(size=(12, 40))
        steps *= (lengths / np.linalg.norm(steps, axis=1))[:, None]
        drawn = np.vstack([np.zeros(40), steps.cumsum(axis=0)])
        explicit.append(geometry.variance_rank(drawn, 0.97))
    assert len(np.unique(explicit)) > 1
    assert ks_2samp(null.draws, explicit).pvalue > 1e-3


def test_a_line_with_noise_is_explained_by_its_null_and_not_by_a_walk():
    rng = np.random.default_rng(0)
    line = np.outer(np.arange(60.0), rng.normal(size=3000)) + 20 * rng.normal(
        size=(60, 3000)
    )
    null = geometry.line_noise_null(line, n_draws=60)
    assert null.interval[0] <= null.observed <= null.interval[1]
    # Noise has many directions.
    assert geometry.random_walk_null(line, n_draws=60).p_higher < 0.05


def test_line_and_noise_give_back_step_length_and_net_displacement():
    rng = np.random.default_rng(0)
    path = walk(40, 2000, cosine=0.4)
    gram = geometry.gram(path)
    speed, noise = _line(gram)
    direction = rng.normal(size=20_000)
    direction /= np.linalg.norm(direction)
    made = speed * np.outer(np.arange(41), direction)
    made = made + rng.normal(size=(41, 20_000)) * np.sqrt(noise / 20_000)
    again = geometry.gram(made)
    assert geometry.net_drift_ratio(again) == pytest.approx(
        geometry.net_drift_ratio(gram), rel=0.02
    )
    assert np.trace(increments_gram(again)) == pytest.approx(
        np.trace(increments_gram(gram)), rel=0.02
    )


@pytest.mark.parametrize(
    "null_of", [geometry.lag_cosine_null, geometry.line_noise_null]
)
def test_growing_windows_scale_and_seed(null_of):
    path = walk(20, 200)
    windows = null_of(path, n_draws=20, ends=[5, 21])
    assert windows.draws.shape == (20, 2)
    np.testing.assert_array_equal(
        windows.draws[:, 1], null_of(1000 * path, n_draws=20).draws
    )
    again = null_of(gram=geometry.gram(path), dimension=200, n_draws=20)
    np.testing.assert_array_equal(again.draws, null_of(path, n_draws=20).draws)
    with pytest.raises(ArgumentError, match="dimension"):
        null_of(gram=geometry.gram(path))


def test_still_snapshots_have_rank_zero_under_every_null():
    for null_of in (geometry.lag_cosine_null, geometry.line_noise_null):
        still = np.vstack([np.ones((3, 9)), 2 * np.ones((3, 9))])
        assert np.isfinite(null_of(still, n_draws=5).draws).all()


def test_increments_of_a_walk_have_the_participation_ratio_of_the_closed_form():
    rng = np.random.default_rng(0)
    lengths = rng.uniform(0.2, 3, size=50)
    for size in (30, 4000):
        found = []
        for _ in range(20):
            steps = rng.normal(size=(50, size))
            steps *= (lengths / np.linalg.norm(steps, axis=1))[:, None]
            gram = geometry.gram(np.vstack([np.zeros(size), steps.cumsum(axis=0)]))
            found.append(geometry.increment_participation_ratio(gram))
        expected = geometry.walk_participation_ratio(gram, size)
        assert np.mean(found) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("rows", "columns"), [(128, 128), (100, 400), (300, 60)])
@pytest.mark.parametrize("variance", [0.5, 0.9, 0.99])
def test_the_rank_of_a_gaussian_matrix_is_that_of_drawn_ones(rows, columns, variance):
    rng = np.random.default_rng(0)
    drawn = [
        geometry.singular_value_rank(rng.normal(size=(rows, columns)), variance)
        for _ in range(8)
    ]
    expected = geometry.gaussian_matrix_rank(rows, columns, variance)
    assert np.mean(drawn) == pytest.approx(expected, abs=1.0)
    assert geometry.gaussian_matrix_rank(columns, rows, variance) == expected
