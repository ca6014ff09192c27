"""A finite answer or a clear error for every degenerate matrix."""

import warnings

import numpy as np
import pytest
import torch

from ontogeny import concepts
from ontogeny.errors import ArgumentError, NonFiniteError

X = np.random.default_rng(0).normal(size=(40, 12))
COLUMN, ROW = np.arange(12) % 3 == 0, (np.arange(40) % 4 == 0)[:, None]
CASES = {
    "duplicated rows": np.repeat(X[:5], 8, axis=0),
    "dead columns": np.where(COLUMN, 0, X),
    "dead rows": np.where(ROW, 0, X),
    "constant": np.ones_like(X),
    "constant features": np.where(COLUMN, 7, X),
    "zero": np.zeros_like(X),
    "one sample": X[:1],
    "fewer samples than concepts": X[:3],
    "wide": X[:6],
    "one feature": X[:, :1],
    "float16": X.astype(np.float16),
    "float32 of 1e-20": (X * 1e-20).astype(np.float32),
    "float32 of 1e20": (X * 1e20).astype(np.float32),
    "float64 of 1e-200": X * 1e-200,
    "float64 of 1e200": X * 1e200,
    "features of all magnitudes": X * 10.0 ** np.linspace(-20, 20, 12),
    "one huge feature": np.where(np.arange(12) == 3, X + 1e4, X).astype(np.float32),
}


def make(name, r):
    options = {"nmf": {"nonnegative": "relu"}, "sae": {"epochs": 2}}.get(name, {})
    if name in ("nmf", "semi-nmf", "sparse-pca", "dictionary", "ica"):
        options["max_iter"] = 40
    return concepts.make(name, r, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", concepts.names())
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("r", [2, 15])
def test_finite_or_a_clear_error(name, case, r):
    A = CASES[case]
    est = make(name, r)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", message=".*did not converge")
        if name == "kmeans" and len(A) < r:
            with pytest.raises(ArgumentError, match="n_samples"):
                est.fit(A)
            return
        U = est.fit_transform(A)
    for value in (U, est.transform(A), est.components_, est.inverse_transform(U)):
        assert np.isfinite(value).all()
    assert np.isfinite(est.reconstruction_error_) and 0 <= est.relative_error_ <= 1.5
    np.testing.assert_allclose(
        est.transform(A) / (np.abs(U).max() or 1), U / (np.abs(U).max() or 1), atol=1e-4
    )


@pytest.mark.parametrize(
    "name", [n for n in concepts.names() if n not in ("sparse-pca", "dictionary")]
)
def test_the_scale_of_the_activations_does_not_matter(name):
    """Penalties have units; all others give the same answer at 2^66 times the size, to the bit."""
    plain, huge = make(name, 3), make(name, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        U, V = plain.fit_transform(X * 2.0**30), huge.fit_transform(X * 2.0**90)
    np.testing.assert_allclose(
        huge.inverse_transform(V),
        plain.inverse_transform(U) * 2.0**60,
        rtol=1e-9,
        atol=0,
    )


@pytest.mark.parametrize(
    "name", ["nmf", "semi-nmf", "convex-nmf", "kmeans", "dictionary"]
)
def test_no_concept_is_left_dead_where_each_has_a_use(name):
    rng = np.random.default_rng(1)
    A = np.abs(rng.normal(size=(200, 30)))
    options = {"dictionary": {"alpha": 0.1}}.get(name, {})
    est = concepts.make(name, 12, **options)
    U = est.fit_transform(A)
    assert (np.abs(U).max(axis=0) > 0).all()
    assert (np.abs(est.components_).max(axis=1) > 0).all()


def test_float16_gives_float32():
    est = concepts.make("pca", 2)
    assert est.fit_transform(X.astype(np.float16)).dtype == np.float32


@pytest.mark.parametrize("size", [1e-43, 1e-35, 3e38])
def test_sizes_that_leave_no_room_for_products_are_refused(size):
    tiny_or_huge = (X / np.abs(X).max() * size).astype(np.float32)
    for name in concepts.names():
        with pytest.raises(
            ArgumentError, match="largest entry of X must lie between 1e-30 and"
        ):
            make(name, 2).fit(tiny_or_huge)


@pytest.mark.parametrize("name", concepts.names())
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_a_dictionary_without_a_place_in_float32_says_so(name, size):
    est = make(name, 2)
    if name in ("dictionary", "sparse-pca"):
        est.set_params(alpha=size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est.fit(X * size)
    with pytest.raises(
        NonFiniteError, match="too large or small for float32; give X in float64"
    ):
        est.transform(X.astype(np.float32))


def test_codes_that_overflow_are_said_to():
    est = make("pca", 2).fit(X.astype(np.float32))
    with pytest.raises(NonFiniteError, match="codes of X leave the range of float32"):
        est.transform(3e38 * np.sign(est.components_[:1]))


@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_variances_in_single_precision_neither_overflow_nor_vanish(size):
    A = (X * size).astype(np.float32)
    expected = concepts.make("pca", 3).fit(A.astype(np.float64)).explained_variance_
    found = concepts.make("pca", 3).fit(A).explained_variance_
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    tensor = concepts.make("pca", 3).fit(torch.tensor(A)).explained_variance_
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("nonnegative", ["codes", "dictionary"])
@pytest.mark.parametrize("r", [13, 20, 30])
def test_semi_nmf_in_single_precision_survives_more_concepts_than_features(
    nonnegative, r
):
    """Rounding fills the null space of second moments; it must not be taken for a direction."""
    A = np.random.default_rng(0).laplace(size=(40, 12)).astype(np.float32)
    assert (
        concepts.make("semi-nmf", r, nonnegative=nonnegative).fit(A).relative_error_
        < 2e-3
    )


@pytest.mark.parametrize("name", ["nmf", "convex-nmf", "semi-nmf"])
@pytest.mark.parametrize("strict", [True, False])
def test_codes_that_are_not_unique_are_found_again(name, strict):
    options = {"strict_convex": strict} if name == "convex-nmf" else {}
    for A in (np.outer(X[:, 0], X[0]), np.repeat(X[:, :1], 12, axis=1)):
        est = make(name, 3).set_params(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            U = est.fit_transform(A)
        np.testing.assert_allclose(est.transform(A), U, atol=1e-6 * np.abs(U).max())


@pytest.mark.parametrize("name", ["svd", "pca", "ica"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2000, 8), (8, 2000)])
def test_concepts_beyond_the_rank_are_zero_and_not_rounding(name, dtype, shape):
    rng = np.random.default_rng(4)
    A = rng.laplace(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1]))
    est = make(name, 5)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge")
        U = est.fit_transform(A.astype(dtype))
    assert (np.abs(est.components_).max(axis=1) > 0).tolist() == [True] * 3 + [
        False
    ] * 2
    assert (U[:, 3:] == 0).all() and est.relative_error_ < 1e-5
