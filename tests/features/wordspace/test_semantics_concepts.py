"""Concepts against a dense SVD, and orthants and clusters against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ontogeny import semantics
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.wordspace.centred_svd import column_signs
from ontogeny.features.wordspace.concepts import ConceptBasis


def random_support(V, m, density=0.1, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((V, m)) < density).astype(float)


def dense_svd(S, k):
    U, sigma, Vt = np.linalg.svd(S - S.mean(0), full_matrices=False)
    return U[:, :k], sigma[:k], Vt[:k].T


@pytest.mark.parametrize("method", ["dense", "gram", "lanczos"])
@pytest.mark.parametrize("shape", [(40, 90), (90, 40), (60, 60)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_concepts_equal_the_dense_svd(method, shape, kind):
    S = random_support(*shape)
    basis = semantics.svd_concepts(kind(S), k=8, method=method)
    U, sigma, V = dense_svd(S, 8)
    np.testing.assert_allclose(basis.sigma, sigma, rtol=1e-10)
    signs = np.sign((basis.U * U).sum(0))
    np.testing.assert_allclose(basis.U * signs, U, atol=1e-9)
    np.testing.assert_allclose(basis.V * signs, V, atol=1e-9)


@pytest.mark.parametrize("method", ["dense", "gram", "lanczos"])
def test_all_concepts_put_the_centred_matrix_together(method):
    S = random_support(20, 50)
    basis = semantics.svd_concepts(S, k=19, method=method)
    np.testing.assert_allclose(
        (basis.U * basis.sigma) @ basis.V.T, S - S.mean(0), atol=1e-8
    )
    np.testing.assert_allclose(np.ones(20) @ basis.U, 0, atol=1e-8)


@pytest.mark.parametrize("method", ["dense", "gram", "lanczos"])
def test_no_more_concepts_than_the_rank(method):
    """One word is in every context: the centred matrix of V words has rank V - 1 at most."""
    S = np.vstack([np.ones(30), random_support(5, 30, 0.4)])
    rank = np.linalg.matrix_rank(S - S.mean(0))
    assert semantics.svd_concepts(S, k=6, method=method).k == rank == 5


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_signs_do_not_depend_on_the_solver(seed):
    S = random_support(30, 45, 0.2, seed)
    bases = [
        semantics.svd_concepts(S, k=4, method=m) for m in ("dense", "gram", "lanczos")
    ]
    for basis in bases:
        peak = np.abs(basis.U).argmax(0)
        assert (np.take_along_axis(basis.U, peak[None], 0) > 0).all()
    for other in bases[1:]:
        np.testing.assert_allclose(other.U, bases[0].U, atol=1e-6)


def test_signs_of_ties_go_to_the_first_entry():
    """A block matrix has u = (1, 1, -1, -1) / 2: both signs have equal largest entries."""
    S = np.kron(np.eye(2), np.ones((2, 3)))
    for method in ("dense", "gram", "lanczos"):
        basis = semantics.svd_concepts(S, k=1, method=method)
        np.testing.assert_allclose(basis.U[:, 0], [0.5, 0.5, -0.5, -0.5], atol=1e-12)


def test_rounding_does_not_choose_among_ties():
    for noise in (1e-12, -1e-12):
        assert column_signs(np.array([[-0.5], [0.5 + noise]])).tolist() == [-1.0]
        assert column_signs(np.array([[0.4], [-0.5], [0.5 + noise]])).tolist() == [-1.0]


def test_weights_multiply_the_columns():
    support = semantics.support_matrix(
        np.random.default_rng(0).integers(0, 9, 900), lengths=2
    )
    for of in ("S", "P"):
        matrix = getattr(support, of).toarray() * support.pi
        _, sigma, _ = dense_svd(matrix, 5)
        basis = semantics.svd_concepts(support, 5, of=of, weights="pi")
        np.testing.assert_allclose(basis.sigma, sigma, rtol=1e-9)
        again = semantics.svd_concepts(getattr(support, of), 5, weights=support.pi)
        np.testing.assert_allclose(again.sigma, sigma, rtol=1e-9)


def test_representations_of_exact_factors_have_norm_root_sigma():
    """For W = U Sigma^1/2 R^T and H = R Sigma^1/2 V^T: W^T u_k = H v_k = sigma_k^1/2 R e_k."""
    basis = semantics.svd_concepts(random_support(12, 30), k=5)
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 5)))[0]
    W = basis.U * np.sqrt(basis.sigma) @ R.T
    H = R * np.sqrt(basis.sigma) @ basis.V.T
    of_words, of_contexts = basis.representations(W, H)
    np.testing.assert_allclose(of_words, R * np.sqrt(basis.sigma), atol=1e-12)
    np.testing.assert_allclose(of_contexts, of_words, atol=1e-12)


def test_embeddings_of_the_theory_give_the_concepts_back():
    basis = semantics.svd_concepts(random_support(12, 30), k=5)
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 5)))[0]
    found = semantics.embedding_concepts(
        basis.U * np.sqrt(basis.sigma) @ R.T, R * np.sqrt(basis.sigma) @ basis.V.T, k=5
    )
    np.testing.assert_allclose(found.U, basis.U, atol=1e-9)
    np.testing.assert_allclose(found.sigma, basis.sigma, rtol=1e-9)
    np.testing.assert_allclose(found.V, basis.V, atol=1e-9)


def test_centring_removes_a_common_embedding():
    W = np.random.default_rng(0).normal(size=(50, 6))
    plain = semantics.embedding_concepts(W, k=4)
    shifted = semantics.embedding_concepts(W + 100, k=4)
    np.testing.assert_allclose(shifted.U, plain.U, atol=1e-9)
    uncentred = semantics.embedding_concepts(W + 100, k=4, centred=False)
    assert np.ptp(uncentred.U[:, 0]) < 0.02 < np.ptp(plain.U[:, 0])


def test_a_basis_says_what_it_was_taken_from():
    support = semantics.support_matrix("a b c a c b b a c c a", lengths=1)
    assert semantics.svd_concepts(support, 1).source == "centred support matrix"
    weighted = semantics.svd_concepts(support, 1, of="P", weights="pi").source
    assert weighted == "centred matrix of conditional probabilities, contexts weighted"
    W = np.random.default_rng(0).normal(size=(5, 3))
    assert semantics.embedding_concepts(W).source == "word embeddings, centred"
    assert (
        semantics.embedding_concepts(W, centred=False).source
        == "word embeddings, not centred"
    )


def test_a_matrix_without_concepts_is_refused():
    for matrix in (np.ones((4, 5)), np.ones((1, 5)), np.zeros((3, 2))):
        for method in ("dense", "gram", "lanczos"):
            with pytest.raises(ArgumentError, match="every context allows every word"):
                semantics.svd_concepts(matrix, method=method)
    with pytest.raises(ArgumentError, match="same embedding"):
        semantics.embedding_concepts(np.ones((5, 3)))


def test_bad_matrices_and_options_are_refused():
    S = random_support(6, 8)
    broken = S.copy()
    broken[0, 0] = np.nan
    for bad in (broken, sparse.csr_array(broken)):
        with pytest.raises(NonFiniteError):
            semantics.svd_concepts(bad)
    for options, message in [
        ({"k": 0}, "k must"),
        ({"method": "magic"}, "method must"),
        ({"weights": [1.0]}, "weights must"),
        ({"weights": "pi"}, "needs a Support"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            semantics.svd_concepts(S, **options)


def a_basis(V=60, m=80, k=6, seed=0):
    rng = np.random.default_rng(seed)
    names = tuple(f"w{i}" for i in range(V))
    contexts = tuple((f"c{i}",) for i in range(m))
    U, W = (np.linalg.qr(rng.normal(size=(n, k)))[0] for n in (V, m))
    return ConceptBasis(U, np.ones(k), W, names, contexts)


@pytest.mark.parametrize("dims", [1, 5, [3], [4, 0]])
def test_orthants_are_what_the_definition_says(dims):
    basis = a_basis()
    picked = list(range(dims)) if isinstance(dims, int) else dims
    found = semantics.orthants(basis, dims)
    assert sorted(z for o in found for z in o.word_index) == list(range(60))
    assert sorted(j for o in found for j in o.context_index) == list(range(80))
    assert len({o.signature for o in found}) == len(found)
    for orthant in found:
        for vectors, index, typicality in (
            (basis.U, orthant.word_index, orthant.typicality),
            (basis.V, orthant.context_index, orthant.context_typicality),
        ):
            rows = vectors[index][:, picked]
            assert (np.sign(rows) == orthant.signature).all()
            np.testing.assert_allclose(typicality, np.abs(rows).sum(1))
            assert (np.diff(typicality) <= 0).all()
        assert orthant.words == tuple(f"w{z}" for z in orthant.word_index)


def test_neutral_words_are_named_and_can_be_dropped():
    U = np.array([[0.8, 0.6], [-0.6, 0.001], [0.001, -0.8]])
    basis = ConceptBasis(U, np.ones(2), None, ("clear", "half", "other"))
    found = semantics.orthants(basis, 2)
    neutral = {w: n for o in found for w, n in zip(o.words, o.neutral, strict=True)}
    assert neutral == {"clear": False, "half": True, "other": True}
    kept = semantics.orthants(basis, 2, keep_neutral=False)
    assert [o.words for o in kept] == [("clear",)]
    of_contexts = ConceptBasis(np.eye(2), np.ones(2), U)
    found = [n for o in semantics.orthants(of_contexts, 2) for n in o.context_neutral]
    assert sorted(found) == [False, True, True]


def test_normalised_typicality_does_not_depend_on_the_length_of_a_row():
    basis = a_basis()
    scales = np.linspace(1, 9, 60)[:, None]
    longer = ConceptBasis(basis.U * scales, basis.sigma, None, basis.words)
    for a, b in zip(
        semantics.orthants(
            ConceptBasis(basis.U, basis.sigma, None, basis.words), 3, normalised=True
        ),
        semantics.orthants(longer, 3, normalised=True),
        strict=True,
    ):
        assert a.words == b.words
        np.testing.assert_allclose(a.typicality, b.typicality)


def test_flipping_a_concept_flips_signatures_only():
    basis = a_basis()
    flip = np.array([1, -1, 1, 1, 1, 1])
    flipped = ConceptBasis(
        basis.U * flip, basis.sigma, basis.V * flip, basis.words, basis.contexts
    )
    groups = [
        {(o.words, o.contexts) for o in semantics.orthants(b, 4)}
        for b in (basis, flipped)
    ]
    assert groups[0] == groups[1]


def test_the_tree_splits_every_orthant_into_its_children():
    tree = semantics.refinement_tree(a_basis(), depth=4)
    for level, below in itertools.pairwise(tree.levels):
        for orthant in level:
            children = [c for c in below if c.name.startswith(orthant.name)]
            assert 1 <= len(children) <= 2
            assert sorted(w for c in children for w in c.words) == sorted(orthant.words)


def test_clusters_find_planted_groups():
    rng = np.random.default_rng(0)
    centres = np.eye(4) * 5
    truth = rng.integers(0, 4, size=80)
    U = centres[truth] * rng.uniform(0.2, 3, size=(80, 1)) + rng.normal(
        0, 0.02, size=(80, 4)
    )
    basis = ConceptBasis(U, np.ones(4), None)
    found = semantics.spectral_clusters(basis, k=4, dims="k", normalised=True)
    assert sorted(len(c.words) for c in found) == sorted(np.bincount(truth).tolist())
    for cluster in found:
        assert len(set(truth[cluster.word_index])) == 1
        assert (np.diff(cluster.distance) >= 0).all()


def test_log2_takes_as_many_concepts_as_there_are_signs():
    basis = a_basis(k=6)
    assert len(semantics.spectral_clusters(basis, k=32)[0].centre) == 5
    assert len(semantics.spectral_clusters(basis, k=33)[0].centre) == 6
    assert len(semantics.spectral_clusters(basis, k=4, dims="k")[0].centre) == 4


def test_what_a_basis_does_not_have_is_refused():
    basis = a_basis(k=3)
    for dims in (4, [0, 0], [5], [], 0):
        with pytest.raises(ArgumentError, match="dims must"):
            semantics.orthants(basis, dims)
    with pytest.raises(ArgumentError, match="neutral must"):
        semantics.orthants(basis, 2, neutral=-1)
    with pytest.raises(ArgumentError, match="k must"):
        semantics.spectral_clusters(basis, k=1)
    lonely = ConceptBasis(np.ones((5, 2)), np.ones(2), None)
    with pytest.raises(ArgumentError, match="only 1 of the words differ"):
        semantics.spectral_clusters(lonely, k=4)


def test_concepts_of_equal_singular_values_are_a_plane_in_any_basis():
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (9, 7))
    left -= left.mean(axis=0)
    left, _ = np.linalg.qr(left)
    values = np.array([4.0, 2.0, 2.0, 1.0])
    basis = semantics.svd_concepts(left * values @ right.T, 4)
    assert basis.planes == [[1, 2]] and "concepts 2 to 3 in any basis" in basis.source
    assert semantics.svd_concepts(left * [4.0, 2.0, 1.9, 1.0] @ right.T, 4).planes == []
