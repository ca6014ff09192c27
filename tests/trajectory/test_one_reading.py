"""Digests and what is not finite come from one reading of a checkpoint."""

import math

import pytest
import torch
from safetensors.torch import save_file

from ontogeny.trajectory.weights import digests
from ontogeny.trajectory.weights.digests import (
    non_finite,
    shard_digests,
    tensor_digests,
)
from ontogeny.trajectory.weights.files import MemoryWeights, WeightFiles, _Shard

DTYPES = (
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.complex64,
)


def test_bytes_are_read_once_for_everything(tmp_path, monkeypatch):
    tensors = {"a": torch.randn(300, 40), "b": torch.full((7,), math.nan)}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    read = []
    mapped = _Shard._mapped
    monkeypatch.setattr(
        _Shard,
        "_mapped",
        lambda self, offset, size, dtype: (
            read.append(size) or mapped(self, offset, size, dtype)
        ),
    )
    weights = WeightFiles((path,))
    found = tensor_digests(weights)
    assert non_finite(weights) == ("b",)
    assert shard_digests(weights).keys() == {path.name}
    assert found == tensor_digests(MemoryWeights(tensors))
    assert sum(read) == sum(t.numel() * t.itemsize for t in tensors.values())


def test_what_is_in_memory_is_not_hashed_to_find_what_is_not_finite(monkeypatch):
    monkeypatch.setattr(digests, "digest", None)
    weights = MemoryWeights({"b": torch.full((7,), math.nan), "a": torch.ones(3)})
    assert non_finite(weights) == ("b",)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_number_that_is_not_finite_is_found_anywhere(dtype, bad, monkeypatch):
    monkeypatch.setattr(digests, "_CHUNK", 50)
    if dtype == torch.float8_e4m3fn and math.isinf(bad):
        pytest.skip("eight bits of this kind have no infinity")
    for place in (0, 49, 50, 120):
        values = torch.randn(11, 11)
        clean = {"w": values.to(dtype)}
        assert non_finite(MemoryWeights(clean)) == ()
        values.view(-1)[place] = bad
        assert non_finite(MemoryWeights({"w": values.to(dtype)})) == ("w",)


def test_what_has_no_numbers_is_finite():
    weights = {
        "none": torch.zeros(0, 3),
        "count": torch.arange(3),
        "yes": torch.ones(1) > 0,
    }
    assert non_finite(MemoryWeights(weights)) == ()
    # The mask of GPT-NeoX in half precision is a single -inf.
    assert non_finite(MemoryWeights({"mask": torch.tensor(-math.inf)})) == ()
