"""Adapters of MLX, in files that MLX wrote (`mlx_adapter/write.py`), with what it computes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ontogeny import Trajectory
from ontogeny.errors import CheckpointError

FILES = Path(__file__).with_name("mlx_adapter")


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(FILES, tmp_path / "adapters"))


def test_logits_are_those_of_mlx(run):
    trajectory = Trajectory.from_folder(run)
    assert trajectory.steps.tolist() == [0, 10, 20] and trajectory.has_base
    expected = np.load(run / "logits.npz")
    for checkpoint in trajectory:
        with torch.no_grad():
            logits = checkpoint.model()(torch.arange(12)[None]).logits[0, -1].numpy()
        np.testing.assert_allclose(logits, expected[str(checkpoint.step)], atol=1e-5)
    apart = np.abs(expected["10"] - expected["0"]).max()
    assert apart > 0.01  # the adapter does something at all
    # Read as a skeleton puts them into one module, too.
    skeleton = trajectory.skeleton()
    for step in (20, 10, 0):
        with torch.no_grad():
            logits = skeleton.load(step)(torch.arange(12)[None]).logits[0, -1].numpy()
        np.testing.assert_allclose(logits, expected[str(step)], atol=1e-5)


def test_the_final_adapter_alone_and_one_file_are_read(run):
    for file in run.glob("0*_adapters.safetensors"):
        file.unlink()
    alone = Trajectory.from_folder(run)
    assert alone.steps.tolist() == [0, 1]
    with torch.no_grad():
        logits = alone[1].model()(torch.arange(12)[None]).logits[0, -1].numpy()
    expected = np.load(run / "logits.npz")["20"]
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_audit_finds_nothing_and_needs_no_base(run):
    # One layer of two was tuned.
    assert {f.kind for f in Trajectory.from_folder(run).audit()} <= {"unnumbered"}
    shutil.rmtree(run / "base")
    Trajectory.from_folder(run).audit()


def changed(run, **told):
    path = run / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **told}))


def test_another_base_and_other_kinds_are_refused(run):
    changed(run, fine_tune_type="dora")
    with pytest.raises(CheckpointError, match=r"of the kind dora, .*mlx_lm\.fuse"):
        Trajectory.from_folder(run)
    changed(run, fine_tune_type="lora", lora_parameters={"rank": 2})
    with pytest.raises(CheckpointError, match="LoRA with a scale"):
        Trajectory.from_folder(run)
    changed(run, lora_parameters={"rank": 2, "scale": 20.0})
    file = run / "0000020_adapters.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "model.norm.weight": torch.ones(16)}, file)
    ((step, why),) = Trajectory.from_folder(run).catalogue.incomplete
    assert step == 20 and "more than the halves of LoRA (model.norm.weight)" in why
    save_file({n.replace("layers.1", "layers.7"): t for n, t in tensors.items()}, file)
    with pytest.raises(CheckpointError, match="does not belong to its base"):
        Trajectory.from_folder(run)[20].model()
