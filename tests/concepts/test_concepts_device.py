"""Extractors on a device: how often they wait for it, and that they find what the CPU finds."""

import numpy as np
import pytest
import torch

from helpers.fake_device import NAME, FakeDevice, placed
from ontogeny import concepts
from ontogeny.concepts import tensors
from ontogeny.concepts.alternating import descend
from ontogeny.concepts.ica import decorrelate
from ontogeny.concepts.kmeans import _drawn
from ontogeny.concepts.linalg import polar
from ontogeny.concepts.rows import Factor, next_worst
from ontogeny.concepts.tensors import READ_EVERY

GENERATOR = torch.Generator().manual_seed(0)
SOURCES = torch.rand(90, 5, generator=GENERATOR).log()
A = SOURCES @ torch.randn(5, 12, generator=GENERATOR)
A = A + 0.1 * torch.randn(90, 12, generator=GENERATOR)
R = 3
CASES = {
    "nmf": ("nmf", {"nonnegative": "relu"}),
    "nmf, split": ("nmf", {"nonnegative": "split"}),
    "nmf, shift": ("nmf", {"nonnegative": "shift"}),
    "convex-nmf": ("convex-nmf", {}),
    "convex-nmf, multiplicative": ("convex-nmf", {"variant": "multiplicative"}),
    "semi-nmf": ("semi-nmf", {}),
    "semi-nmf, dictionary": ("semi-nmf", {"nonnegative": "dictionary"}),
    "svd": ("svd", {}),
    "pca": ("pca", {}),
    "sparse-pca": ("sparse-pca", {}),
    "sparse-pca, codes": ("sparse-pca", {"sparse": "codes"}),
    "ica": ("ica", {}),
    "ica, exp": ("ica", {"fun": "exp"}),
    "kmeans": ("kmeans", {}),
    "dictionary": ("dictionary", {}),
    "sae": ("sae", {"batch_size": 45}),
    "sae, topk": ("sae", {"variant": "topk", "k": 2, "batch_size": 45}),
    "sae, batchtopk": ("sae", {"variant": "batchtopk", "k": 2, "batch_size": 45}),
    "sae, jumprelu": ("sae", {"variant": "jumprelu", "batch_size": 45}),
}
OWN_START = {"kmeans", "convex-nmf"}  # clusters: on the CPU those of scikit-learn
LENGTH: dict[str, str | None] = {"sae": "epochs", "svd": None, "pca": None}

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")


def made(case, most=30, **further):
    name, options = CASES[case]
    length = LENGTH.get(name, "max_iter")
    limits = {} if length is None else {length: most}
    return concepts.make(name, R, **{"random_state": 0} | options | limits | further)


def endless(case):
    return {} if LENGTH.get(CASES[case][0], "max_iter") != "max_iter" else {"tol": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_host_waits_once_in_ten_iterations(case):
    counts = []
    for iterations in (10, 20):
        with FakeDevice() as device:
            made(case, iterations, **endless(case)).fit(placed(A))
        counts.append(device.count)
    assert counts[1] - counts[0] <= 10 / READ_EVERY, device.waits
    assert counts[0] <= 40, device.waits


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][0] not in OWN_START])
def test_a_fit_on_a_device_is_that_of_the_cpu(case):
    here = made(case).fit(A)
    with FakeDevice():
        there = made(case).fit(placed(A))
        codes = there.transform(placed(A))
    size = here.components_.abs().max()
    torch.testing.assert_close(
        there.components_.host / size, here.components_ / size, **CLOSE
    )
    codes, own = codes.host, here.transform(A)
    torch.testing.assert_close(codes / own.abs().max(), own / own.abs().max(), **CLOSE)
    # Where an iteration lowers the objective by nearly the tolerance, rounding decides.
    assert abs(there.n_iter_ - here.n_iter_) <= 1
    assert there.converged_ == here.converged_
    assert there.relative_error_ == pytest.approx(here.relative_error_, abs=1e-4)


CLOSE = {"rtol": 0, "atol": 3e-3}


@pytest.mark.parametrize("case", ["kmeans", "convex-nmf", "convex-nmf, multiplicative"])
def test_clusters_found_on_a_device_are_as_good_as_scikit_learns(case):
    here = min(made(case, 10, random_state=s).fit(A).relative_error_ for s in (0, 1))
    with FakeDevice():
        there = min(
            made(case, 10, random_state=s).fit(placed(A)).relative_error_
            for s in (0, 1)
        )
    assert there <= 1.03 * here


def test_restarts_of_kmeans_count_on_a_device_too():
    with FakeDevice():
        errors = [
            made("kmeans", n_init=n).fit(placed(A)).relative_error_ for n in (1, 8)
        ]
    assert errors[1] <= errors[0]


@pytest.mark.parametrize("case", ["kmeans", "ica"])
def test_two_fits_on_a_device_have_the_same_bits(case):
    with FakeDevice():
        first, second = (made(case).fit(placed(A)).components_.host for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("case", concepts.names())
def test_a_device_without_float64_is_enough(case, monkeypatch):
    monkeypatch.setattr(tensors, "WITHOUT_DOUBLE", {NAME})
    monkeypatch.setattr("ontogeny.concepts.linalg.WITHOUT_DOUBLE", {NAME})
    with FakeDevice(double=False):
        there = made(case).fit(placed(A))
        there.transform(placed(A))
    here = made(case).fit(A)
    assert there.relative_error_ <= 1.1 * here.relative_error_ + 1e-3


@pytest.mark.parametrize(
    "case", ["semi-nmf", "nmf", "ica", "dictionary", "sae", "convex-nmf"]
)
def test_a_warm_start_on_a_device_goes_on_as_on_the_cpu(case):
    start = made(case).fit(A).components_.mT
    start[:, 1] = 0.0  # a concept that starts where most is left
    here = made(case).fit(A, init_dictionary=start)
    with FakeDevice():
        there = made(case).fit(placed(A), init_dictionary=placed(start))
    assert there.relative_error_ == pytest.approx(here.relative_error_, abs=2e-3)


def test_semi_nmf_of_low_rank_waits_for_its_small_eigenproblems():
    flat = A[:, :2] @ A[:2]
    counts = []
    for iterations in (10, 20):
        with FakeDevice() as device:
            made("semi-nmf", iterations, tol=0.0).fit(placed(flat))
        counts.append(device.count)
    assert counts[1] - counts[0] <= 2 * 10 + 10 / READ_EVERY, device.waits


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e5])
def test_the_polar_factor_by_products_is_that_of_the_svd(condition):
    left, _, right = torch.linalg.svd(
        torch.randn(20, 6, generator=GENERATOR).double(), False
    )
    X = (left * torch.logspace(0, -np.log10(condition), 6).double()) @ right
    # Small directions are known less well.
    close = {"rtol": 0, "atol": 1e-12 * (1e3 + condition)}
    torch.testing.assert_close(polar(X), left @ right, **close)
    square = X.mT @ (left @ right)
    torch.testing.assert_close(polar(square), decorrelate(square), **close)


def test_directions_that_vanish_have_no_part_in_the_polar_factor():
    X = torch.tensor([[3.0, 0.0], [0.0, 0.0], [4.0, 0.0]])
    expected = torch.tensor([[0.6, 0.0], [0.0, 0.0], [0.8, 0.0]])
    torch.testing.assert_close(polar(X), expected)
    assert bool((polar(torch.zeros(3, 2)) == 0).all())


def test_draws_have_the_odds_of_their_weights():
    weights = torch.tensor([1.0, 0.0, 3.0, 0.0, 4.0, 0.0, 0.0])
    draws = (torch.arange(80) + 0.5) / 80
    index, count = torch.unique(_drawn(weights, draws), return_counts=True)
    assert (index.tolist(), count.tolist()) == ([0, 2, 4], [10, 30, 40])


def test_unused_concepts_get_different_samples_the_worst_first():
    unused = torch.tensor([True, False, True, True])
    index, given = next_worst(unused, torch.tensor([1.0, 9.0, 5.0]))
    assert index[unused].tolist() == [1, 2, 0] and given.tolist() == unused.tolist()
    index, given = next_worst(unused, torch.tensor([1.0, 9.0]))
    assert given.tolist() == [True, False, True, False]


def test_concepts_without_a_use_start_again_on_a_device_as_on_the_cpu():
    P, W = A.abs(), torch.rand(R, 12, generator=GENERATOR)
    U = torch.rand(R, 90, generator=GENERATOR)
    W[1:3] = 1e-20
    factor = Factor("nonnegative")
    here = next(descend(P, U, W, factor, factor))
    with FakeDevice():
        there = next(descend(*map(placed, (P, U, W)), factor, factor))
    for own, other in zip(here, there, strict=True):
        torch.testing.assert_close(other.host, own, rtol=1e-4, atol=1e-4)
