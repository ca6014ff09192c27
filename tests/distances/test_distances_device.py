"""On a device: how often a comparison waits for it, and that the numbers are those of the CPU."""

import numpy as np
import pytest
import torch

from helpers.fake_device import FakeDevice, placed
from ontogeny import distances
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.distances.alignment import EQUIVALENCES

GENERATOR = torch.Generator().manual_seed(0)
STACK = torch.randn(6, 30, 4, generator=GENERATOR)
CODES = torch.randn(6, 50, 4, generator=GENERATOR)
BATCHED = STACK[:3], STACK[3:]

CALLS = {
    **{n: lambda W, V, n=n: distances.distance(n, W, V) for n in distances.names()},
    **{
        n: lambda W, V, n=n: distances.correlation(n, W, V)
        for n in ("columnwise", "optimal")
    },
    "cka": distances.cka,
    "svcca": distances.svcca,
    "pwcca": distances.pwcca,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_distance_waits_once_for_each_argument_and_once_for_its_results(name):
    here = CALLS[name](*BATCHED)
    W, V = map(placed, BATCHED)
    with FakeDevice() as device:
        one = CALLS[name](W[0], V[0])
    assert device.count == 2
    assert one == pytest.approx(CALLS[name](BATCHED[0][0], BATCHED[1][0]), rel=1e-10)
    with FakeDevice() as device:
        many = CALLS[name](W, V)
    assert device.count == 3
    assert many.device == W.device
    torch.testing.assert_close(many.host, here)


@pytest.mark.parametrize("under", EQUIVALENCES)
def test_an_alignment_gives_back_on_the_device_what_the_cpu_finds(under):
    here = distances.align(*BATCHED, under)
    W, V = map(placed, BATCHED)
    with FakeDevice() as device:
        there = distances.align(W, V, under)
        residual = distances.alignment_residual(W[0], V[0], under)
    assert device.count == 6
    for a, b in zip(there, here, strict=True):
        torch.testing.assert_close(a.host, b)
    own = distances.alignment_residual(BATCHED[0][0], BATCHED[1][0], under)
    assert residual == pytest.approx(own, rel=1e-10)


@pytest.mark.parametrize("count", [2, 6])
def test_all_pairs_of_any_number_of_steps_wait_once_for_each_argument(count):
    with FakeDevice() as device:
        there = distances.pairwise(
            placed(STACK[:count]), placed(CODES[:count]), workers=1
        )
    assert device.count == 2
    here = distances.pairwise(STACK[:count], CODES[:count], workers=1)
    np.testing.assert_allclose(there, here, rtol=1e-10, atol=1e-10)


def test_series_of_dictionaries_wait_a_fixed_number_of_times():
    for count in (3, 6):
        stack = placed(STACK[:count])
        with FakeDevice() as device:
            distances.tracks(stack)
            distances.concept_plane(stack)
            distances.matching_level(stack[0], stack[1], n_shuffles=count)
            distances.compare(stack[0], stack[1], placed(CODES[0]))
        assert device.count == 8, device.waits


def test_invalid_numbers_on_a_device_are_refused():
    W = STACK[0].clone()
    W[0, 0] = torch.nan
    with (
        FakeDevice(),
        pytest.raises(NonFiniteError, match="V holds 1 NaN or infinite values of"),
    ):
        distances.frobenius(placed(STACK[0]), placed(W))
    with (
        FakeDevice(),
        pytest.raises(ArgumentError, match="W holds numbers beyond 1e\\+70"),
    ):
        distances.frobenius(placed(1e71 * W.double().nan_to_num()), placed(W.double()))
