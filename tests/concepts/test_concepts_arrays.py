"""Extractors take arrays as users hold them: of every kind, layout and gradient mode."""

import pickle

import numpy as np
import pytest
import torch

from ontogeny import concepts
from ontogeny.concepts.nonnegative import nonnegative_codes
from ontogeny.errors import ArgumentError, NonFiniteError

NAMES = concepts.names()
OPTIONS = {"nmf": {"nonnegative": "split"}, "sae": {"epochs": 2}}
RNG = np.random.default_rng(0)
A = RNG.laplace(size=(60, 5)) @ (RNG.normal(size=(5, 8)) * np.arange(5, 0, -1)[:, None])
A = A + 0.3 * RNG.normal(size=A.shape) + 0.5

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")


def make(name, r=3, **options):
    return concepts.make(name, r, **{**OPTIONS.get(name, {}), **options})


def tensors_of(est):
    return [value for value in vars(est).values() if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("name", NAMES)
def test_tensors_that_require_gradients_are_taken_as_numbers(name):
    X = torch.tensor(A, requires_grad=True)
    W = torch.tensor(make(name).fit(A).components_.T, requires_grad=True)
    est = make(name)
    codes = est.fit_transform(X, init_dictionary=W)
    assert not any(t.requires_grad for t in [codes, est.transform(X), *tensors_of(est)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_gradient_mode_of_the_caller_does_not_matter(name, mode):
    """Activations are mostly read without gradients, and extractors fitted there and then."""
    plain = make(name)
    expected = plain.fit_transform(torch.tensor(A))
    with mode():
        X = torch.tensor(A)
        est = make(name)
        codes = est.fit_transform(X)
    assert torch.equal(codes, expected) and torch.equal(
        plain.components_, est.components_
    )
    assert not any(t.is_inference() for t in [codes, *tensors_of(est)])
    assert torch.equal(est.transform(X), plain.transform(torch.tensor(A)))
    # The decoder can be differentiated through.
    U = codes.clone().requires_grad_()
    est.inverse_transform(U).sum().backward()
    torch.testing.assert_close(U.grad[0], est.components_.sum(1))


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_holds_its_own_numbers_alone(name):
    """No view of the activations: a pickle of it would hold all of them."""
    alone = len(pickle.dumps(make(name).fit(torch.tensor(A))))
    layers = torch.tensor(np.stack([A] * 8))
    assert len(pickle.dumps(make(name).fit(layers[3]))) < 1.5 * alone


def test_a_refit_forgets_what_only_the_earlier_fit_had():
    pandas = pytest.importorskip("pandas")
    est = make("nmf", nonnegative="split").fit(
        pandas.DataFrame(A, columns=list("abcdefgh"))
    )
    assert est.parts_.shape == (3, 16) and len(est.feature_names_in_) == 8
    est.set_params(nonnegative="relu").fit(torch.tensor(A))
    assert not hasattr(est, "parts_") and not hasattr(est, "feature_names_in_")
    est.transform(A)  # scikit-learn would warn here of missing feature names


@pytest.mark.parametrize("dtype", [">f8", ">f4", np.longdouble])
def test_unusual_floats_of_numpy_are_read(dtype):
    est = make("pca")
    U = est.fit_transform(A.astype(dtype))
    np.testing.assert_allclose(
        est.inverse_transform(U.astype(dtype)),
        est.inverse_transform(U),
        rtol=1e-5,
        atol=1e-5,
    )


def test_sparse_tensors_are_refused_by_name():
    with pytest.raises(ArgumentError, match=r"X must be dense; got torch\.sparse_coo"):
        make("pca").fit(torch.tensor(A).to_sparse())


@pytest.mark.parametrize("name", NAMES)
def test_a_dictionary_that_overflows_the_precision_of_the_activations_is_refused(name):
    W = np.full((8, 3), 1e300)
    X = A.astype(np.float32)
    with pytest.raises(NonFiniteError, match="init_dictionary"):
        make(name).fit(X, init_dictionary=W)


@pytest.mark.parametrize("seed", ["x", -1, 1.5, 2**40, np.random.default_rng(0)])
def test_seeds_are_refused_by_name(seed):
    for name in NAMES:
        with pytest.raises(ArgumentError, match="random_state must be"):
            make(name).set_params(random_state=seed).fit(A)


@pytest.mark.parametrize("seed", range(4))
def test_codes_of_concepts_that_nearly_cancel_are_finite_in_single_precision(seed):
    """Along a positive combination that nearly vanishes, curvature in float32 is rounding."""
    rng = np.random.default_rng(seed)
    X = torch.tensor(10 * rng.normal(size=(300, 8)))
    W = rng.normal(size=(8, 3))
    W[:, 2] = -W[:, 0] - W[:, 1] + 1e-4 * rng.normal(size=8)
    W = torch.tensor(W / np.linalg.norm(W, axis=0))
    single = nonnegative_codes(X.float(), W.float()).double()
    best = torch.linalg.norm(X - nonnegative_codes(X, W) @ W.mT)
    assert bool(torch.isfinite(single).all())
    assert float(torch.linalg.norm(X - single @ W.mT)) < 1.06 * float(best)
