"""Random walks and shuffled directions against theory, literature and explicit simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp

from ontogeny.errors import ArgumentError
from ontogeny.geometry import (
    early_energy,
    early_energy_null,
    gram,
    random_walk_null,
    shuffled_increments_null,
    variance_rank,
)
from ontogeny.geometry.rank import centred
from ontogeny_papers.geometry.nulls import (
    _shuffled_grams,
    _walk_grams,
    gaussian_factor,
    path_grams,
)
from ontogeny_papers.geometry.snapshots import increments_gram
from ontogeny_papers.geometry.spectra import descending_eigenvalues

HIGH = 16_384


def unit_steps(n_steps: int) -> np.ndarray:
    """Gram matrix of a path with orthogonal unit steps; only the step lengths matter here."""
    return gram(np.tri(n_steps))


@pytest.mark.parametrize("n_steps", [20, 48, 100, 200, 400])
def test_random_walk_in_many_dimensions_has_r90_of_six(n_steps):
    null = random_walk_null(gram=unit_steps(n_steps), dimension=HIGH, n_draws=5)
    assert set(null.draws.tolist()) == {6}


@pytest.mark.parametrize(("n_steps", "rank"), [(5, 3), (8, 4), (10, 5), (15, 5)])
def test_random_walk_of_few_snapshots_has_r90_of_three_to_five(n_steps, rank):
    null = random_walk_null(gram=unit_steps(n_steps), dimension=HIGH, n_draws=40)
    assert (
        np.median(null.draws) == rank
        and null.draws.min() >= 3
        and null.draws.max() <= 5
    )


def test_random_walk_spectrum_is_that_of_the_literature():
    # lambda_k ~ 1/k^2: 6/pi^2 = .608 for the first component, cumulatively as below
    rng = np.random.default_rng(0)
    spectra = descending_eigenvalues(centred(_walk_grams(np.ones(399), HIGH, 10, rng)))
    held = np.cumsum(spectra, axis=1) / spectra.sum(axis=1, keepdims=True)
    literature = [0.608, 0.760, 0.828, 0.866, 0.890, 0.907]
    np.testing.assert_allclose(held.mean(axis=0)[:6], literature, atol=0.004)


@pytest.mark.parametrize("dimension", [1, 4, 16, 300])
def test_drawn_gram_matrices_are_distributed_as_simulated_walks(dimension):
    lengths = np.array([3.0, 1.0, 1.0, 2.0, 0.5, 1.0, 4.0, 1.0])
    rng = np.random.default_rng(0)
    drawn = _walk_grams(lengths, dimension, 1500, rng)
    steps = rng.normal(size=(1500, 8, dimension))
    steps *= (lengths / np.linalg.norm(steps, axis=2))[..., None]
    simulated = np.stack(
        [gram(np.vstack([0 * s[:1], s.cumsum(axis=0)])) for s in steps]
    )
    # step lengths are kept exactly, everything else agrees in distribution
    np.testing.assert_allclose(drawn[:, 1, 1], 9.0)
    for statistic in (
        lambda g: g[:, 8, 8],
        lambda g: g[:, 3, 7],
        lambda g: descending_eigenvalues(centred(g))[:, 0],
        lambda g: descending_eigenvalues(centred(g)).sum(axis=1),
    ):
        assert ks_2samp(statistic(drawn), statistic(simulated)).pvalue > 1e-4


def test_walks_in_one_dimension_have_rank_one():
    null = random_walk_null(np.arange(10.0)[:, None], n_draws=20)
    assert null.draws.tolist() == [1] * 20


def test_a_real_random_walk_looks_like_its_null_and_a_line_does_not():
    rng = np.random.default_rng(0)
    path = rng.normal(size=(40, 3000)).cumsum(axis=0)
    null = random_walk_null(path, n_draws=60)
    assert null.interval[0] <= null.observed <= null.interval[1]
    line = np.outer(np.arange(40.0), np.ones(3000)) + 0.01 * path
    assert random_walk_null(line, n_draws=60).p_lower == pytest.approx(1 / 61)


def test_weak_drift_alone_lowers_r90_of_both_path_and_shuffled_path():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(60, 4000)) / np.sqrt(4000)
    steps[:, 0] += np.sqrt(2 / 60)  # net drift ratio about 3
    null = shuffled_increments_null(
        np.vstack([0 * steps[:1], steps.cumsum(axis=0)]), n_draws=60
    )
    assert null.observed == 3 and null.mean == pytest.approx(3, abs=0.5)
    assert null.p_lower > 0.05 and null.p_higher > 0.05


def test_shuffled_draws_are_those_of_paths_shuffled_in_full():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(12, 6)) * np.geomspace(1, 4, 12)[:, None]
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    path = np.vstack([0 * steps[:1], steps.cumsum(axis=0)])
    null = shuffled_increments_null(path, n_draws=800, variance=0.95)

    def shuffled():
        turned = (steps / lengths)[
            rng.permutation(12)
        ] * lengths  # lengths at their place
        return variance_rank(np.vstack([0 * steps[:1], turned.cumsum(0)]), 0.95)

    explicit = np.array([shuffled() for _ in range(800)])
    assert len(np.unique(explicit)) > 1
    for rank in np.unique(explicit):
        share = np.mean(explicit == rank)
        error = 5 * np.sqrt(2 * max(share * (1 - share), 1e-2) / 800)
        assert np.mean(null.draws == rank) == pytest.approx(share, abs=error)


def walk_with_a_schedule(seed: int, steps: int = 32) -> np.ndarray:
    """Gram matrix of a random walk whose steps grow over the first 30 % and then decay."""
    at = np.linspace(0, 1, steps)
    lengths = np.where(
        at < 0.3, 0.04 + at / 0.3, 0.5 + 0.5 * np.cos(np.pi * (at - 0.3) / 0.7)
    )
    factor = gaussian_factor(steps, HIGH, 1, np.random.default_rng(seed))
    return path_grams(factor, lengths + 1e-3)[0]


def test_walks_with_warm_up_and_decay_are_not_called_lower_than_random_order():
    # permuting lengths together with directions called all of them lower
    nulls = [
        shuffled_increments_null(gram=walk_with_a_schedule(i), n_draws=99)
        for i in range(200)
    ]
    assert np.mean([null.p_lower < 0.05 for null in nulls]) <= 0.05


def test_early_energy_of_walks_with_warm_up_and_decay_is_at_its_nominal_rate():
    nulls = [
        early_energy_null(gram=walk_with_a_schedule(i), n_draws=99) for i in range(200)
    ]
    low, high = binom.interval(0.999, 200, 0.05)
    assert low <= sum(null.p_higher <= 0.05 for null in nulls) <= high


def test_lengths_stay_at_their_place_and_still_steps_stay_still():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(9, 40)) * np.arange(9)[::-1, None]
    steps[3] = 0.0
    path = np.vstack([0 * steps[:1], steps.cumsum(axis=0)])
    (drawn,) = _shuffled_grams(gram(path), 20, 0)
    squares = np.diagonal(increments_gram(drawn), axis1=1, axis2=2)
    expected = np.broadcast_to((steps**2).sum(axis=1), squares.shape)
    np.testing.assert_allclose(squares, expected, atol=1e-9 * expected.max())


def test_order_that_confines_the_path_is_found_by_the_permutation_p_value():
    # out along one direction after another would be high; forth and back in pairs stays low
    steps = np.kron(np.eye(20), np.array([[1.0], [-1.0]]))
    drift = np.outer(np.ones(40), 0.2 * np.eye(21)[20])
    path = np.vstack(
        [np.zeros(21), (np.hstack([steps, np.zeros((40, 1))]) + drift).cumsum(0)]
    )
    null = shuffled_increments_null(path, n_draws=99)
    assert null.p_lower == 0.01 and null.p_higher == 1.0


@pytest.mark.parametrize("null_of", [random_walk_null, shuffled_increments_null])
def test_growing_windows_have_a_column_each(null_of):
    path = np.random.default_rng(0).normal(size=(30, 200)).cumsum(axis=0)
    null = null_of(path, n_draws=25, ends=[5, 12, 30])
    assert null.draws.shape == (25, 3) and null.interval.shape == (2, 3)
    assert null.observed.tolist() == [variance_rank(path[:end]) for end in (5, 12, 30)]
    assert np.all(np.diff(null.mean) >= 0) and null.p_lower.shape == (3,)


def test_a_shuffled_window_equals_a_call_on_that_window():
    path = np.random.default_rng(0).normal(size=(30, 50)).cumsum(axis=0)
    windows = shuffled_increments_null(path, n_draws=30, ends=[10, 30])
    for column, end in enumerate((10, 30)):
        alone = shuffled_increments_null(path[:end], n_draws=30)
        np.testing.assert_array_equal(windows.draws[:, column], alone.draws)


@pytest.mark.parametrize("null_of", [random_walk_null, shuffled_increments_null])
def test_seed_decides_and_batches_do_not_change_the_law(null_of, monkeypatch):
    steps = (
        np.random.default_rng(0).normal(size=(14, 12))
        * np.linspace(0.2, 3, 14)[:, None]
    )
    path = steps.cumsum(axis=0)
    whole = null_of(path, n_draws=300, variance=0.95)
    np.testing.assert_array_equal(
        whole.draws, null_of(path, n_draws=300, variance=0.95).draws
    )
    monkeypatch.setattr("ontogeny_papers.geometry.nulls.CHUNK", 14**2 * 7)
    in_batches = null_of(path, n_draws=300, variance=0.95)
    assert in_batches.draws.shape == (300,)
    assert ks_2samp(whole.draws, in_batches.draws).pvalue > 1e-4


def test_snapshots_and_their_gram_give_the_same_null():
    path = np.random.default_rng(0).normal(size=(20, 6, 5)).cumsum(axis=0)
    from_path, from_gram = (
        random_walk_null(path, n_draws=20),
        random_walk_null(gram=gram(path), dimension=30, n_draws=20),
    )
    np.testing.assert_array_equal(from_path.draws, from_gram.draws)


def test_frozen_weights_have_rank_zero_like_their_nulls():
    for null_of in (random_walk_null, shuffled_increments_null):
        null = null_of(np.ones((6, 10)), n_draws=5)
        assert (
            null.observed == 0 and null.draws.tolist() == [0] * 5 and null.p_lower == 1
        )


def test_early_energy_null_separates_a_fixed_plane_from_turning_paths():
    rng = np.random.default_rng(0)
    angle = np.linspace(0, np.pi, 41)
    turning = np.zeros((41, 60))
    turning[:, 0], turning[:, 1] = np.cos(angle), np.sin(angle)
    turning += 0.001 * rng.normal(size=turning.shape)
    null = early_energy_null(turning, n_draws=99, components=1)
    assert null.observed == early_energy(gram(turning), components=1)
    # It turns away; shuffled steps go the mean way from the start.
    assert null.p_lower == 0.01


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_walk_null(), "either snapshots or gram="),
        (
            lambda: random_walk_null(np.eye(3), gram=unit_steps(3)),
            "either snapshots or gram=",
        ),
        (lambda: random_walk_null(gram=unit_steps(3)), "dimension must be"),
        (
            lambda: random_walk_null(gram=unit_steps(3), dimension=0),
            "dimension must be",
        ),
        (
            lambda: random_walk_null(np.eye(3), n_draws=0),
            "n_draws must be a whole number of at least 1",
        ),
        (lambda: shuffled_increments_null(np.eye(3), ends=[9]), "ends must be numbers"),
        (lambda: shuffled_increments_null(np.ones((1, 4))), "at least 2 snapshots"),
        (lambda: early_energy_null(np.eye(3), early=1.0), "early must be a share"),
        (
            lambda: random_walk_null(np.eye(3), n_draws=5.0),
            "n_draws must be a whole number .* got 5.0",
        ),
        (
            lambda: shuffled_increments_null(np.eye(3), n_draws=True),
            "n_draws must be a whole number",
        ),
        (
            lambda: random_walk_null(gram=unit_steps(3), dimension="9"),
            "dimension must be",
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
