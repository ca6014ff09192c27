"""Bundles that TensorFlow wrote (`tensor_bundle/write.py`) are read without it, number by number."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import CheckpointError

BUNDLES = Path(__file__).parent / "tensor_bundle"


class Named(nn.Module):
    """Parameters under the names of Keras: an embedding, a recurrent layer, a dense one."""

    def __init__(self) -> None:
        super().__init__()
        cell = {"kernel": (4, 15), "recurrent_kernel": (5, 15), "bias": (2, 15)}
        shapes = [{"embeddings": (7, 4)}, cell, {"kernel": (5, 7), "bias": (7,)}]
        for number, layer in enumerate(shapes):
            module = inner = nn.Module()
            if "recurrent_kernel" in layer:
                inner = nn.Module()
                module.add_module("cell", inner)
            for name, shape in layer.items():
                inner.register_parameter(name, nn.Parameter(torch.zeros(shape)))
            self.add_module(f"layer_with_weights-{number}", module)

    def forward(self, ids):
        embedding, gru, dense = self.children()
        x = embedding.embeddings[ids]
        state, cell, states = x.new_zeros(len(x), 5), gru.cell, []
        for t in range(x.shape[1]):
            given = (x[:, t] @ cell.kernel + cell.bias[0]).chunk(3, dim=-1)
            kept = (state @ cell.recurrent_kernel + cell.bias[1]).chunk(3, dim=-1)
            update = torch.sigmoid(given[0] + kept[0])
            reset = torch.sigmoid(given[1] + kept[1])
            new = torch.tanh(given[2] + reset * kept[2])
            state = update * state + (1 - update) * new
            states.append(state)
        return torch.stack(states, dim=1) @ dense.kernel + dense.bias


def test_a_model_of_keras_gives_what_keras_gave(tmp_path):
    run = og.Trajectory.from_folder(BUNDLES / "tutorial", Named)
    assert tuple(run.steps) == (1, 2)
    with np.load(BUNDLES / "tutorial" / "given.npz") as given:
        logits = run[2].model()(torch.from_numpy(given["ids"]))
        np.testing.assert_allclose(logits.detach(), given["logits"], atol=1e-6)
    assert not any("iter" in name or "optim" in name for name in run[1].digests())


def test_a_bundle_of_gpt2_is_a_model_of_transformers():
    # Its list of names and shapes, without TensorFlow.
    source = (BUNDLES / "write.py").read_text().partition("\n\ndef write_tutorial")[0]
    planted = {"__file__": str(BUNDLES / "write.py")}
    exec(source.replace("import tensorflow as tf", ""), planted)
    run = og.Trajectory.from_folder(BUNDLES / "gpt2")
    assert tuple(run.steps) == (20, 40)
    rng = np.random.default_rng(0)
    drawn = {n: rng.normal(size=s).astype("f") for n, s in planted["SHAPES"].items()}
    weights = run[40].model().transformer.state_dict()
    for name, there in (
        ("wte", "wte.weight"),
        ("ln_f/g", "ln_f.weight"),
        ("h0/attn/c_attn/w", "h.0.attn.c_attn.weight"),
        ("h0/mlp/c_proj/b", "h.0.mlp.c_proj.bias"),
    ):
        np.testing.assert_array_equal(weights[there], 2 * drawn[name].squeeze())
    inputs = og.Inputs.from_tokens([[1, 2, 3, 4], [10, 9, 8, 7]])
    assert np.isfinite(og.capture.losses(run[20].model(), inputs).loss.values).all()


@pytest.mark.parametrize(
    ("name", "keep", "message"),
    [
        ("ckpt_2.index", 700, "no readable bundle: it has no footer"),
        ("ckpt_2.index", 0, "no readable bundle"),
        ("ckpt_2.data-00000-of-00001", 300, "is cut off: its save was interrupted"),
        ("ckpt_2.data-00000-of-00001", None, "ckpt_2.data-00000-of-00001 is gone"),
    ],
)
def test_what_a_save_left_unfinished_is_left_out_and_said(
    tmp_path, name, keep, message
):
    run = tmp_path / "run"
    shutil.copytree(BUNDLES / "tutorial", run)
    content = (run / name).read_bytes()
    (run / name).unlink()
    if keep is not None:
        (run / name).write_bytes(content[:keep])
    trajectory = og.Trajectory.from_folder(run, Named)
    assert tuple(trajectory.steps) == (1,)
    assert message in "\n".join(trajectory.lines())
    with pytest.raises(CheckpointError, match=message):
        og.Trajectory.from_folder(run / "ckpt_2.index", Named)


def test_damage_anywhere_in_an_index_is_an_error_of_one_line(tmp_path):
    shutil.copytree(BUNDLES / "gpt2", tmp_path, dirs_exist_ok=True)
    index = tmp_path / "model-20.index"
    content = index.read_bytes()
    for place in range(0, len(content), 3):
        index.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        # Only an error of its own kind may come.
        with (
            suppress(CheckpointError),
            og.Trajectory.from_folder(index)[20].open() as r,
        ):
            assert all(torch.isfinite(r.get(name)).all() for name in r.names())
