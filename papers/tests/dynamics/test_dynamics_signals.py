"""Two series beside each other: correlations, warping, information, and their surrogates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from sklearn.feature_selection import mutual_info_regression

from helpers.series_examples import EARLY, LATE, planted
from ontogeny.dynamics import compare_signals, dtw, mutual_information, standardise
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.dynamics.surrogates import random_factors


def warped(x, y):
    """The definition, cell by cell (footnote 37)."""
    total = np.full((len(x) + 1, len(y) + 1), np.inf)
    total[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            before = min(total[i - 1, j], total[i, j - 1], total[i - 1, j - 1])
            total[i, j] = abs(x[i - 1] - y[j - 1]) + before
    return total[-1, -1]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 100))
def test_warping_is_its_definition(n, m, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n), rng.normal(size=m)
    assert dtw(x, y) == pytest.approx(warped(x, y))
    assert dtw(x, y) == pytest.approx(dtw(y, x))
    assert dtw(x, x) == 0


def test_warping_of_many_series():
    x, y = np.random.default_rng(0).normal(size=(2, 5, 20))
    assert np.allclose(dtw(x, y), [dtw(a, b) for a, b in zip(x, y, strict=True)])


def test_information_is_near_another_librarys_and_near_the_truth():
    rng = np.random.default_rng(0)
    for r in (0.0, 0.5, 0.9):
        x, e = rng.normal(size=(2, 400))
        y = r * x + np.sqrt(1 - r**2) * e
        ours = mutual_information(x, y, n_shuffles=0)
        theirs = mutual_info_regression(x[:, None], y, n_neighbors=3, random_state=0)[0]
        assert max(float(ours), 0) == pytest.approx(theirs, abs=0.02)
        assert mutual_information(x, y) == pytest.approx(
            -np.log(1 - r**2) / 2, abs=0.12
        )


def test_information_of_independent_short_series_is_nothing_on_average():
    x = np.random.default_rng(0).normal(size=(200, 2, 24))
    found = np.array([mutual_information(a, b, n_shuffles=20) for a, b in x])
    assert abs(found.mean()) < 4 * found.std() / np.sqrt(200)


def test_information_does_not_see_scale_and_of_a_constant_is_nothing():
    x, y = np.random.default_rng(0).normal(size=(2, 60))
    assert mutual_information(x, 5 - 2 * y) == pytest.approx(
        float(mutual_information(x, y))
    )
    assert mutual_information(x, np.ones(60)) == 0


def test_factors_have_unit_variance_and_a_short_memory():
    f = random_factors(50_000, 9, np.random.default_rng(0))
    found = (f[:, :1] * f).mean(axis=0)
    assert np.allclose(found, [1, 0.75, 0.5, 0.25, 0, 0, 0, 0, 0], atol=0.03)


def test_plain_correlations_are_scipys():
    rng = np.random.default_rng(0)
    x, y = planted("exponential", "independent", EARLY, 2, 0.1, rng)
    found = compare_signals(x, y, EARLY)
    assert found.pearson == pytest.approx(pearsonr(x, y)[0])
    assert found.spearman == pytest.approx(spearmanr(x, y)[0])
    assert found.dtw == pytest.approx(warped(standardise(x), standardise(y)))
    assert found.n == 24


def test_independent_decays_are_correlated_but_not_related():
    rng = np.random.default_rng(1)
    x, y = (
        planted("exponential", "independent", LATE, 60, 0.01, rng).T for _ in range(2)
    )
    found = compare_signals(x, y, LATE, n_draws=199)
    assert np.median(np.abs(found.pearson)) > 0.85
    shuffled = [
        np.abs(pearsonr(a, rng.permutation(b))[0])
        for a, b in zip(x.T, y.T, strict=True)
    ]
    # What shuffling would say.
    assert np.mean(np.array(shuffled) < np.abs(found.pearson)) > 0.95
    # 5 % of 60 is 3; 10 or more have a probability below 0.001
    assert (found.pearson_p <= 0.05).sum() < 10 and (
        found.spearman_p <= 0.05
    ).sum() < 10
    assert found.joint_p > 0.01
    # trends alone explain warping distance and information as well
    assert np.median(found.dtw / found.dtw_surrogates) == pytest.approx(1, abs=0.15)
    excess = found.mutual_information - found.mutual_information_surrogates
    assert abs(np.median(excess)) < 0.15


def test_decays_that_share_their_fluctuation_are_related():
    rng = np.random.default_rng(2)
    shared = 0.02 * rng.normal(size=(50, 20))
    x, y = (
        planted("exponential", "independent", LATE, 20, 0.012, rng).T for _ in range(2)
    )
    found = compare_signals(x + shared, y - 0.8 * shared, LATE)
    judged = found.structure_p > 0.2
    assert judged.mean() > 0.3 and (found.pearson_p[judged] <= 0.05).mean() >= 0.7
    assert (found.fluctuation_pearson < 0).all() and (found.pearson > 0).all()
    assert found.joint_p < 0.01 and found.joint_pearson < -0.4


def test_many_weak_relations_are_found_jointly():
    rng = np.random.default_rng(1)  # in most seeds chance looks like a shared schedule
    shared = 0.012 * rng.normal(size=(24, 8))
    x, y = (planted("sigmoid", "independent", EARLY, 8, 0.02, rng).T for _ in range(2))
    found = compare_signals(x + shared, y + shared, EARLY)
    assert found.joint_p < 0.05 and found.joint_p < np.nanmedian(found.pearson_p)


def test_curves_without_noise_cannot_be_tested():
    found = compare_signals(np.exp(-LATE / 1e5), np.exp(-LATE / 2e5), LATE)
    assert found.pearson > 0.9 and np.isnan(found.pearson_p) and np.isnan(found.joint_p)
    assert found.reason == "no noise in x and y distinguishable from the trend"


def test_one_pair_gives_numbers_and_many_give_the_same_in_arrays():
    rng = np.random.default_rng(4)
    x, y = (planted("power law", "memory .5", EARLY, 3, 0.03, rng).T for _ in range(2))
    whole, alone = (
        compare_signals(x, y, EARLY),
        compare_signals(x[:, 1], y[:, 1], EARLY),
    )
    assert isinstance(alone.pearson, float) and isinstance(alone.reason, str)
    for name in ("pearson", "pearson_p", "spearman_p", "dtw", "mutual_information"):
        assert getattr(whole, name)[1] == pytest.approx(
            getattr(alone, name), nan_ok=True
        )


def test_shift_and_scale_change_nothing_and_a_sign_only_the_sign():
    rng = np.random.default_rng(5)
    x, y = planted("exponential", "independent", EARLY, 2, 0.05, rng)
    plain, moved = (
        compare_signals(x, y, EARLY),
        compare_signals(3 * x + 1, 2 - y, 10 * EARLY),
    )
    assert moved.pearson == pytest.approx(-plain.pearson)
    assert moved.pearson_p == pytest.approx(plain.pearson_p)
    assert moved.fluctuation_spearman == pytest.approx(-plain.fluctuation_spearman)


def test_missing_steps_are_left_out_of_both():
    rng = np.random.default_rng(6)
    x, y = planted("exponential", "independent", LATE, 2, 0.05, rng)
    holes = x.copy()
    holes[[4, 20]] = np.nan
    there = ~np.isnan(holes)
    found = compare_signals(holes, y, LATE, reference_index=49)
    there[49] = False
    assert found.n == 47 and found.pearson == pytest.approx(
        pearsonr(x[there], y[there])[0]
    )


def test_standardise():
    x = np.random.default_rng(0).normal(3, 5, size=(20, 3))
    x[4, 1] = np.nan
    found = standardise(x)
    assert np.allclose(np.nanmean(found, axis=0), 0) and np.allclose(
        np.nanstd(found, axis=0), 1
    )
    with pytest.raises(ArgumentError, match="constant"):
        standardise(np.ones(5))


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "words"),
    [
        (np.zeros(50), np.zeros(49), {}, ArgumentError, "both be"),
        (np.arange(50), np.ones(50), {}, ArgumentError, "y must not be constant"),
        (np.arange(8), np.arange(8), {}, ArgumentError, "share at least 10"),
        (np.arange(50), np.full(50, np.inf), {}, NonFiniteError, "infinite"),
        (
            np.arange(50),
            np.arange(50),
            {"steps": np.arange(3)},
            ArgumentError,
            "x must have shape",
        ),
        (np.arange(50), np.arange(50), {"n_draws": 5}, ArgumentError, "n_draws"),
        (
            np.arange(50),
            np.arange(50),
            {"half_window": -1},
            ArgumentError,
            "half_window",
        ),
        (np.arange(50), np.arange(50), {"neighbours": 0}, ArgumentError, "neighbours"),
    ],
)
def test_bad_input_is_named(x, y, options, error, words):
    with pytest.raises(error, match=words):
        compare_signals(x, y, **options)


def test_bad_series_for_warping_are_named():
    with pytest.raises(NonFiniteError, match="finite"):
        dtw([np.nan], [0.0])
