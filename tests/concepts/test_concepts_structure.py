"""Equivalent solutions, canonical forms, stacks, streams and Lipschitz estimates."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny import concepts
from ontogeny.concepts import (
    canonical_form,
    fit_batches,
    fit_stack,
    local_lipschitz,
    sample_rows,
    structure,
)
from ontogeny.errors import ArgumentError

RNG = np.random.default_rng(0)
A = RNG.laplace(size=(80, 5)) @ (RNG.normal(size=(5, 10)) * np.arange(5, 0, -1)[:, None])
A = A + 0.3 * RNG.normal(size=A.shape) + 0.5
OPTIONS = {"nmf": {"nonnegative": "relu"}, "sae": {"epochs": 2}}


def make(name, r=3, **options):
    return concepts.make(name, r, **{**OPTIONS.get(name, {}), **options})


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(concepts.names()))
def test_canonical_form_undoes_exactly_what_the_structure_allows(seed, name):
    rng = np.random.default_rng(seed)
    U, W = rng.normal(size=(12, 4)), rng.normal(size=(7, 4))
    rules = structure(name)
    first = canonical_form(U, W, name)
    order = rng.permutation(4) if rules.permutation else np.arange(4)
    size = rng.uniform(0.5, 2, size=4) if rules.scaling == "positive" else np.ones(4)
    sign = rng.choice([-1, 1], size=4) if rules.sign else np.ones(4)
    second = canonical_form((U * size * sign)[:, order], (W / size * sign)[:, order], name)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(first[0] @ first[1].T, U @ W.T, atol=1e-12)


@pytest.mark.parametrize("name", concepts.names())
def test_fits_come_in_canonical_form(name):
    options = {"ica": {"max_iter": 2000}, "convex-nmf": {"strict_convex": False}}.get(name, {})
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
    X = rng.laplace(size=(500, 3)) @ rng.normal(size=(3, 10)) + 0.01 * rng.normal(size=(500, 10))
    tight = {"tol": 1e-9} if name == "ica" else {}
    start = make(name).fit(X).components_.T if drawn else None
    W = make(name, **tight).fit(X, init_dictionary=start).components_
    V = make(name, **tight).fit(X[rng.permutation(500)], init_dictionary=start).components_
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
    assert structure("ica").rotation == "no" and structure("pca").rotation == "if repeated"


@pytest.mark.filterwarnings("ignore:.*did not converge")  # ICA, with this few samples
@pytest.mark.parametrize("name", concepts.names())
@pytest.mark.parametrize("together", [True, False])
def test_a_stack_gives_what_its_matrices_give_alone(name, together):
    rng = np.random.default_rng(4)
    stack = np.stack([A, A * 2.0**40, A + rng.normal(size=A.shape)])
    if name in ("dictionary", "sparse-pca"):
        stack[1] = A * 2.0
    fitted, codes = fit_stack(make(name), stack, together=together)
    for matrix, est, U in zip(stack, fitted, codes, strict=True):
        alone = make(name)
        V = alone.fit_transform(matrix)
        np.testing.assert_allclose(
            est.components_, alone.components_, atol=1e-7 * np.abs(alone.components_).max()
        )
        np.testing.assert_allclose(U, V, atol=1e-7 * np.abs(V).max())
        assert est.n_iter_ == alone.n_iter_ and est.converged_ == alone.converged_
        np.testing.assert_allclose(est.transform(matrix), U, atol=1e-7 * np.abs(V).max())


VARIANTS = [
    ("nmf", {"nonnegative": "split"}),
    ("nmf", {"nonnegative": "shift"}),
    ("convex-nmf", {"variant": "multiplicative"}),
    ("convex-nmf", {"strict_convex": False, "landmarks": 30}),
    ("convex-nmf", {"tol": 1e-3}),
    ("semi-nmf", {"nonnegative": "dictionary"}),
    ("sparse-pca", {"sparse": "codes"}),
    ("ica", {"fun": "cube", "max_iter": 2000}),
    ("kmeans", {"n_init": 2}),
    ("sae", {"variant": "topk", "k": 2}),
    ("sae", {"variant": "batchtopk", "k": 2}),
    ("sae", {"variant": "jumprelu"}),
]


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stack_of_any_variant_from_any_start_gives_the_same(name, options, warm, dtype):
    stack = np.stack([A, A[::-1] * 0.5 + 1, 2 * A]).astype(dtype)
    start = None
    if warm:
        W = make(name, **options).fit(stack[0]).components_.T
        start = np.stack([W, W, 2 * W])
    fitted, codes = fit_stack(make(name, **options), stack, init_dictionary=start, together=True)
    for k, (matrix, est, U) in enumerate(zip(stack, fitted, codes, strict=True)):
        alone = make(name, **options)
        V = alone.fit_transform(matrix, init_dictionary=None if start is None else start[k])
        assert est.converged_ == alone.converged_
        np.testing.assert_allclose(est.relative_error_, alone.relative_error_, rtol=1e-4)
        # Products of BLAS are rounded by where in memory their factors lie; in single precision
        # that may let a solver stop an iteration sooner.
        exact = 1e-5 if dtype == np.float64 else 5e-3
        for one, other in ((est.components_, alone.components_), (U, V)):
            np.testing.assert_allclose(one, other, atol=exact * np.abs(other).max())


def test_a_stack_of_tensors_gives_tensors_and_checks_its_starts():
    stack = torch.tensor(np.stack([A, A + 1]))
    fitted, codes = fit_stack(make("dictionary"), stack)
    assert isinstance(codes, torch.Tensor) and isinstance(fitted[0].components_, torch.Tensor)
    with pytest.raises(ArgumentError, match=r"\(K, m, r\) = \(2, 10, 3\)"):
        fit_stack(make("dictionary"), stack, init_dictionary=torch.ones(2, 3, 10))


@pytest.mark.parametrize("name", ["svd", "pca"])
@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(1, 79), max_size=5, unique=True), offset=st.sampled_from([0.0, 1e4])
)
def test_batches_are_exact(name, cuts, offset):
    matrix = A + offset
    streamed = make(name)
    for part in np.split(matrix, sorted(cuts)):
        streamed.partial_fit(part)
    whole = make(name).fit(matrix)
    np.testing.assert_allclose(
        streamed.components_, whole.components_, atol=1e-6 * np.abs(whole.components_).max()
    )
    np.testing.assert_allclose(streamed.transform(matrix), whole.transform(matrix), atol=1e-4)
    tolerance = 1e-6 * np.linalg.norm(matrix)
    np.testing.assert_allclose(
        streamed.reconstruction_error_, whole.reconstruction_error_, atol=tolerance
    )


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", concepts.names())
def test_every_extractor_can_be_fitted_to_batches(name):
    est = fit_batches(
        make(name), (torch.tensor(A[i : i + 20]) for i in range(0, 80, 20)), max_tokens=50
    )
    assert torch.isfinite(est.transform(torch.tensor(A))).all()
    with pytest.raises(ArgumentError, match="at least one array"):
        fit_batches(make(name), [])


def test_kmeans_on_batches_comes_close_to_kmeans():
    est = fit_batches(concepts.make("kmeans", 4), [A[RNG.permutation(80)] for _ in range(10)])
    whole = concepts.make("kmeans", 4, n_init=5).fit(A)
    fitted = est.inverse_transform(est.transform(A))
    assert np.linalg.norm(A - fitted) <= 1.2 * whole.reconstruction_error_


def test_sampled_rows_are_uniform_and_in_order():
    rows = np.arange(1000.0)[:, None]
    kept = sample_rows(np.split(rows, [100, 700]), 200, random_state=3)[:, 0]
    assert len(kept) == 200 == len(set(kept)) and (np.diff(kept) > 0).all()
    assert abs(kept.mean() - 499.5) < 5 * 1000 / np.sqrt(12 * 200)
    np.testing.assert_array_equal(sample_rows([rows], 5000), rows)


def test_lipschitz_constant_of_the_svd_reconstruction_is_at_most_about_one_for_a_dominant_space():
    """With a wide gap the projection barely turns: the reconstruction moves with A, not more."""
    M = RNG.normal(size=(30, 2)) @ RNG.normal(size=(2, 8)) * 100 + 0.01 * RNG.normal(size=(30, 8))
    found = local_lipschitz(concepts.make("svd", 2), M, output="reconstruction", n_directions=5)
    assert 0.1 < found.value <= 1.01 and len(found.ratios) == 5
    np.testing.assert_allclose(found.radius, 1e-4 * np.linalg.norm(M))
    np.testing.assert_allclose(np.linalg.norm(found.direction), 1)

    def project(X):
        est = concepts.make("svd", 2)
        return est.inverse_transform(est.fit_transform(X))

    moved = project(M + found.radius * found.direction) - project(M)
    np.testing.assert_allclose(np.linalg.norm(moved) / found.radius, found.value)


def test_a_fixed_number_of_iterations_makes_convex_nmf_lipschitz():
    """Sec. 8.6: the ratio settles as the radius shrinks, for codes and dictionary."""
    est = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=30)
    values = [
        local_lipschitz(est, A, relative_radius=radius, n_directions=3).value
        for radius in (1e-6, 1e-7, 1e-8)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-2)


def test_a_tolerance_breaks_it():
    """At a tolerance where the count of iterations flips, a tiny change of A moves W by a step."""
    ten = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=10).fit(A)
    nine = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=9).fit(A)
    at_the_edge = (nine.objective_ - ten.objective_) / ten.objective_
    est = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=500, tol=at_the_edge)
    found = local_lipschitz(est, A, relative_radius=1e-9, n_directions=8)
    assert len(set(found.n_iter)) > 1, "the perturbations straddle the tolerance"
    fixed = concepts.make("convex-nmf", 3, variant="multiplicative", max_iter=10)
    assert found.value > 1e3 * local_lipschitz(fixed, A, relative_radius=1e-9, n_directions=8).value


def test_lipschitz_arguments_are_checked():
    with pytest.raises(ArgumentError, match="relative_radius"):
        local_lipschitz(make("svd"), A, relative_radius=0)
    with pytest.raises(ArgumentError, match="must not be zero"):
        local_lipschitz(make("svd"), A * 0)
    with pytest.raises(ArgumentError, match="random_state"):
        local_lipschitz(make("ica").set_params(random_state=np.random.RandomState(0)), A)
