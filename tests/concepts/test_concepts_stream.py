"""Fitting from batches: what is refused, what is kept, what does not matter."""

import numpy as np
import pytest
import torch

from ontogeny import concepts
from ontogeny.concepts import fit_batches, fit_stack, local_lipschitz, sample_rows
from ontogeny.errors import ArgumentError, NonFiniteError

RNG = np.random.default_rng(0)
A = RNG.laplace(size=(80, 5)) @ (RNG.normal(size=(5, 8)) * np.arange(5, 0, -1)[:, None]) + 0.5
BATCHED = ["svd", "pca", "kmeans"]


def make(name, r=3):
    return concepts.make(name, r)


@pytest.mark.parametrize("name", BATCHED)
def test_batches_do_not_go_on_from_a_fit_that_kept_nothing(name):
    est = make(name).fit(A)
    with pytest.warns(UserWarning, match="partial_fit starts afresh") as record:
        est.partial_fit(A + 5).partial_fit(A)
    assert [w.filename for w in record] == [__file__]
    expected = make(name).partial_fit(A + 5).partial_fit(A)
    np.testing.assert_array_equal(est.components_, expected.components_)
    est.fit(A).reset()
    est.partial_fit(A + 5)
    refitted = fit_batches(make(name).fit(A), [A + 5])
    np.testing.assert_array_equal(est.components_, refitted.components_)


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize(
    ("bad", "error"),
    [(A * np.nan, NonFiniteError), (A * 1e200, ArgumentError), (A * 1e-200, ArgumentError)],
)
def test_a_refused_batch_leaves_what_was_seen(name, bad, error):
    est = make(name).partial_fit(A[:40])
    with pytest.raises(error):
        est.partial_fit(bad)
    expected = make(name).partial_fit(A[:40]).partial_fit(A[40:])
    np.testing.assert_array_equal(est.partial_fit(A[40:]).components_, expected.components_)


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_batches_of_any_size_in_single_precision(name, size):
    plain, scaled = make(name), make(name)
    for part in np.split(A.astype(np.float32), 4):
        plain.partial_fit(part)
        scaled.partial_fit((part * size).astype(np.float32))
    assert scaled.components_.dtype == np.float32
    np.testing.assert_allclose(scaled.relative_error_, plain.relative_error_, rtol=1e-4)
    fitted = plain.inverse_transform(plain.transform(A))
    scaled_fitted = scaled.inverse_transform(scaled.transform((A * size).astype(np.float32)))
    np.testing.assert_allclose(scaled_fitted / size, fitted, atol=1e-3)


@pytest.mark.parametrize("name", BATCHED)
def test_batches_may_change_precision_and_kind(name):
    est = make(name).partial_fit(A[:40].astype(np.float32)).partial_fit(torch.tensor(A[40:]))
    assert est.components_.dtype == torch.float64


@pytest.mark.parametrize("name", BATCHED)
def test_batches_are_taken_in_the_inference_mode_of_the_caller(name):
    with torch.inference_mode():
        est = make(name).partial_fit(torch.tensor(A[:40]))
        est.partial_fit(torch.tensor(A[40:], requires_grad=True))
    assert not est.components_.is_inference() and not est.components_.requires_grad


@pytest.mark.parametrize("name", BATCHED)
def test_batches_smaller_than_the_number_of_concepts(name):
    est = fit_batches(make(name, 5), [A[i : i + 2] for i in range(0, 80, 2)])
    assert est.relative_error_ < 1
    if name == "kmeans":
        with pytest.raises(ArgumentError, match="at least n_concepts=5 samples"):
            fit_batches(make(name, 5), [A[:2], A[2:4]])
        assert not est.converged_, "one pass has no stopping rule"


def test_mini_batches_keep_their_number_of_clusters():
    est = make("kmeans").partial_fit(A)
    with pytest.raises(ArgumentError, match=r"n_concepts was 3 .* and is now 4"):
        est.set_params(n_concepts=4).partial_fit(A)


def test_a_stream_may_hand_out_the_same_memory_again():
    def stream():
        buffer = np.empty((20, 8))
        for part in np.split(A, 4):
            buffer[:] = part
            yield buffer

    np.testing.assert_array_equal(sample_rows(stream(), 1000), A)
    for name in ("kmeans", "pca", "ica"):
        expected = fit_batches(make(name), np.split(A, 4)).components_
        np.testing.assert_array_equal(fit_batches(make(name), stream()).components_, expected)


@pytest.mark.parametrize("wrong", [2.5, True, float("nan"), 0, "9"])
def test_a_budget_is_a_whole_number(wrong):
    with pytest.raises(ArgumentError, match="max_rows"):
        sample_rows([A], wrong)
    with pytest.raises(ArgumentError, match="max_rows"):
        fit_batches(make("ica"), [A], max_tokens=wrong)


@pytest.mark.parametrize("name", ["pca", "kmeans", "ica"])
def test_batches_must_be_batches_of_one_width(name):
    with pytest.raises(ArgumentError, match="got a single one"):
        fit_batches(make(name), A)
    with pytest.raises(ValueError, match=r"one number of columns|expecting 8 features"):
        fit_batches(make(name), [A, A[:, :3]])


@pytest.mark.parametrize("seed", ["x", -1, 1.5, 2**40, np.random.default_rng(0)])
def test_seeds_are_refused_by_name(seed):
    for name in concepts.names():
        with pytest.raises(ArgumentError, match="random_state must be"):
            make(name).set_params(random_state=seed).fit(np.abs(A))
    with pytest.raises(ArgumentError, match="random_state must be"):
        sample_rows([A], 5, random_state=seed)
    with pytest.raises(ArgumentError, match="random_state must be"):
        local_lipschitz(make("svd"), A, random_state=seed)


@pytest.mark.parametrize(
    "call",
    [
        lambda est: fit_batches(est, [A]),
        lambda est: fit_stack(est, A[None]),
        lambda est: local_lipschitz(est, A),
    ],
)
def test_only_extractors_are_fitted(call):
    with pytest.raises(ArgumentError, match="extractor must be an Extractor; got str"):
        call("pca")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("relative_radius", 1e-30),
        ("relative_radius", float("inf")),
        ("relative_radius", "a"),
        ("n_directions", 2.5),
        ("n_directions", True),
    ],
)
def test_perturbations_below_rounding_or_without_number_are_refused(option, value):
    with pytest.raises(ArgumentError, match=option):
        local_lipschitz(make("svd"), A, **{option: value})
