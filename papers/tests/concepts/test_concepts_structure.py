"""Equivalent solutions, canonical forms and whether the map is smooth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny import concepts, dynamics
from ontogeny.concepts import canonical_form, structure

_rng = np.random.default_rng(0)
A = _rng.laplace(size=(80, 5)) @ (
    _rng.normal(size=(5, 10)) * np.arange(5, 0, -1)[:, None]
)
A = A + 0.3 * _rng.normal(size=A.shape) + 0.5
OPTIONS = {"nmf": {"nonnegative": "relu"}, "sae": {"epochs": 2}}


def make(name, r=3, **options):
    return concepts.make(name, r, **{**OPTIONS.get(name, {}), **options})


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(concepts.names()))
def test_canonical_form_undoes_exactly_what_the_structure_allows(seed, name):
    rng = np.random.default_rng(seed)
    U, W = rng.normal(size=(12, 4)), rng.normal(size=(7, 4))
    rules = structure(name)
    first = canonical_form(U, W, name)
    order = rng.permutation(4) if rules.permutation else np.arange(4)
    size = rng.uniform(0.5, 2, size=4) if rules.scaling == "positive" else np.ones(4)
    sign = rng.choice([-1, 1], size=4) if rules.sign else np.ones(4)
    second = canonical_form(
        (U * size * sign)[:, order], (W / size * sign)[:, order], name
    )
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(first[0] @ first[1].T, U @ W.T, atol=1e-12)


@pytest.mark.parametrize("name", concepts.names())
def test_fits_come_in_canonical_form(name):
    options = {"ica": {"max_iter": 2000}, "convex-nmf": {"strict_convex": False}}.get(
        name, {}
    )
    est = make(name, 4, **options)
    U, W = est.fit_transform(A), est.components_.T
    rules = structure(name)
    if rules.sign:
        assert (W[np.abs(W).argmax(axis=0), np.arange(4)] >= 0).all()
    if "energy" in rules.canonical:
        energy = (U**2).sum(axis=0) * (W**2).sum(axis=0)
        assert (np.diff(energy) <= 1e-3 * energy[0]).all()
    if "unit columns" in rules.canonical:
        np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in concepts.names() if n != "sae"])
def test_the_order_of_samples_does_not_matter(name):
    """Starts are drawn over samples, so it does to some, but not from a given dictionary.

    The batches of a sparse autoencoder are runs of samples; it is the one left out.
    """
    drawn = name in ("nmf", "convex-nmf", "kmeans", "dictionary")
    rng = np.random.default_rng(1)
    X = rng.laplace(size=(500, 3)) @ rng.normal(size=(3, 10)) + 0.01 * rng.normal(
        size=(500, 10)
    )
    tight = {"tol": 1e-9} if name == "ica" else {}
    start = make(name).fit(X).components_.T if drawn else None
    W = make(name, **tight).fit(X, init_dictionary=start).components_
    V = (
        make(name, **tight)
        .fit(X[rng.permutation(500)], init_dictionary=start)
        .components_
    )
    np.testing.assert_allclose(W, V, atol=1e-4 * np.abs(W).max())


def test_semi_nmf_has_more_freedom_than_scaling():
    """Any invertible map that keeps the codes non-negative gives the same error."""
    est = make("semi-nmf")
    U, W = est.fit_transform(A), est.components_.T
    M = np.eye(3) + 0.1 * np.random.default_rng(0).uniform(size=(3, 3))
    V, X = U @ M, W @ np.linalg.inv(M).T
    assert (V >= 0).all() and np.allclose(V @ X.T, U @ W.T)
    assert structure("semi-nmf").rotation == "inside the orthant"


def test_ica_resolves_the_rotation_that_pca_leaves_open():
    """With equal variances any rotation is a PCA; ICA still finds the sources."""
    rng = np.random.default_rng(5)
    S = rng.laplace(size=(20_000, 2))
    turn = np.array([[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]])
    U = concepts.make("ica", 2, tol=1e-8).fit_transform(S @ turn.T)
    assert (np.abs(np.corrcoef(U.T, S.T)[:2, 2:]).max(axis=0) > 0.999).all()
    assert (
        structure("ica").rotation == "no" and structure("pca").rotation == "if repeated"
    )


def ratios(est, matrix, relative_radius=1e-4, count=3):
    """Ratios of how far the dictionary and the reconstruction move to how far `matrix` does."""

    def answer(X):
        U = est.fit_transform(X)
        return {
            "dictionary": est.components_,
            "reconstruction": est.inverse_transform(U),
        }

    directions = np.random.default_rng(0).normal(size=(count, *matrix.shape))
    return dynamics.local_constants(
        answer, matrix, directions, relative_radius=relative_radius
    )


def test_lipschitz_constant_of_the_svd_reconstruction_is_at_most_about_one_for_a_dominant_space():
    """With a wide gap the projection barely turns: the reconstruction moves with A, not more."""
    rng = np.random.default_rng(1)
    M = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)) * 100 + 0.01 * rng.normal(
        size=(30, 8)
    )
    found = ratios(concepts.make("svd", 2), M, count=5)["reconstruction"]
    assert 0.1 < found.max() <= 1.01


def test_a_fixed_number_of_iterations_makes_convex_nmf_lipschitz():
    """Sec. 8.6: the ratio settles as the radius shrinks."""
    est = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=30)
    values = [
        ratios(est, A, radius)["dictionary"].max() for radius in (1e-6, 1e-7, 1e-8)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-2)


def test_a_tolerance_breaks_it():
    """At a tolerance where the count of iterations flips, a tiny change of A moves W by a step."""
    ten = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=10).fit(A)
    nine = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=9).fit(A)
    at_the_edge = (nine.objective_ - ten.objective_) / ten.objective_
    est = concepts.make(
        "convex-nmf", 3, variant="multiplicative", max_iter=500, tol=at_the_edge
    )
    fixed = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=10)
    found, expected = (
        ratios(e, A, 1e-9, count=8)["dictionary"].max() for e in (est, fixed)
    )
    assert found > 1e3 * expected
