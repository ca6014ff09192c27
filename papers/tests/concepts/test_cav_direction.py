"""CAV against scikit-learn, its own optimality, and planted directions."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from ontogeny.concepts import CAV
from ontogeny.errors import ArgumentError


def labelled(n=200, m=12, gap=1.0, seed=0):
    """Activations with a planted unit direction, an offset and unequal scales."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    planted = rng.normal(size=m)
    planted /= np.linalg.norm(planted)
    A = rng.normal(size=(n, m)) * np.logspace(0, -1, m) + 0.3
    return A + gap * np.where(y == 1, 1, -1)[:, None] * planted, y, planted


def gradient(A, y, cav):
    """Gradient of the stated objective at the fit, by automatic differentiation in float64."""
    v = torch.tensor(cav.coef_[0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor(cav.intercept_, dtype=torch.float64, requires_grad=True)
    s = torch.tensor(np.where(y == cav.classes_[1], 1.0, -1.0))
    loss = torch.nn.functional.softplus(-s * (torch.tensor(A) @ v + b)).mean()
    (loss + cav.l2 * v.square().sum()).backward()
    return np.append(v.grad.numpy(), b.grad.numpy() if cav.intercept else [])


def estimators():
    return [
        CAV(),
        CAV(intercept=True),
        CAV(solver="mean-difference"),
        CAV(solver="adam"),
    ]


@pytest.mark.parametrize("estimator", estimators(), ids=str)
def test_follows_the_conventions_of_scikit_learn(estimator):
    with warnings.catch_warnings():
        # The checks themselves warn about what they skip.
        warnings.simplefilter("ignore")
        if estimator.solver == "adam":
            estimator.set_params(max_iter=50)
        check_estimator(estimator)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l2", [0.3, 1e-3])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_is_the_minimiser_of_the_stated_objective(intercept, l2, scale):
    A, y, _ = labelled()
    cav = CAV(l2=l2, intercept=intercept).fit(A * scale, y)
    assert cav.converged_
    assert np.linalg.norm(gradient(A * scale, y, cav)) < 1e-7 * max(scale, 1)


@pytest.mark.parametrize("intercept", [False, True])
def test_agrees_with_logistic_regression_of_the_matching_strength(intercept):
    A, y, _ = labelled(gap=0.3)
    cav = CAV(intercept=intercept).fit(A, y)
    C = 1 / (2 * len(A) * cav.l2)
    oracle = LogisticRegression(
        C=C, fit_intercept=intercept, solver="newton-cholesky", tol=1e-12
    ).fit(A, y)
    np.testing.assert_allclose(cav.coef_, oracle.coef_, atol=1e-7)
    np.testing.assert_allclose(cav.intercept_, oracle.intercept_, atol=1e-7)
    assert (cav.predict(A) == oracle.predict(A)).all()
    np.testing.assert_allclose(cav.predict_proba(A), oracle.predict_proba(A), atol=1e-7)


def test_more_features_than_samples_and_tied_features():
    A, y, _ = labelled(n=30, m=60)
    A = np.hstack([A, A[:, :5], np.ones((30, 1))])
    cav = CAV().fit(A, y)
    assert np.linalg.norm(gradient(A, y, cav)) < 1e-7
    np.testing.assert_allclose(cav.coef_[0, :5], cav.coef_[0, 60:65], atol=1e-8)


def test_the_reports_schedule_ends_near_the_minimum_where_features_are_moderate():
    A, y, _ = labelled()
    exact, schedule = CAV().fit(A, y), CAV(solver="adam").fit(A, y)
    assert schedule.n_iter_ == 2500
    assert exact.direction_ @ schedule.direction_ > 1 - 1e-6
    # Adam's first step has one size in all entries.
    few = CAV(solver="adam", max_iter=1).fit(A, y)
    np.testing.assert_allclose(np.abs(few.coef_), 0.01, rtol=1e-4)


def test_mean_difference_is_the_difference_of_the_means():
    A, y, _ = labelled()
    cav = CAV(solver="mean-difference", intercept=True).fit(A, y)
    wanted = A[y == 1].mean(0) - A[y == 0].mean(0)
    np.testing.assert_allclose(cav.coef_[0], wanted)
    middle = (A[y == 1].mean(0) + A[y == 0].mean(0)) / 2
    # An intercept that is wrong moves it by the size of its terms.
    size = np.abs(cav.coef_[0]) @ np.abs(middle)
    assert abs(cav.decision_function(middle[None])[0]) < 1e-9 * size


@pytest.mark.parametrize("solver", ["lbfgs", "mean-difference"])
def test_a_planted_direction_is_found(solver):
    # With equal spread, the best plane's normal is the planted one.
    rng = np.random.default_rng(0)
    planted = np.eye(12)[3]
    y = np.arange(4000) % 2
    A = rng.normal(size=(4000, 12)) + np.where(y == 1, 1, -1)[:, None] * planted
    assert CAV(l2=1e-2, solver=solver).fit(A, y).direction_ @ planted > 0.98


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from(["lbfgs", "mean-difference"]))
def test_rotating_the_features_rotates_the_direction_and_swapping_labels_turns_it(
    seed, solver
):
    A, y, _ = labelled(n=60, m=6, seed=seed)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0]
    direction = CAV(solver=solver).fit(A, y).direction_
    np.testing.assert_allclose(
        CAV(solver=solver).fit(A @ Q, y).direction_, direction @ Q, atol=1e-6
    )
    np.testing.assert_allclose(
        CAV(solver=solver).fit(A, 1 - y).direction_, -direction, atol=1e-6
    )
    order = np.random.default_rng(seed).permutation(60)
    again = CAV(solver=solver).fit(A[order], y[order]).direction_
    np.testing.assert_allclose(again, direction, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_come_back_as_tensors(dtype):
    A, y, _ = labelled()
    cav = CAV().fit(torch.tensor(A, dtype=dtype), torch.tensor(y))
    assert cav.direction_.dtype == dtype and cav.coef_.shape == (1, 12)
    np.testing.assert_allclose(
        cav.direction_.numpy(), CAV().fit(A, y).direction_, atol=1e-6
    )
    predicted = cav.predict(torch.tensor(A, dtype=dtype))
    assert isinstance(predicted, torch.Tensor)
    assert (predicted.numpy() == CAV().fit(A, y).predict(A)).all()
    half = CAV().fit(torch.tensor(A).half(), torch.tensor(y))
    assert half.direction_.dtype == torch.float32


def test_labels_may_be_words():
    A, y, _ = labelled()
    words = np.array(["bad", "good"])[y]
    cav = CAV().fit(A, words)
    assert cav.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(cav.direction_, CAV().fit(A, y).direction_)
    assert set(cav.predict(torch.tensor(A))) == {"bad", "good"}


def test_shuffled_labels_lie_in_all_directions_and_are_the_same_for_any_activations():
    A, y, _ = labelled(n=400)
    random = CAV().permuted(A, y, n_draws=200)
    assert random.converged.all()
    np.testing.assert_allclose(np.linalg.norm(random.directions, axis=1), 1)
    assert abs(random.directions @ CAV().fit(A, y).direction_).mean() < 0.5
    # Reads the shuffled labels off.
    label_only = CAV().permuted(np.eye(400), y, n_draws=3).coef
    again = CAV().permuted(2 * np.eye(400), y, n_draws=3).coef
    assert (np.sign(label_only) == np.sign(again)).all()
    assert (np.sign(label_only).sum(1) == 0).all()


def test_resampling_counts_rows_as_copies_of_them():
    A, y, _ = labelled(n=40, m=4)
    fits = CAV().resampled(A, y, n_draws=1, random_state=3)
    rng = np.random.default_rng(3)
    low, high = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    times = np.zeros(40, dtype=int)
    times[low] = rng.multinomial(20, np.full(20, 1 / 20))
    times[high] = rng.multinomial(20, np.full(20, 1 / 20))
    copies = np.repeat(np.arange(40), times)
    np.testing.assert_allclose(
        fits.coef, CAV().fit(A[copies], y[copies]).coef_, atol=1e-7
    )


def test_bootstrap_cosine_tells_a_stable_direction_from_none():
    A, y, _ = labelled(n=600, gap=2.0)
    noise = np.random.default_rng(1).permutation(y)
    assert CAV().bootstrap_cosine(A, y).min() > 0.95
    assert CAV(intercept=True).bootstrap_cosine(A, noise).mean() < 0.9


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({}, np.zeros(20), "one class only: \\[0.0\\]"),
        ({}, np.arange(20) % 3, "Only binary classification"),
        ({"solver": "sgd"}, np.arange(20) % 2, "solver must be one of 'lbfgs'"),
        ({"l2": -1}, np.arange(20) % 2, "l2 must be a finite number"),
        ({"l2": float("nan")}, np.arange(20) % 2, "l2 must be a finite number"),
        (
            {"max_iter": 0},
            np.arange(20) % 2,
            "max_iter must be a whole number of at least 1",
        ),
    ],
)
def test_bad_arguments_are_refused(options, y, words):
    with pytest.raises(ArgumentError, match=words):
        CAV(**options).fit(np.random.default_rng(0).normal(size=(20, 3)), y)


def test_activations_without_a_direction_are_refused():
    with pytest.raises(ArgumentError, match="no direction between the two classes"):
        CAV().fit(np.zeros((20, 3)), np.arange(20) % 2)


def test_nan_is_refused():
    A, y, _ = labelled()
    A[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        CAV().fit(A, y)


def test_a_fit_that_cannot_end_says_so():
    A, y, _ = labelled(gap=20.0)  # separable, no penalty: the minimum lies at infinity
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        CAV(l2=0.0, max_iter=5, tol=1e-12).fit(A, y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [1e-9, 1e-6])
def test_tiny_activations_have_their_direction(scale, intercept):
    """The penalty then outweighs everything, and the minimiser is the mean difference's."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    A = rng.normal(size=(80, 4)) + np.outer(2 * y - 1, [0, 1, 0, 0])
    found = CAV(intercept=intercept).fit(scale * A, y).direction_
    wanted = CAV(solver="mean-difference").fit(A, y).direction_
    np.testing.assert_allclose(found, wanted, atol=1e-5)
