"""What an interrupted save leaves as the last checkpoint is left out, and said."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save, save_file
from torch import nn

from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.weights.files import safe_metadata

DAMAGE = {"empty": 0, "cut at the end": -40, "cut in the middle": 0.5}


def files(folder, suffix, legacy=False):
    torch.manual_seed(0)
    first = torch.randn(64, 64)
    for epoch in range(1, 5):
        state = {"weight": first + 0.1 * epoch, "bias": torch.zeros(64)}
        path = folder / f"rnn_epoch_{epoch}{suffix}"
        if suffix == ".safetensors":
            save_file(state, path)
        else:
            torch.save(state, path, _use_new_zipfile_serialization=not legacy)
    return path


def cut(path, amount):
    content = path.read_bytes()
    path.write_bytes(content[: int(amount * len(content)) if amount >= 0 else amount])


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_the_last_readable_checkpoint_is_the_last(tmp_path, suffix, damage):
    cut(files(tmp_path, suffix), DAMAGE[damage])
    run = Trajectory.from_folder(tmp_path, nn.Linear(64, 64))
    assert list(run.steps) == [1, 2, 3]
    (line,) = [
        line for line in Trajectory.from_folder(tmp_path).lines() if "left out" in line
    ]
    assert "epoch 4" in line and f"rnn_epoch_4{suffix}" in line
    assert [(f.kind, f.steps) for f in run.audit()] == [("incomplete", (4,))]
    assert run[3].model().weight.shape == (64, 64)


def test_older_files_without_bytes_are_left_out_as_well(tmp_path):
    cut(files(tmp_path, ".pth", legacy=True), 0)
    assert list(Trajectory.from_folder(tmp_path, nn.Linear(64, 64)).steps) == [1, 2, 3]


def test_one_file_that_is_cut_off_is_refused_with_what_it_lacks(tmp_path):
    path = files(tmp_path, ".pt")
    cut(path, 0.5)
    with pytest.raises(CheckpointError, match="is cut off: its save was interrupted"):
        Trajectory.from_folder(path, nn.Linear(64, 64))


@pytest.mark.parametrize("notes", [None, {}, {"step": "7"}])
def test_notes_in_a_header_may_be_null(tmp_path, notes):
    """MLX writes null where it notes nothing."""
    content = save({"weight": torch.randn(3, 4)})
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(
        {**json.loads(content[8 : 8 + length]), "__metadata__": notes}
    ).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
    assert safe_metadata(path) == (notes or {})
    run = Trajectory.from_folder(path, nn.Linear(4, 3, bias=False))
    assert list(run.steps) == [7 if notes else 0] and list(run.audit()) == []
