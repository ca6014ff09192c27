"""What a header says is read from it: opening a run reads no tensor, however large."""

import json
from contextlib import ExitStack

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ontogeny.trajectory.weights.files import _DTYPES, WeightFiles, _Shard


@pytest.mark.parametrize("dtype", _DTYPES.values(), ids=str)
def test_dtypes_and_shapes_are_those_that_safetensors_gives(dtype, tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {
        "a": torch.zeros(3, 2).to(dtype),
        "b": torch.zeros(()).to(dtype),
        "c": torch.zeros(0, 4).to(dtype),
    }
    save_file(tensors, path)
    with ExitStack() as stack, safe_open(path, "pt") as stored:
        reader = _Shard(path, stack)
        for name in tensors:
            expected = stored.get_tensor(name)
            assert reader.dtype(name) == expected.dtype == reader.get(name).dtype
            assert reader.shape(name) == tuple(expected.shape)


def test_opening_reads_nothing_of_a_large_file(tmp_path, monkeypatch):
    """A sparse file of 4 GB: with a slice of every tensor this took as long as reading it."""
    path = tmp_path / "model.safetensors"
    size = 4_000_000_000
    entry = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}
    header = json.dumps({"w": entry}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    monkeypatch.setattr(_Shard, "_mapped", None)
    monkeypatch.setattr(
        "ontogeny.trajectory.weights.files.safe_open", _opened_without_slices
    )
    with WeightFiles((path,)).open() as reader:
        assert reader.shape("w") == (size // 2,)
        assert reader.dtype("w") == torch.bfloat16


def _opened_without_slices(path, framework):
    opened = safe_open(path, framework)

    class Closed:
        def __enter__(self):
            opened.__enter__()
            return self

        def __exit__(self, *error):
            opened.__exit__(*error)

        def get_slice(self, name):
            raise AssertionError(f"{name} was sliced to open the file")

        get_tensor = get_slice

    return Closed()
