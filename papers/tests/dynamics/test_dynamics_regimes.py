"""Where the noise of series changes, or that it does not."""

import importlib
from itertools import pairwise

import numpy as np
import pytest

from helpers.series_examples import EARLY, LATE, planted
from ontogeny.dynamics import regimes
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.dynamics.jumps import _without_jumps, jump_gains
from ontogeny_papers.dynamics.noise_levels import (
    Panel,
    best_boundaries,
    double_boundary,
    segment_costs,
    single_boundary,
)
from ontogeny_papers.dynamics.regime_search import without_bend
from ontogeny_papers.dynamics.trends import neighbour_residuals

implementation = importlib.import_module("ontogeny_papers.dynamics.two_regimes")


def two_regimes(ratio=8.0, count=1, seed=0, steps=LATE, boundary=25):
    rng = np.random.default_rng(seed)
    return planted(
        "exponential", "independent", steps, count, 0.05, rng, boundary, ratio
    ).T


def test_costs_are_the_likelihood_of_laplace_noise():
    residuals = np.random.default_rng(0).laplace(size=(9, 2))
    residuals[4, 1] = np.nan
    found = segment_costs(residuals, np.zeros(2), np.array([0, 3]), np.array([9, 7]))
    for cost, (start, stop) in zip(found, [(0, 9), (3, 7)], strict=True):
        columns = [column[~np.isnan(column)] for column in residuals[start:stop].T]
        expected = sum(len(c) * np.log(np.abs(c).mean()) for c in columns)
        assert cost == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(8))
def test_the_librarys_search_and_the_quick_one_agree(seed):
    rng = np.random.default_rng(seed)
    residuals = (
        rng.normal(size=(22, 2)) * np.where(np.arange(22) < 9, 0.4, 1.0)[:, None]
    )
    floor = np.full(2, 1e-12)

    def cost(ends):
        starts, stops = np.array(ends[:-1]), np.array(ends[1:])
        return segment_costs(residuals, floor, starts, stops).sum()

    gain, place = single_boundary(residuals, floor)
    assert best_boundaries(residuals, floor, 1) == (int(place),)
    assert gain == pytest.approx(cost([0, 22]) - cost([0, int(place), 22]))
    one, two = best_boundaries(residuals, floor, 2)
    assert double_boundary(residuals, floor) == pytest.approx(
        cost([0, 22]) - cost([0, one, two, 22])
    )


def test_residuals_of_a_panel_are_those_of_each_series_alone():
    values = np.random.default_rng(0).normal(size=(24, 3))
    values[[4, 11], 1] = np.nan
    values[:20, 2] = np.nan  # four values are too few
    found = Panel.of(EARLY, values).residuals(values)
    there = ~np.isnan(values[:, 1])
    alone = neighbour_residuals(EARLY[there]) @ values[there, 1]
    assert np.allclose(found[there, 1][2:-2], alone)
    assert np.isnan(found[:, 2]).all() and np.isnan(found[[0, 1, -2, -1]]).all()


@pytest.mark.parametrize("layers", [1, 6])
def test_a_planted_boundary_is_found_with_its_sides(layers):
    found = regimes(LATE, two_regimes(count=layers, seed=layers))
    assert found.order == "smooth then noisy" and found.p_value <= 0.05
    assert abs(found.boundary - LATE[25]) <= 30_000
    assert found.interval[0] <= found.boundary <= found.interval[1]
    assert found.smooth.stop < found.noisy.start == found.boundary
    assert 4 < found.noise_ratio < 16
    assert found.noise_ratio_interval[0] <= 8 <= found.noise_ratio_interval[1]
    assert np.shape(found.smooth.noise) == (layers,)
    assert np.mean(found.noisy.noise) == pytest.approx(0.05, rel=0.35)


def test_intervals_of_few_residuals_are_stretched_by_students_t(monkeypatch):
    stretch = implementation._stretch
    assert stretch(9, 9) == pytest.approx(
        np.sqrt(9 / 8) * 2.119905 / 1.959964, rel=1e-6
    )
    assert stretch(10**6, 10**6) == pytest.approx(1, abs=1e-5) and stretch(
        3, 30
    ) > stretch(9, 9)
    values = two_regimes(ratio=20, count=6, seed=2)
    wide = regimes(LATE, values)
    monkeypatch.setattr(implementation, "_stretch", lambda *counts: 1.0)
    plain = regimes(LATE, values)
    widths = [np.diff(np.log(each.noise_ratio_interval))[0] for each in (wide, plain)]
    before, after = (part.count - 4 for part in wide.regimes)
    assert widths[0] / widths[1] == pytest.approx(stretch(before, after))


def test_the_ratio_of_two_noises_is_in_the_stretched_interval_more_often():
    """Of six residuals each, the percentiles alone hold it in 87 %."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(1000, 2, 6))
    rows = rng.integers(0, 6, (1000, 199, 2, 6))
    drawn = np.take_along_axis(np.repeat(noise[:, None], 199, axis=1), rows, axis=3)
    ratio, ratios = (
        np.diff(np.log((x**2).mean(-1)) / 2)[..., 0] for x in (noise, drawn)
    )
    low, high = np.quantile(ratios - ratio[:, None], [0.025, 0.975], axis=1)

    def held(stretch):
        return np.mean((ratio + stretch * low <= 0) & (ratio + stretch * high >= 0))

    assert held(1.0) < 0.9
    assert 0.91 < held(implementation._stretch(6, 6)) < 0.97


def test_one_series_gives_plain_numbers():
    found = regimes(LATE, two_regimes(ratio=20, seed=3)[:, 0])
    assert isinstance(found.noisy.noise, float) and found.trend.shape == (50,)


def test_noise_that_falls_is_told_from_noise_that_rises():
    size = np.where(np.arange(50) < 25, 0.05, 0.005)
    noise = size[:, None] * np.random.default_rng(3).normal(size=(50, 6))
    found = regimes(LATE, np.exp(-LATE / 1e5)[:, None] + noise)
    assert found.order == "noisy then smooth"
    assert found.noisy.start == LATE[0] and found.noise_ratio > 1


def test_three_regimes_are_told_from_two():
    rng = np.random.default_rng(0)
    size = np.where((np.arange(60) >= 20) & (np.arange(60) < 40), 0.05, 0.004)
    steps = np.arange(60) * 1000
    values = np.exp(-steps / 20_000)[:, None] + size[:, None] * rng.normal(size=(60, 5))
    found = regimes(steps, values)
    assert found.order == "three" and found.p_third <= 0.05
    assert np.allclose(found.boundaries, [20_000, 40_000], atol=3000)
    assert found.noisy is found.regimes[1]
    assert found.boundary in found.boundaries


def test_no_boundary_is_an_answer():
    rng = np.random.default_rng(5)
    found = regimes(LATE, planted("exponential", "independent", LATE, 1, 0.05, rng)[0])
    assert found.boundary is None and found.interval is None and found.smooth is None
    assert found.p_value > 0.05 and found.reason == "" and found.order == "one"
    assert len(found.regimes) == 1 and found.regimes[0].noise == pytest.approx(
        0.05, rel=0.3
    )


@pytest.mark.parametrize("seed", [4, 9, 14, 17, 28, 31])
def test_a_jump_of_the_trend_is_no_noisy_regime(seed):
    rng = np.random.default_rng(seed)
    place = rng.uniform(0.2, 0.8) * EARLY[-1]
    # Between two checkpoints.
    fall = 1 / (1 + np.exp(np.clip((EARLY - place) / 20, -50, 50)))
    found = regimes(EARLY, fall[:, None] + 0.003 * rng.normal(size=(24, 2)))
    assert found.boundary is None


def two_jumps(steps, seed, count=1, size=0.003):
    """Curves that fall twice, six checkpoints apart, each time between two checkpoints."""
    rng, number = np.random.default_rng(seed), np.arange(len(steps))[:, None]
    place = rng.integers(len(steps) // 5, len(steps) * 3 // 5, count)
    fall = 0.5 * (number < place) + 0.5 * (number < place + 6)
    return fall + size * rng.normal(size=fall.shape)


@pytest.mark.parametrize(
    ("steps", "seed", "count"),
    [(LATE, seed, 1) for seed in (0, 2, 3)] + [(EARLY, 0, 6), (LATE, 0, 6)],
)
def test_several_jumps_of_the_trend_are_no_noisy_regime(steps, seed, count):
    found = regimes(steps, two_jumps(steps, seed, count))
    assert found.p_value <= 0.05 and found.p_jumps <= 0.01
    assert found.boundary is None and found.order == "one"
    assert found.reason == "several jumps of the trend look like noise"


def test_noise_that_grows_is_seen_beside_a_jump_of_each_curve_but_not_dated():
    values = two_regimes(count=6, seed=1)
    values += np.arange(50)[:, None] < np.array([6, 12, 19, 30, 36, 43])
    found = regimes(LATE, values)
    assert found.order == "gradual" and found.boundary is None
    assert found.p_jumps > 0.01 and found.gradual_ratio > 3


def test_jumps_are_taken_out_as_least_squares_says():
    rng = np.random.default_rng(0)
    patterns = neighbour_residuals(LATE) @ np.tri(50)[:, 1:]
    residuals = rng.normal(size=(3, 46))
    left = _without_jumps(residuals, patterns)
    for before, after in pairwise(left):
        taken = before - after
        assert (np.linalg.norm(after, axis=1) < np.linalg.norm(before, axis=1)).all()
        assert np.allclose((after * taken).sum(axis=1), 0, atol=1e-10)
    exact = _without_jumps(patterns[:, [9]].T + 0.4 * patterns[:, [30]].T, patterns)
    assert np.abs(exact[2]).max() < 1e-12 < np.abs(exact[1]).max()


def test_gains_of_jumps_add_up_over_series_with_gaps():
    values = np.random.default_rng(0).normal(size=(50, 3))
    values[[4, 17], 1] = np.nan
    values[:, 2] = np.nan  # not used
    panel = Panel.of(LATE, values)
    both = jump_gains(panel, panel.residuals(values)[None, :, :2], np.array([0, 1]))
    alone = []
    for k in range(2):
        there = ~np.isnan(values[:, k])
        one = Panel.of(LATE[there], values[there, k : k + 1])
        residuals = one.residuals(values[there, k : k + 1])
        alone.append(jump_gains(one, residuals[None], np.array([0])))
    assert np.allclose(both, sum(alone))


def test_a_bend_is_cut_from_each_draw_for_itself():
    residuals = np.ones((2, 12, 3))
    residuals[0, 3:7] = 5.0
    residuals[1, 8:12, 1] = -4.0
    residuals[1, 2] = np.nan
    left = without_bend(residuals)
    assert left.shape == (2, 8, 3)
    assert np.array_equal(left[0], np.ones((8, 3)))
    assert np.array_equal(left[1], residuals[1, :8], equal_nan=True)


def test_series_without_noise_or_with_few_steps_are_not_judged():
    smooth = regimes(LATE, np.exp(-LATE / 1e5))
    assert (
        smooth.boundary is None
        and "no noise" in smooth.reason
        and np.isnan(smooth.p_value)
    )
    short = regimes(np.arange(9), np.random.default_rng(0).normal(size=9))
    assert (
        short.reason
        == "9 usable steps are too few to compare two noise levels (30 needed)"
    )
    empty = regimes(np.arange(20), np.full(20, np.nan))
    assert empty.boundary is None and empty.reason


def test_the_boundary_does_not_see_shift_scale_or_the_unit_of_time():
    values = two_regimes(ratio=20, seed=2)[:, 0]
    plain, moved = regimes(LATE, values), regimes(LATE / 10_000, 3 - 7 * values)
    assert moved.boundary * 10_000 == plain.boundary
    assert moved.p_value == plain.p_value
    assert moved.noisy.noise == pytest.approx(7 * plain.noisy.noise)


def test_the_order_of_layers_does_not_matter_for_the_boundary():
    values = two_regimes(count=4, seed=9)
    assert regimes(LATE, values).boundary == regimes(LATE, values[:, ::-1]).boundary


def test_missing_checkpoints_hardly_move_the_boundary():
    values = two_regimes(count=4, seed=6)
    values[[3, 17, 30]] = np.nan
    values[40, 2] = np.nan
    found = regimes(LATE, values)
    assert abs(found.boundary - LATE[25]) <= 40_000
    assert np.isnan(found.trend[3]).all() and np.isnan(found.residuals[17]).all()


def test_layers_that_share_their_noise_count_once():
    rng = np.random.default_rng(0)
    shared = 0.05 * rng.normal(size=(40, 50, 1)) * np.ones(6)
    found = [
        regimes(LATE, np.exp(-LATE / 1e5)[:, None] + e, n_draws=99) for e in shared
    ]
    # at most 5 %: 8 or more of 40 have a probability below 0.001
    assert sum(each.boundary is not None for each in found) < 8


def test_the_reference_is_left_out():
    values = two_regimes(ratio=20, seed=3)[:, 0]
    values[-1] = 1e6
    found = regimes(LATE, values, reference_index=49)
    assert np.isnan(found.residuals[49]) and found.regimes[-1].stop == LATE[48]
    assert found.noisy.noise < 1


def test_spacing_that_differs_between_the_regimes_is_reported():
    steps = np.concatenate([np.arange(25) * 10.0, 240 + 100.0 * np.arange(1, 26)])
    assert regimes(steps, two_regimes(seed=1)[:, 0]).spacing_ratio == pytest.approx(10)


def test_same_seed_same_answer():
    values = two_regimes(ratio=4, seed=7)
    first, second = regimes(LATE, values), regimes(LATE, values)
    assert (first.p_value, first.interval) == (second.p_value, second.interval)


@pytest.mark.parametrize(
    ("steps", "values", "options", "error", "words"),
    [
        (LATE, np.zeros((3, 50)), {}, ArgumentError, r"\(50,\) or \(50, series\)"),
        (LATE[::-1], np.zeros(50), {}, ArgumentError, "steps must increase"),
        (LATE, np.full(50, np.inf), {}, NonFiniteError, "infinite"),
        (LATE, np.zeros(50), {"level": 1.0}, ArgumentError, "level"),
        (LATE, np.zeros(50), {"n_draws": 3}, ArgumentError, "n_draws"),
        (LATE, np.zeros(50), {"reference_index": 50}, ArgumentError, "reference_index"),
    ],
)
def test_bad_input_is_named(steps, values, options, error, words):
    with pytest.raises(error, match=words):
        regimes(steps, values, **options)
