"""The solvers find what closed forms, other libraries and known truths say they must."""

import warnings
from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.optimize
import sklearn.decomposition as sk
import torch

from ontogeny import concepts
from ontogeny.concepts import convex
from ontogeny.concepts.alternating import descend
from ontogeny.concepts.convex import ConvexNMF
from ontogeny.concepts.nonnegative import nonnegative_codes
from ontogeny.concepts.rows import Factor
from ontogeny.concepts.sparse import sparse_codes
from ontogeny.errors import ArgumentError, DenseCodesWarning, NonFiniteError

_rng = np.random.default_rng(0)
A = _rng.laplace(size=(120, 8)) @ (
    _rng.normal(size=(8, 20)) * np.arange(8, 0, -1)[:, None]
)
A = A + 0.5 * _rng.normal(size=A.shape)
P = np.abs(A)


def rank_error(matrix, r):
    return np.sqrt((np.linalg.svd(matrix, compute_uv=False)[r:] ** 2).sum())


def test_svd_shares_the_singular_values_and_is_the_best_of_its_rank():
    svd = concepts.make("svd", 4)
    U = svd.fit_transform(A)
    sigma = np.linalg.svd(A, compute_uv=False)[:4]
    np.testing.assert_allclose(U.T @ U, np.diag(sigma), atol=1e-9 * sigma[0])
    np.testing.assert_allclose(
        svd.components_ @ svd.components_.T, np.diag(sigma), atol=1e-9 * sigma[0]
    )
    np.testing.assert_allclose(svd.singular_values_, sigma)
    np.testing.assert_allclose(svd.reconstruction_error_, rank_error(A, 4), rtol=1e-10)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
@pytest.mark.parametrize("decades", [1, 5, 9])
def test_svd_stays_accurate_over_wide_spectra(shape, decades):
    rng = np.random.default_rng(decades)
    U, _ = np.linalg.qr(rng.normal(size=(shape[0], 40)))
    V, _ = np.linalg.qr(rng.normal(size=(shape[1], 40)))
    sigma = np.logspace(0, -decades, 40)
    M = (U[:, :40] * sigma) @ V[:, :40].T
    svd = concepts.make("svd", 20).fit(M)
    np.testing.assert_allclose(svd.singular_values_, sigma[:20], rtol=1e-6)
    np.testing.assert_allclose(
        svd.reconstruction_error_, np.linalg.norm(sigma[20:]), rtol=1e-4
    )


def test_svd_of_float32_activations_with_a_dominant_mean_is_optimal():
    rng = np.random.default_rng(11)
    M = (rng.normal(size=(400, 30)) + 1e3).astype(np.float32)
    best = rank_error(M.astype(np.float64), 10)
    assert concepts.make("svd", 10).fit(M).reconstruction_error_ <= best * (1 + 1e-5)


def test_pca_agrees_with_scikit_learn_and_adds_the_mean_back():
    shifted = A + 100
    ours, theirs = concepts.make("pca", 5), sk.PCA(5, svd_solver="full")
    U, V = ours.fit_transform(shifted), theirs.fit_transform(shifted)
    signs = np.sign((U * V).sum(axis=0))
    np.testing.assert_allclose(U, V * signs, atol=1e-8)
    np.testing.assert_allclose(
        ours.inverse_transform(U), theirs.inverse_transform(V), atol=1e-8
    )
    np.testing.assert_allclose(ours.explained_variance_, U.var(axis=0))
    np.testing.assert_allclose(U.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
def test_ica_finds_independent_sources_up_to_order_and_sign(fun):
    rng = np.random.default_rng(3)
    S = (
        rng.uniform(-1, 1, size=(4000, 4))
        if fun == "cube"
        else rng.laplace(size=(4000, 4))
    )
    mixing = rng.normal(size=(4, 10))
    ica = concepts.make("ica", 4, fun=fun, tol=1e-6)
    U = ica.fit_transform(S @ mixing + 5.0)
    match = np.abs(np.corrcoef(U.T, S.T)[:4, 4:])
    assert (match.max(axis=0) > 0.99).all() and len(set(match.argmax(axis=0))) == 4
    np.testing.assert_allclose(U.T @ U / len(U), np.eye(4), atol=1e-8)
    assert ica.relative_error_ < 1e-10, "the mean is added back"


def test_nonnegative_codes_are_those_of_an_active_set_solver():
    rng = np.random.default_rng(12)
    W = rng.normal(size=(20, 6))
    codes = nonnegative_codes(torch.tensor(A), torch.tensor(W)).numpy()
    for row, u in zip(A, codes, strict=True):
        _, residual = scipy.optimize.nnls(W, row)
        assert np.linalg.norm(row - W @ u) <= residual * (1 + 1e-6)
    assert (codes >= 0).all()


def test_sparse_codes_satisfy_the_optimality_conditions():
    rng = np.random.default_rng(13)
    W = rng.normal(size=(20, 6))
    U = sparse_codes(torch.tensor(A), torch.tensor(W), 3.0).numpy()
    gradient = (U @ W.T - A) @ W
    scale = np.abs(A @ W).max()
    assert (np.abs(gradient) <= 3 + 1e-4 * scale).all()
    active = U != 0
    np.testing.assert_allclose(
        gradient[active], -3 * np.sign(U[active]), atol=1e-4 * scale
    )
    assert active.any() and not active.all()


@pytest.mark.parametrize(
    "kinds", [("nonnegative", "nonnegative"), ("nonnegative", "free")]
)
def test_accepted_steps_never_raise_the_objective(kinds):
    M = torch.tensor(P if kinds[1] == "nonnegative" else A)
    start = (
        torch.rand(5, 120, dtype=torch.float64),
        torch.rand(5, 20, dtype=torch.float64),
    )
    steps = descend(M, *start, *(Factor(kind) for kind in kinds))
    seen = [float(objective) for _, _, objective in islice(steps, 80)]
    accepted = [value for value in seen if np.isfinite(value)]
    assert len(accepted) > 15 and accepted[-1] < accepted[0]
    # A rejected step is followed by a plain one; between two rejections nothing rises.
    for before, after in pairwise(seen):
        assert (
            not np.isfinite(before)
            or not np.isfinite(after)
            or after <= before * (1 + 1e-12)
        )


def test_nmf_is_at_least_as_good_as_scikit_learn():
    ours = concepts.make("nmf", 5, max_iter=1000, tol=1e-6).fit(P)
    theirs = sk.NMF(5, max_iter=1000, tol=1e-6, random_state=0).fit(P)
    assert ours.reconstruction_error_ <= theirs.reconstruction_err_ * 1.005
    np.testing.assert_allclose(np.linalg.norm(ours.components_, axis=1), 1)


def test_nmf_refuses_signed_activations_and_offers_three_ways():
    with pytest.raises(ArgumentError, match="'relu', 'split' or 'shift'"):
        concepts.make("nmf", 4).fit(A)
    split = concepts.make("nmf", 4, nonnegative="split").fit(A)
    assert split.parts_.shape == (4, 40) and (split.parts_ >= 0).all()
    np.testing.assert_array_equal(
        split.components_, split.parts_[:, :20] - split.parts_[:, 20:]
    )
    shift = concepts.make("nmf", 4, nonnegative="shift").fit(A)
    np.testing.assert_allclose(shift.offset_, A.min(axis=0))
    relu = concepts.make("nmf", 4, nonnegative="relu")
    np.testing.assert_allclose(
        relu.fit_transform(A), concepts.make("nmf", 4).fit_transform(np.maximum(A, 0))
    )


def test_semi_nmf_lies_between_the_svds_of_rank_r_and_r_minus_1():
    for matrix in (A, A + 3):
        semi = concepts.make("semi-nmf", 5)
        U = semi.fit_transform(matrix)
        assert (U >= 0).all()
        low, high = rank_error(matrix, 5), rank_error(matrix, 4)
        assert low * (1 - 1e-9) <= semi.reconstruction_error_ <= high * (1 + 1e-6)
        assert semi.density_ == (U != 0).mean()


def test_semi_nmf_reaches_the_svd_where_a_positive_vector_is_in_its_space():
    rng = np.random.default_rng(14)
    positive = rng.uniform(1, 2, size=(120, 1)) * rng.normal(size=(1, 20)) * 5 + 0.3 * A
    semi = concepts.make("semi-nmf", 4, tol=1e-8).fit(positive)
    assert semi.reconstruction_error_ <= rank_error(positive, 4) * 1.01


def test_semi_nmf_can_put_the_sign_on_the_dictionary():
    semi = concepts.make("semi-nmf", 5, nonnegative="dictionary")
    U = semi.fit_transform(A)
    assert (semi.components_ >= 0).all() and (U < 0).any()
    assert semi.reconstruction_error_ <= rank_error(A, 4) * (1 + 1e-6)


def few_tips(seed, mean=3.0):
    """Samples between five of themselves, far from 0."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(5, 0.5), size=300)
    shares[:5] = np.eye(5)
    return mean * rng.normal(size=20) + shares @ rng.normal(size=(5, 20))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("accelerated", {}),
        ("accelerated", {"landmarks": 70}),
        ("accelerated", {"strict_convex": False}),
        ("multiplicative", {}),
    ],
)
@pytest.mark.parametrize("data", [A, few_tips(1), np.vstack([A, np.zeros((3, 20))])])
def test_convex_nmf_never_raises_its_objective(variant, options, data):
    errors = [
        ConvexNMF(5, variant=variant, max_iter=i, random_state=0, **options)
        .fit(data)
        .objective_
        for i in (1, 2, 3, 5, 10, 20, 40, 80)
    ]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(errors))
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("mean", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_few_iterations_leave_less_than_many_multiplicative_ones(mean, seed):
    """Gradient steps over all samples at once left more, and with a mean hardly moved."""
    M = few_tips(seed, mean)
    left = {
        variant: ConvexNMF(5, variant=variant, max_iter=count, random_state=0)
        .fit(M)
        .reconstruction_error_
        for variant, count in (("accelerated", 50), ("multiplicative", 300))
    }
    assert left["accelerated"] < 0.8 * left["multiplicative"]


def test_a_pass_over_the_concepts_changes_few_coefficients_of_each_and_never_rises():
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(400, 20, generator=generator, dtype=torch.float64) + 2
    H = torch.rand(6, 400, generator=generator, dtype=torch.float64)
    U = torch.rand(6, 400, generator=generator, dtype=torch.float64)
    U[2] = 0  # a concept of no use: nothing can be said of its coefficients
    G, C = U @ U.mT, U @ Z
    new, W = convex._pass_over_concepts(H, H @ Z, G, C, Z)
    changed = (new != H).sum(1)
    assert 0 < int(changed.max()) <= convex.CHOSEN and int(changed[2]) == 0
    assert bool((new >= 0).all())
    torch.testing.assert_close(W, new @ Z)
    assert convex._quadratic(G, C, new @ Z) < convex._quadratic(G, C, H @ Z)


def test_the_printed_rule_of_convex_nmf_raises_its_objective():
    """Algorithm 5 has H U U^T where U^T U H is right."""
    errors = [
        ConvexNMF(5, variant="report", strict_convex=False, max_iter=i, random_state=0)
        .fit(A)
        .objective_
        for i in (4, 8, 20)
    ]
    assert not all(b <= a for a, b in pairwise(errors))


def test_the_printed_rule_says_when_it_overflows():
    est = ConvexNMF(
        5, variant="report", strict_convex=False, max_iter=2000, random_state=0
    )
    with pytest.raises(
        NonFiniteError, match=r"left the range of float32.*variant='multi"
    ):
        est.fit(A.astype(np.float32))


def test_multiplicative_concepts_come_in_the_order_of_their_exact_codes():
    rng = np.random.default_rng(0)
    M = rng.laplace(size=(400, 20)) @ (
        rng.normal(size=(20, 60)) * np.linspace(3, 0.3, 20)[:, None]
    )
    M = M + 0.3 * rng.normal(size=M.shape) + 0.5
    est = ConvexNMF(12, variant="multiplicative", random_state=0)
    energy = (est.fit_transform(M) ** 2).sum(0) * (est.components_**2).sum(1)
    assert (np.diff(energy) <= 1e-3 * energy[0]).all()


def test_the_multiplicative_rule_is_the_published_one():
    """Against Ding, Li and Jordan's updates written down with the n x n matrices."""
    est = ConvexNMF(3, variant="multiplicative", max_iter=1, random_state=0)
    X = torch.tensor(A[:30])
    H0 = torch.rand(3, 30, dtype=torch.float64)
    U, H, _ = next(convex._multiplicative(X, X, H0.clone(), est))
    M = (X @ X.T).numpy()
    plus, minus = np.maximum(M, 0), np.maximum(-M, 0)
    h = H0.numpy() + 0.1 / 30
    centers = torch.tensor(h) @ X
    label = torch.cdist(X, centers).argmin(1)
    u = 0.1 + np.eye(3)[label.numpy()]
    u = u * np.sqrt(
        (plus @ h.T + u @ h @ minus @ h.T) / (minus @ h.T + u @ h @ plus @ h.T + 1e-10)
    )
    up = u.T @ plus + u.T @ u @ h @ minus
    down = u.T @ minus + u.T @ u @ h @ plus
    h = h * np.sqrt(up / (down + 1e-10))
    np.testing.assert_allclose(U.T.numpy(), u, rtol=1e-6)
    np.testing.assert_allclose(H.numpy(), h, rtol=1e-6, atol=1e-9)


def test_convex_concepts_are_convex_combinations():
    est = concepts.make("convex-nmf", 5).fit(A)
    H = est.coefficients_
    assert (H >= 0).all()
    np.testing.assert_allclose(H.sum(axis=1), 1)
    np.testing.assert_allclose(H @ A, est.components_, atol=1e-10)
    few = concepts.make("convex-nmf", 5, landmarks=30).fit(A)
    assert (
        few.coefficients_.shape == (5, 30) and len(set(few.landmarks_.tolist())) == 30
    )
    np.testing.assert_allclose(
        few.coefficients_ @ A[few.landmarks_], few.components_, atol=1e-10
    )


def test_dictionary_learning_beats_scikit_learn_on_its_own_objective():
    ours = concepts.make("dictionary", 6, alpha=2.0, tol=1e-6, max_iter=500).fit(A)
    theirs = sk.DictionaryLearning(
        6,
        alpha=2.0,
        fit_algorithm="cd",
        transform_algorithm="lasso_cd",
        transform_alpha=2.0,
        max_iter=100,
        random_state=0,
    )
    U = theirs.fit_transform(A)
    objective = ((A - U @ theirs.components_) ** 2).sum() / 2 + 2 * np.abs(U).sum()
    assert ours.objective_ <= objective * 1.01
    V = ours.transform(A)
    direct = ((A - V @ ours.components_) ** 2).sum() / 2 + 2 * np.abs(V).sum()
    np.testing.assert_allclose(ours.objective_, direct)
    np.testing.assert_allclose(ours.tau_, np.abs(V).sum())


def test_sparse_pca_beats_scikit_learn_on_its_own_objective():
    ours = concepts.make("sparse-pca", 5, alpha=3.0, tol=1e-6, max_iter=500).fit(A)
    theirs = sk.SparsePCA(5, alpha=3.0, method="cd", tol=1e-5, random_state=0).fit(A)
    # Not convex: on a matrix this small either may end in the better of two near optima.
    assert ours.objective_ <= theirs.error_[-1] * 1.02
    assert (ours.components_ == 0).any()


def test_sparse_pca_with_sparse_codes_has_an_orthonormal_dictionary():
    est = concepts.make("sparse-pca", 5, sparse="codes", alpha=3.0)
    U = est.fit_transform(A)
    np.testing.assert_allclose(
        est.components_ @ est.components_.T, np.eye(5), atol=1e-10
    )
    assert (U == 0).any()
    weak = concepts.make("sparse-pca", 5, sparse="codes", alpha=1e-9, tol=1e-12).fit(A)
    np.testing.assert_allclose(
        weak.reconstruction_error_, rank_error(A - A.mean(0), 5), rtol=1e-6
    )


def test_kmeans_codes_are_one_hot_and_reconstruct_by_centroids():
    est = concepts.make("kmeans", 6)
    U = est.fit_transform(A)
    assert set(np.unique(U)) == {0.0, 1.0} and (U.sum(axis=1) == 1).all()
    distances = np.linalg.norm(A[:, None] - est.components_[None], axis=2)
    np.testing.assert_array_equal(U.argmax(axis=1), distances.argmin(axis=1))
    np.testing.assert_array_equal(
        est.inverse_transform(U), est.components_[U.argmax(axis=1)]
    )


def test_kmeans_of_many_samples_finds_the_clusters_though_it_draws_seeds_among_a_part():
    """Of 5,000 samples 3,000 are drawn; half a percent of them are one cluster far away."""
    rng = np.random.default_rng(3)
    centers = np.r_[rng.normal(size=(30, 12)), [[40.0] * 12]]
    share = np.r_[rng.dirichlet(np.full(30, 2.0)) * 0.995, 0.005]
    cluster = rng.choice(31, size=5000, p=share)
    X = centers[cluster] + 0.3 * rng.normal(size=(5000, 12))
    planted = sum(
        ((X[cluster == i] - X[cluster == i].mean(0)) ** 2).sum() for i in range(31)
    )
    est = concepts.make("kmeans", 31, n_init=4).fit(X)
    assert est.reconstruction_error_**2 < 1.15 * planted  # a fit may join two of them
    assert np.linalg.norm(est.components_ - 40, axis=1).min() < 1
    again = concepts.make("kmeans", 31, n_init=4).fit(X)
    np.testing.assert_array_equal(again.components_, est.components_)


@pytest.mark.parametrize("variant", ["vanilla", "topk", "batchtopk", "jumprelu"])
def test_sparse_autoencoders_learn_and_stay_sparse(variant):
    rng = np.random.default_rng(2)
    atoms = rng.normal(size=(16, 24))
    codes = rng.exponential(size=(2000, 16)) * (rng.uniform(size=(2000, 16)) < 0.15)
    X = codes @ atoms
    est = concepts.make(
        "sae", 16, variant=variant, k=4, alpha=2e-3, epochs=40, batch_size=200
    )
    U = est.fit_transform(X)
    short = concepts.make(
        "sae", 16, variant=variant, k=4, alpha=2e-3, epochs=1, batch_size=200
    ).fit(X)
    assert est.relative_error_ < 0.75 * short.relative_error_
    assert (U >= 0).all() and est.dead_ == 0
    np.testing.assert_allclose(np.linalg.norm(est.components_, axis=1), 1)
    if variant == "topk":
        assert (U > 0).sum(axis=1).max() <= 4
    if variant == "batchtopk":
        assert 2.5 < (U > 0).sum(axis=1).mean() < 5.5
    if variant in ("batchtopk", "jumprelu"):
        assert (
            U[U > 0] > np.broadcast_to(est.threshold_, U.shape)[U > 0] * (1 - 1e-9)
        ).all()
    pre = (X - est.offset_) @ est.encoder_ + est.encoder_bias_
    np.testing.assert_allclose(U[U > 0], pre[U > 0])


@pytest.mark.parametrize("variant", ["vanilla", "jumprelu"])
def test_an_autoencoder_says_how_dense_its_codes_are_and_its_advice_works(variant):
    rng = np.random.default_rng(0)
    used = rng.exponential(size=(500, 10)) * (rng.uniform(size=(500, 10)) < 0.1)
    X = used @ rng.normal(size=(10, 16)) + 0.1 * rng.normal(size=(500, 16))
    options = {"variant": variant, "epochs": 30, "batch_size": 100, "random_state": 0}
    dense = concepts.make("sae", 10, alpha=1e-6, **options)
    with pytest.warns(DenseCodesWarning, match="% of the 10 concepts") as caught:
        U = dense.fit_transform(X)
    assert dense.active_ == pytest.approx((U != 0).mean()) and dense.active_ > 0.4
    assert f"{dense.active_:.0%}" in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse = concepts.make("sae", 10, alpha=0.1, **options).fit(X)
        # As asked for.
        concepts.make("sae", 10, k=9, **{**options, "variant": "topk"}).fit(X)
    assert sparse.active_ < 0.3 and sparse.relative_error_ < 0.6


@pytest.mark.parametrize("variant", ["vanilla", "topk", "batchtopk", "jumprelu"])
@pytest.mark.parametrize("outlier", [1, 1000])
def test_concepts_that_start_again_do_not_drown_the_autoencoder(variant, outlier):
    """More concepts than features, few samples, perhaps a massive feature: many start again."""
    rng = np.random.default_rng(0)
    turn = (
        np.linalg.qr(rng.normal(size=(96, 96)))[0] * np.arange(1, 97)[:, None] ** -0.8
    )
    X = rng.laplace(size=(600, 96)) @ turn + 0.05 * rng.normal(size=96)
    X[:, 5] *= outlier
    est = concepts.make("sae", 200, variant=variant).fit(X.astype(np.float32))
    assert est.relative_error_ < 0.6


def test_a_seed_of_ica_is_the_same_start_in_either_precision():
    rng = np.random.default_rng(0)
    sources = rng.laplace(size=(1500, 20)) * (rng.uniform(size=(1500, 20)) < 0.4)
    A = sources @ rng.normal(size=(20, 40)) + 0.1 * rng.normal(size=(1500, 40))
    single = (
        concepts.make("ica", 20, random_state=0).fit(A.astype(np.float32)).components_
    )
    double = concepts.make("ica", 20, random_state=0).fit(A).components_
    assert np.abs(single - double).max() < 1e-4 * np.abs(double).max()
