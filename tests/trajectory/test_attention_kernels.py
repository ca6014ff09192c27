"""A checkpoint cannot choose code of the Hub to compute its attention with."""

import json
import sys
import types

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from ontogeny import Trajectory
from ontogeny.errors import CheckpointError


def saved(path, **extra):
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=20))
    model.save_pretrained(path)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **extra}))


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize(
    "value", ["evil/kernel", {"": "kernels-community/flash-attn2"}]
)
def test_a_kernel_that_a_checkpoint_names_is_refused_and_never_fetched(
    tmp_path, monkeypatch, key, value
):
    asked = []
    stand_in = types.ModuleType("kernels")
    stand_in.get_kernel = lambda *a, **k: asked.append(a)
    monkeypatch.setitem(sys.modules, "kernels", stand_in)
    saved(tmp_path / "checkpoint-1", **{key: value})
    run = Trajectory.from_folder(tmp_path)
    for use in (run[1].model, run[1].mapped, lambda: run.skeleton().load(1)):
        with pytest.raises(CheckpointError, match=r"asks for remote code: \w+ is "):
            use()
    assert not asked


@pytest.mark.parametrize(
    ("asked", "used"), [("flash_attention_2", "sdpa"), ("eager", "eager")]
)
def test_attention_is_one_of_the_two_that_pytorch_has(tmp_path, asked, used):
    saved(tmp_path / "checkpoint-1", attn_implementation=asked)
    run = Trajectory.from_folder(tmp_path)
    assert run[1].model().config._attn_implementation == used
