"""A given dictionary is taken up as it is: what a warm start keeps of it."""

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from ontogeny import concepts
from ontogeny.concepts import NMF, SAE, ConvexNMF, SemiNMF, convex
from ontogeny.concepts import sae as sae_module


def relative(A: np.ndarray, fitted: np.ndarray) -> float:
    return float(np.linalg.norm(A - fitted) / np.linalg.norm(A))


def wide_cloud(rng: np.random.Generator) -> np.ndarray:
    """Many samples around 0 in few dimensions: every direction is inside their cone."""
    return rng.normal(size=(600, 12)) @ np.diag(np.geomspace(1, 0.02, 12))


def narrow_cone(rng: np.random.Generator) -> np.ndarray:
    """Samples around one direction: a dictionary lies near an edge of their cone."""
    return rng.normal(size=12) * 4 + 0.5 * rng.normal(size=(600, 12))


@pytest.mark.parametrize("data", [wide_cloud, narrow_cone])
def test_convex_nmf_starts_from_the_dictionary_itself(data):
    rng = np.random.default_rng(0)
    A = data(rng)
    H = rng.exponential(size=(4, 600)) * (rng.uniform(size=(4, 600)) < 0.02)
    W = (H / H.sum(1, keepdims=True)) @ A
    first = ConvexNMF(4, max_iter=1, random_state=0).fit(A, init_dictionary=W.T)
    assert (first.coefficients_ >= 0).all()
    # One iteration of the solver from W can only improve on W.
    own = np.stack([nnls(W.T, a)[0] for a in A]) @ W
    assert first.relative_error_ <= 1.001 * relative(A, own)


def test_coefficients_of_a_dictionary_inside_the_cone_are_exact():
    rng = np.random.default_rng(0)
    Z = torch.tensor(wide_cloud(rng))
    H = torch.tensor(rng.exponential(size=(4, 600)))
    guess = torch.tensor(rng.exponential(size=(4, 600)))
    found = convex._reproduce(guess, H @ Z, Z)
    assert bool((found >= 0).all())
    assert float(torch.linalg.norm((found - H) @ Z) / torch.linalg.norm(H @ Z)) < 1e-4


@pytest.mark.parametrize("name", ["nmf", "semi"])
def test_rough_codes_of_a_start_do_not_cost_quality(name):
    rng = np.random.default_rng(1)
    A = rng.exponential(size=(300, 5)) @ rng.exponential(size=(5, 20))
    A = A + 0.1 * np.abs(rng.normal(size=A.shape))
    make = NMF if name == "nmf" else SemiNMF
    cold = make(5, random_state=0).fit(A)
    warm = make(5, random_state=0).fit(A, init_dictionary=cold.components_.T)
    assert warm.relative_error_ <= cold.relative_error_ * (1 + 1e-6)
    if name == "nmf":  # semi-NMF finds its start without iterations
        assert warm.n_iter_ <= cold.n_iter_


def test_a_sparse_autoencoder_takes_up_overlapping_concepts():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(30, 6)) + 0.7  # concepts that share a direction
    W /= np.linalg.norm(W, axis=0)
    U = rng.exponential(size=(800, 6)) * (rng.uniform(size=(800, 6)) < 0.1)
    A = U @ W.T
    # Hardly trained: what is seen is the start.
    sae = SAE(6, epochs=1, learning_rate=1e-9, random_state=0)
    sae.fit(A, init_dictionary=W)
    tied = np.maximum((A - A.mean(0)) @ W, 0)
    size = (tied @ W.T * (A - A.mean(0))).sum() / np.square(tied @ W.T).sum()
    assert sae.relative_error_ < 0.8 * relative(A, A.mean(0) + size * tied @ W.T)


EVERY = [(name, {}) for name in concepts.names() if name not in ("svd", "pca")]
EVERY += [("sparse-pca", {"sparse": "codes"}), ("convex-nmf", {"strict_convex": False})]
EVERY += [("convex-nmf", {"landmarks": 90}), ("nmf", {"nonnegative": "split"})]


def activations(name: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    A = rng.laplace(size=(120, 6)) @ (
        rng.normal(size=(6, 12)) * np.arange(6, 0, -1)[:, None]
    )
    return np.abs(A) if name == "nmf" else A + 0.3 * rng.normal(size=A.shape)


def make(name: str, **options):
    options = {"sae": {"epochs": 8}, "ica": {"max_iter": 2000}}.get(name, {}) | options
    return concepts.make(name, 4, **options)


@pytest.mark.parametrize("sparse", ["dictionary", "codes"])
def test_sparse_pca_continues_the_given_concepts_in_their_order(sparse):
    A = activations("sparse-pca")
    W = make("sparse-pca", sparse=sparse).fit(A).components_.T[:, [2, 0, 3, 1]]
    V = make("sparse-pca", sparse=sparse).fit(A + 1e-3, init_dictionary=W).components_.T
    assert (np.abs(W.T @ V).argmax(axis=1) == np.arange(4)).all()


@pytest.mark.parametrize(("name", "options"), EVERY)
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_a_dictionary_of_any_size_is_a_start_in_single_precision(name, options, size):
    """Squares of such entries vanish or overflow in float32."""
    A = activations(name).astype(np.float32)
    W = (make(name, **options).fit(A).components_.T * size).astype(np.float32)
    est = make(name, **options)
    U = est.fit_transform(A, init_dictionary=W)
    assert np.isfinite(U).all() and est.relative_error_ < 1


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_concepts_missing_in_a_start_come_to_use(name, options):
    """A dictionary may hold zero columns, such as of concepts that a penalty removed."""
    A = activations(name)
    cold = make(name, **options).fit(A)
    for missing in ([1], [0, 1, 2, 3]):
        W = cold.components_.T.copy()
        W[:, missing] = 0
        est = make(name, **options)
        U = est.fit_transform(A, init_dictionary=W)
        assert (np.abs(U).max(axis=0) > 0).all() and (
            np.abs(est.components_).max(1) > 0
        ).all()
        # Another start may end in another optimum, and in which one the last digits decide: on
        # some processors semi-NMF leaves 15 % of the squares and not 4 %.
        left, best = est.relative_error_**2, cold.relative_error_**2
        assert left < max(1.7 * best, 1 - 0.85 * (1 - best))


def test_the_encoder_of_a_dictionary_is_regressed_on_the_codes_that_its_loss_asks_for():
    rng = np.random.default_rng(3)
    W = rng.normal(size=(20, 6)) + 0.5  # concepts that overlap
    W /= np.linalg.norm(W, axis=0)
    A = rng.exponential(size=(2000, 6)) @ W.T + 0.1 * rng.normal(size=(2000, 20))
    A -= A.mean(0)
    E, c = sae_module._encoder_of(torch.tensor(W), torch.tensor(A), alpha=1e-9)
    codes = np.maximum(A @ E.numpy() + c.numpy(), 0)
    best = np.stack([nnls(W, a)[0] for a in A])
    tied = np.maximum(A @ W, 0)
    # One linear layer cannot do all that a solver does, but most of it.
    assert relative(A, codes @ W.T) < 1.15 * relative(A, best @ W.T)
    assert relative(A, codes @ W.T) < 0.9 * relative(A, tied @ W.T)


@pytest.mark.parametrize("variant", ["vanilla", "jumprelu"])
def test_a_warm_autoencoder_needs_fewer_epochs_for_the_same_loss(variant):
    rng = np.random.default_rng(4)
    A = rng.normal(size=(2000, 30)) @ rng.normal(size=(30, 40)) + 0.3 * rng.normal(
        size=(2000, 40)
    )
    options = {"variant": variant, "alpha": 1e-3, "batch_size": 200, "random_state": 0}

    def loss(est):
        U = est.transform(A)
        size = A.std()
        penalty = (U > 0) if variant == "jumprelu" else U / size
        return relative(A, est.inverse_transform(U)) ** 2 + 1e-3 * penalty.sum(1).mean()

    cold = SAE(30, epochs=25, **options).fit(A)
    few = SAE(30, epochs=5, **options).fit(A)
    warm = SAE(30, epochs=5, **options).fit(A, init_dictionary=cold.components_.T)
    assert loss(warm) < 1.1 * loss(cold) < 0.5 * loss(few)


def test_ica_continues_sources_of_deficient_activations_in_their_places():
    rng = np.random.default_rng(4)
    A = rng.laplace(size=(2000, 3)) @ rng.normal(size=(3, 8))
    cold = concepts.make("ica", 5, tol=1e-6).fit(A)
    W = cold.components_.T[:, [2, 3, 0, 4, 1]]
    assert (np.abs(W).max(axis=0) > 0).tolist() == [True, False, True, False, True]
    warm = concepts.make("ica", 5, tol=1e-6).fit(A, init_dictionary=W)
    np.testing.assert_allclose(warm.components_.T, W, atol=1e-3 * np.abs(W).max())
    assert warm.n_iter_ <= cold.n_iter_
