"""A finite answer or a clear error for every degenerate matrix."""

import warnings

import numpy as np
import pytest

from ontogeny import concepts
from ontogeny.errors import ArgumentError

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
        huge.inverse_transform(V), plain.inverse_transform(U) * 2.0**60, rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("name", ["nmf", "semi-nmf", "convex-nmf", "kmeans", "dictionary"])
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
