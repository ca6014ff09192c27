"""TwoNN: against closed forms, scikit-dimension, its own nulls, and where it is blind."""

from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from ontogeny import concepts
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.geometry import (
    SpectrumOnlyWarning,
    two_nn,
    two_nn_blocks,
    two_nn_calibrated,
    two_nn_null,
)
from ontogeny_papers.geometry.neighbour_ratios import METHODS, estimate, two_nearest


def points(n=300, m=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m))


def test_two_nearest_are_those_of_the_full_distance_matrix():
    X = points(200, 5)
    full = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(full, np.inf)
    # Differences of coordinates of order 1, squared and added: rounding alone, far below 1e-10.
    np.testing.assert_allclose(two_nearest(X), np.sort(full, axis=1)[:, :2], rtol=1e-10)


def test_points_much_nearer_to_each_other_than_to_the_origin_keep_their_digits():
    X = points(100, 3) * 1e-4
    near, far = two_nearest(X), two_nearest(X + 1e3)
    assert np.allclose(near, far, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_exact_pareto_ratios_give_their_exponent(method):
    # Points on a line whose two nearest neighbours have mu at the quantiles of mu^-d.
    n, d = 20_000, 4.0
    quantile = (np.arange(1, n + 1) - 0.5) / n
    logs = -np.log1p(-quantile) / d
    assert estimate(logs[None], method, 0.0)[0] == pytest.approx(d, rel=2e-3)
    assert estimate(logs[None], method, 0.05)[0] == pytest.approx(d, rel=2e-3)


@pytest.mark.parametrize(
    ("method", "shift"), [("regression", 0.5), ("origin", 0.5), ("facco", 0)]
)
@pytest.mark.parametrize("discard", [0.0, 0.1])
def test_a_line_gives_its_slope_at_the_quantiles_of_its_method(method, shift, discard):
    n, d = 30, 4.0
    # J/n: the last is left out.
    share = np.minimum((np.arange(1, n + 1) - shift) / n, 1 - 1e-9)
    logs = -np.log1p(-share) / d
    # A slope over 30 logarithms of order 1: far from ill conditioned, and far below 1e-10.
    assert estimate(logs[None], method, discard)[0] == pytest.approx(d, rel=1e-10)


def shapes():
    skdim = pytest.importorskip("skdim")
    from sklearn.datasets import load_digits

    return {
        "ball": skdim.datasets.hyperBall(1000, 5, random_state=0),
        "sphere": skdim.datasets.hyperSphere(1000, 4, random_state=0),
        "swiss roll": skdim.datasets.swissRoll3Sph(1000, 0, random_state=0),
        "digits": load_digits().data,
    }


@pytest.mark.parametrize("shape", ["ball", "sphere", "swiss roll", "digits"])
def test_agrees_with_scikit_dimension(shape):
    skdim = pytest.importorskip("skdim")
    X = shapes()[shape]
    theirs = skdim.id.TwoNN(discard_fraction=0.1).fit(X).dimension_
    found = {m: two_nn(X, m, discard=0.1, n_draws=0).value for m in ("facco", "origin")}
    if version("scikit-dimension") >= "0.5":  # (j - 1)/n before
        assert found["facco"] == pytest.approx(theirs, rel=1e-9)
    assert found["origin"] == pytest.approx(theirs, rel=0.01)


def test_known_dimensions_lie_within_the_errors():
    skdim = pytest.importorskip("skdim")
    for d in (1, 2, 4):
        sphere = skdim.datasets.hyperSphere(1000, d, random_state=1)
        found = two_nn(sphere, n_draws=0)
        assert abs(found.value - d) < 3 * found.stderr + 0.05 * d


@pytest.mark.parametrize("method", ["regression", "origin", "likelihood"])
def test_the_standard_error_is_the_spread_over_samples(method):
    rng = np.random.default_rng(3)
    found = [two_nn(rng.uniform(size=(150, 3)), method, n_draws=0) for _ in range(150)]
    spread = np.std([f.value for f in found])
    assert 0.75 < np.mean([f.stderr for f in found]) / spread < 1.4


def test_a_hundred_points_in_768_dimensions_look_like_131():
    regression = two_nn_null(100, 768, n_draws=60)
    likelihood = two_nn_null(100, 768, "likelihood", n_draws=60)
    assert regression.mean() == pytest.approx(131, abs=3 * 17 / 60**0.5)
    assert regression.std() == pytest.approx(17, abs=5)
    assert likelihood.mean() == pytest.approx(122, abs=3 * 12 / 60**0.5)
    shown = two_nn(points(100, 768), n_draws=20)
    assert shown.null == pytest.approx(131, abs=15) and 10 < shown.null_sd < 25


def test_calibration_names_the_dimensions_that_look_alike():
    table = two_nn_calibrated(two_nn(points(100, 30), n_draws=0), [5, 30, 300])
    assert table.compatible.values.tolist() == [False, True, False]


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_rotation_scale_and_shift_change_nothing(seed, scale):
    X = points(40, 4, seed)
    Q = ortho_group.rvs(4, random_state=seed)
    moved = scale * (X @ Q + 3.0)
    assert two_nn(moved, n_draws=0).value == pytest.approx(
        two_nn(X, n_draws=0).value, rel=1e-6
    )


def test_duplicates_are_dropped_and_counted():
    X = points(60)
    found = two_nn(np.concatenate([X, X[:5]]), n_draws=0)
    assert (found.points, found.duplicates) == (55, 10)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_duplicates_do_not_move_the_estimate(share):
    values, errors = [], []
    for seed in range(10):
        X = points(400, 3, seed)
        once, doubled = X[int(share * 400) :], X[: int(share * 400)]
        found = two_nn(np.concatenate([X, doubled]), n_draws=0)
        assert found.value == pytest.approx(two_nn(once, n_draws=0).value, rel=1e-10)
        values.append(found.value)
        errors.append(found.stderr)
    assert np.mean(values) == pytest.approx(3, abs=3 * np.mean(errors) / 10**0.5)


def test_the_null_has_as_many_points_as_the_estimate():
    X = np.concatenate([points(40, 200), np.zeros((60, 200))])  # 60 dead concepts
    found = two_nn(X, n_draws=10)
    assert found.points == 40
    assert found.null == pytest.approx(two_nn_null(40, 200, n_draws=10).mean())


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e200, 1e300])
def test_very_small_and_large_points_are_measured_alike(scale):
    X = points()
    assert two_nn(X * scale, n_draws=0).value == pytest.approx(
        two_nn(X, n_draws=0).value, rel=1e-6
    )


def test_points_on_a_grid_have_no_dimension():
    with pytest.raises(ArgumentError, match="48 of 50 points are equally far"):
        two_nn(np.arange(50.0)[:, None])


def test_calibration_discards_what_the_estimate_discarded():
    found = two_nn(points(100, 30), "origin", discard=0.2, n_draws=0)
    table = two_nn_calibrated(found, [30], n_draws=5)
    alike = two_nn_null(100, 30, "origin", discard=0.2, n_draws=5)
    assert float(table.expected[0]) == pytest.approx(alike.mean())


def test_nothing_but_duplicates_is_refused():
    with pytest.raises(ArgumentError, match="20 coincide"):
        two_nn(np.ones((20, 3)))


def test_orthonormal_dictionaries_are_undefined():
    A = np.random.default_rng(0).normal(size=(200, 40)).astype(np.float32)
    W = concepts.make("pca", n_concepts=20).fit(A).components_
    with pytest.raises(ArgumentError, match="undefined"):
        two_nn(W)


def test_one_steps_svd_dictionary_measures_its_spectrum_only():
    A = np.random.default_rng(0).normal(size=(200, 40))
    W = concepts.make("svd", n_concepts=20).fit(A).components_
    with pytest.warns(SpectrumOnlyWarning):
        found = two_nn(W, n_draws=0)
    # Other orthogonal rows of the same norms give the same number.
    other = np.diag(np.linalg.norm(W, axis=1)) @ np.eye(20, 40)
    with pytest.warns(SpectrumOnlyWarning):
        assert two_nn(other, n_draws=0).value == pytest.approx(found.value, rel=1e-4)


def test_blocks_of_a_plane_agree_and_noise_at_small_scale_shows():
    rng = np.random.default_rng(0)
    plane = np.concatenate([rng.uniform(size=(1024, 2)), np.zeros((1024, 8))], axis=1)
    clean = two_nn_blocks(plane, smallest=64)
    noisy = two_nn_blocks(plane + 0.01 * rng.standard_normal(plane.shape), smallest=64)
    assert abs(clean.dimension - 2).max() < 0.5
    assert float(noisy.dimension[0]) > float(noisy.dimension[-1]) + 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: two_nn(points(4)), "at least 5 points"),
        (lambda: two_nn(points()[:, 0]), "2 dimensions"),
        (lambda: two_nn(points(), "mle"), "method"),
        (lambda: two_nn(points(), discard=0.7), "discard"),
        (lambda: two_nn(points(), n_draws=1), "n_draws"),
        (lambda: two_nn_null(3, 5), "n must be"),
        (lambda: two_nn_null(30, 5.5), "m must be a whole number"),
        (lambda: two_nn_null(30, 5, n_draws="9"), "n_draws must be a whole number"),
        (lambda: two_nn(points(), n_draws=np.nan), "n_draws must be a whole number"),
        (
            lambda: two_nn_blocks(points(), smallest=32.0),
            "smallest must be a whole number",
        ),
        (lambda: two_nn_null(30, 5, discard=0.9), "discard"),
        (lambda: two_nn_calibrated(two_nn(points(), n_draws=0), []), "dims"),
        (lambda: two_nn_calibrated(two_nn(points(), n_draws=0), [0, 3]), "dims"),
        (lambda: two_nn_calibrated(two_nn(points(), n_draws=0), [2.5]), "dims"),
        (
            lambda: two_nn_calibrated(two_nn(points(), n_draws=0), [2], n_draws=1),
            "n_draws",
        ),
        (lambda: two_nn_blocks(points(20), smallest=32), "smallest"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_nan_is_refused():
    X = points()
    X[3, 2] = np.nan
    with pytest.raises(NonFiniteError, match="X holds 1 NaN"):
        two_nn(X)


def test_the_same_seed_gives_the_same_numbers_and_tensors_are_taken():
    import torch

    X = points()
    assert two_nn(X, random_state=3) == two_nn(torch.from_numpy(X), random_state=3)
