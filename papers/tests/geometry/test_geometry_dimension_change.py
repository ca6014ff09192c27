"""A dimension that stays while clouds drift, one that changes, and what makes estimates err."""

import numpy as np
import pytest
from scipy.stats import binom

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.geometry import dimension_change, two_nn

COUNT = 24
EARLY = np.arange(COUNT) < COUNT // 2
MEMORIES = {
    "independent": np.zeros(COUNT),
    "drifting": np.full(COUNT, 0.9),
    "freezing": 1 - np.geomspace(0.7, 5e-4, COUNT),
}


def drifting(memory, seed, dimensions=6, late=None, points=40):
    """Clouds (T, n, m): the points drift inside a space of some dimensions, another one late."""
    rng = np.random.default_rng(seed)
    at = rng.normal(size=(points, 20))
    clouds = np.zeros((COUNT, points, 20))
    for t, kept in enumerate(MEMORIES[memory]):
        at = kept * at + np.sqrt(1 - kept**2) * rng.normal(size=at.shape)
        used = dimensions if EARLY[t] or late is None else late
        clouds[t, :, :used] = at[:, :used]
    return clouds


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_dimension_that_stays_rises_and_falls_at_most_at_the_nominal_rate(memory):
    found = [
        dimension_change(drifting(memory, seed), EARLY, ~EARLY) for seed in range(80)
    ]
    p = np.array([each.p_value for each in found])
    up = np.array([each.difference > 0 for each in found])
    most = binom.ppf(0.999, 80, 0.025)
    assert np.sum((p < 0.05) & up) <= most and np.sum((p < 0.05) & ~up) <= most


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_standard_error_is_the_spread_over_drawn_runs(memory):
    found = [
        dimension_change(drifting(memory, seed), EARLY, ~EARLY) for seed in range(60)
    ]
    spread = np.std([each.difference for each in found], ddof=1)
    assert 0.75 < np.median([each.stderr for each in found]) / spread < 1.6


def test_a_dimension_that_rises_is_found():
    found = [
        dimension_change(drifting("drifting", s, 4, 10), EARLY, ~EARLY)
        for s in range(20)
    ]
    assert (
        np.mean([each.p_value < 0.05 and each.difference > 0 for each in found]) >= 0.9
    )


def test_means_are_those_of_two_nn_and_undefined_checkpoints_are_left_out():
    clouds = drifting("drifting", 0)
    clouds[3] = np.eye(40, 20) + 1.0  # more than half of the neighbours are equally far
    found = dimension_change(clouds, EARLY, ~EARLY, "likelihood")
    early = [
        two_nn(c, "likelihood", n_draws=0).value
        for c in np.delete(clouds[EARLY], 3, axis=0)
    ]
    assert found.early == pytest.approx(np.mean(early))
    one = dimension_change(clouds, np.arange(COUNT) == 5, ~EARLY)
    assert np.isnan(one.p_value) and np.isfinite(one.difference)


def test_points_that_coincide_are_left_out_as_two_nn_does():
    clouds = drifting("drifting", 0)
    clouds[:, 1] = clouds[:, 0]
    found = dimension_change(clouds, EARLY, ~EARLY)
    dims = [two_nn(cloud, n_draws=0).value for cloud in clouds[EARLY]]
    assert found.early == pytest.approx(np.mean(dims))


def test_clouds_that_stand_still_have_not_changed():
    clouds = np.repeat(drifting("drifting", 0)[:1], COUNT, axis=0)
    found = dimension_change(clouds, EARLY, ~EARLY)
    assert found.difference == 0 and found.p_value == 1


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_unit_of_the_clouds_does_not_matter(size):
    clouds = drifting("drifting", 0)
    found, scaled = (
        dimension_change(x, EARLY, ~EARLY) for x in (clouds, size * clouds)
    )
    np.testing.assert_allclose(
        [scaled.early, scaled.p_value], [found.early, found.p_value]
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: dimension_change(x[0], EARLY, ~EARLY), ArgumentError, "clouds"),
        (
            lambda x: dimension_change(x, EARLY[1:], ~EARLY),
            ArgumentError,
            "early must hold 24",
        ),
        (
            lambda x: dimension_change(x, EARLY, EARLY & ~EARLY),
            ArgumentError,
            "late must hold 24",
        ),
        (lambda x: dimension_change(x, EARLY, ~EARLY, "mle"), ArgumentError, "method"),
        (
            lambda x: dimension_change(0 * x, EARLY, ~EARLY),
            ArgumentError,
            "no checkpoint",
        ),
        (lambda x: dimension_change(x / 0, EARLY, ~EARLY), NonFiniteError, "clouds"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words), np.errstate(all="ignore"):
        call(drifting("drifting", 0))
