"""Every extractor: scikit-learn's own checks, kinds and dtypes, reconstruction, bad input."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

from ontogeny import concepts
from ontogeny.concepts import tensors
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.machine import one_thread

NAMES = concepts.names()
SETTINGS = {"nmf": {"nonnegative": "split"}, "sae": {"epochs": 3}, "kmeans": {}}
DECAY = np.random.default_rng(7).normal(size=(6, 12)) * np.arange(6, 0, -1)[:, None]


def extractor(name, n_concepts=3, **options):
    return concepts.make(name, n_concepts, **{**SETTINGS.get(name, {}), **options})


def quiet(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call(*args, **kwargs)


@pytest.fixture(scope="module")
def A():
    rng = np.random.default_rng(0)
    return rng.laplace(size=(90, 6)) @ DECAY + 0.3 * rng.normal(size=(90, 12)) + 1.0


def test_names_of_the_contract():
    assert NAMES == (
        "nmf",
        "convex-nmf",
        "semi-nmf",
        "svd",
        "pca",
        "sparse-pca",
        "ica",
        "kmeans",
        "dictionary",
        "sae",
    )


# check_array_api_input needs SCIPY_ARRAY_API set before SciPy is imported; scikit-learn skips it
# otherwise. No other check is left out.
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_scikit_learn_checks(name):
    options = {"epochs": 2} if name == "sae" else {}
    estimator = concepts.make(name, n_concepts=2, **options)
    for _, check in estimator_checks_generator(estimator):
        if check.func.__name__ != "check_array_api_input":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(clone(estimator))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensor_in_tensor_out_with_the_numbers_of_numpy(name, dtype, A):
    A = A.astype(dtype)
    as_numpy, as_tensor = extractor(name), extractor(name)
    U = quiet(as_numpy.fit_transform, A)
    V = quiet(as_tensor.fit_transform, torch.tensor(A))
    assert isinstance(U, np.ndarray) and isinstance(as_numpy.components_, np.ndarray)
    assert isinstance(V, torch.Tensor) and isinstance(
        as_tensor.components_, torch.Tensor
    )
    assert U.dtype == as_numpy.components_.dtype == A.dtype
    assert str(V.dtype) == f"torch.{dtype}" == str(as_tensor.components_.dtype)
    np.testing.assert_array_equal(V.numpy(), U)
    np.testing.assert_array_equal(as_tensor.components_.numpy(), as_numpy.components_)
    assert isinstance(as_tensor.inverse_transform(V), torch.Tensor)
    # A fitted extractor takes the other kind too.
    np.testing.assert_allclose(as_tensor.transform(A), as_numpy.transform(A))


@pytest.mark.parametrize("name", NAMES)
def test_fitted_attributes_and_true_reconstruction(name, A):
    est = extractor(name)
    U = quiet(est.fit_transform, A)
    assert U.shape == (90, 3) and est.components_.shape == (3, 12)
    R = est.inverse_transform(U)
    np.testing.assert_allclose(
        np.linalg.norm(A - R), est.reconstruction_error_, rtol=1e-10
    )
    relative = np.linalg.norm(A - R) / np.linalg.norm(A)
    np.testing.assert_allclose(relative, est.relative_error_, rtol=1e-10)
    assert relative < 1, "worse than answering zero"
    assert est.n_iter_ >= 1 and isinstance(est.converged_, bool)
    assert len(est.get_feature_names_out()) == 3
    np.testing.assert_allclose(est.transform(A), U, atol=1e-10 * np.abs(U).max())


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_pickle_keep_what_they_should(name, A):
    est = quiet(extractor(name).fit, A)
    copy = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(copy.transform(A), est.transform(A))
    assert not hasattr(clone(est), "components_")
    assert quiet(clone(est).fit, A).reconstruction_error_ == est.reconstruction_error_


@pytest.mark.parametrize("name", NAMES)
def test_warm_start_takes_the_dictionary_and_keeps_its_order(name, A):
    cold = quiet(extractor(name).fit, A)
    W = cold.components_.T[:, [2, 0, 1]]
    warm = quiet(extractor(name).fit, A + 1e-3, init_dictionary=W)
    # SVD and PCA have one solution and order; that of semi-NMF has more freedom than an order.
    if name not in ("svd", "pca", "semi-nmf"):
        unit = W / np.linalg.norm(W, axis=0)
        V = warm.components_.T / np.linalg.norm(warm.components_.T, axis=0)
        assert (np.abs(np.abs(unit.T @ V).argmax(axis=1)) == [0, 1, 2]).all()
    with pytest.raises(ArgumentError, match=r"components_\.T"):
        extractor(name).fit(A, init_dictionary=cold.components_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_activations_are_refused(name, bad, A):
    A = A.copy()
    A[3, 4] = bad
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        extractor(name).fit(A)
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        extractor(name).fit(torch.tensor(A))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [0, -1, 2.5, True, None])
def test_a_bad_number_of_concepts_is_named(name, bad, A):
    with pytest.raises(ArgumentError, match="n_concepts"):
        extractor(name, n_concepts=bad).fit(A)


def test_unknown_names_and_options_get_a_suggestion():
    with pytest.raises(ArgumentError, match="'convex-nmf'"):
        concepts.make("convexnmf")
    with pytest.raises(ArgumentError, match="Did you mean 'max_iter'"):
        concepts.make("ica", max_iters=3)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("nmf", {"nonnegative": "abs"}),
        ("semi-nmf", {"nonnegative": "both"}),
        ("convex-nmf", {"variant": "hals"}),
        ("convex-nmf", {"landmarks": 0}),
        ("sparse-pca", {"sparse": "yes"}),
        ("sparse-pca", {"alpha": 0}),
        ("dictionary", {"alpha": -1.0}),
        ("dictionary", {"alpha": float("nan")}),
        ("ica", {"fun": "tanh"}),
        ("ica", {"max_iter": 0}),
        ("ica", {"tol": -1.0}),
        ("sae", {"variant": "gated"}),
        ("sae", {"k": 0}),
        ("kmeans", {"n_init": 0}),
    ],
)
def test_bad_options_are_named(name, option, A):
    with pytest.raises(ArgumentError, match=next(iter(option))):
        concepts.make(name, 3, **option).fit(A)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_numbers_of_columns_are_refused(name, A):
    est = quiet(extractor(name).fit, torch.tensor(A))
    with pytest.raises(ArgumentError, match="expecting 12 features"):
        est.transform(torch.tensor(A[:, :-1]))
    with pytest.raises(ArgumentError, match="3 columns"):
        est.inverse_transform(np.ones((5, 4)))


def test_an_unfinished_fit_is_flagged_and_warned_about_once(A):
    with pytest.warns(
        ConvergenceWarning, match="ICA.*did not converge in 2 iterations"
    ) as record:
        est = extractor("ica", max_iter=2, tol=0.0).fit(A)
    assert len(record) == 1 and not est.converged_


@pytest.mark.parametrize(("large", "threads"), [(1 << 23, 1), (1, 2)])
def test_small_fits_take_one_thread_and_large_ones_those_that_there_are(
    monkeypatch, large, threads
):
    monkeypatch.setattr(tensors, "LARGE", large)
    counts, solve, encode = [], concepts.PCA._solve, concepts.PCA._encode

    def counted(method):
        def call(self, *arguments):
            counts.append(torch.get_num_threads())
            return method(self, *arguments)

        return call

    monkeypatch.setattr(concepts.PCA, "_solve", counted(solve))
    monkeypatch.setattr(concepts.PCA, "_encode", counted(encode))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        X = np.random.default_rng(0).normal(size=(20, 6))
        concepts.PCA(2).fit(X).transform(X)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert counts == [threads, threads]


def test_fits_in_several_threads_leave_the_number_of_threads_as_it_was():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    X = np.random.default_rng(0).random(size=(60, 8))
    counts = []

    def fit(seed):
        with one_thread():
            counts.append(torch.get_num_threads())
            quiet(concepts.NMF(2, random_state=seed).fit, X)  # holds it within
            counts.append(torch.get_num_threads())
        return torch.get_num_threads()

    try:
        with ThreadPoolExecutor(3) as pool, one_thread():
            after = list(pool.map(fit, range(9)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert counts == [1] * 18 and after == [2] * 9
