"""A weight file is opened for its header once, and then when a tensor of it is read."""

import os

import pytest
import torch
from safetensors.torch import save_file

from helpers.counted_opens import counted_opens
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.weights.files import WeightFiles


@pytest.fixture
def path(tmp_path):
    save_file({"a": torch.arange(6.0).reshape(2, 3)}, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_names_shapes_and_dtypes_are_read_once(path, monkeypatch):
    opens, weights = counted_opens(monkeypatch), WeightFiles((path,))
    for _ in range(3):
        with weights.open() as reader:
            assert reader.names() == ["a"] and reader.shape("a") == (2, 3)
            assert reader.dtype("a") == torch.float32
    # By safetensors, which checks it, and for where its tensors lie.
    assert opens[path] == 2
    for _ in range(2):
        with weights.open() as reader:
            assert reader.get("a").sum() == 15 and reader.rows("a", 1, 2).sum() == 12
    assert opens[path] == 4


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_was_written_over_is_read_anew(path, replaced):
    weights, before = WeightFiles((path,)), path.stat()
    with weights.open() as reader:
        assert reader.shape("a") == (2, 3)
    place = path.with_name("other.safetensors") if replaced else path
    save_file({"a": torch.arange(6.0).reshape(3, 2) + 1}, place)  # of the same size
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    place.replace(path)
    with weights.open() as reader:
        assert reader.shape("a") == (3, 2) and reader.get("a").sum() == 21


def test_a_file_that_is_written_over_while_it_is_open_is_refused(path):
    with WeightFiles((path,)).open() as reader:
        save_file({"a": torch.zeros(1)}, path)
        with pytest.raises(CheckpointError, match="was written over while it was read"):
            reader.get("a")
        path.unlink()
        with pytest.raises(CheckpointError, match=r"model\.safetensors is gone"):
            reader.get("a")
