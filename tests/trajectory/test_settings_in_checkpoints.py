"""Settings beside the weights are part of what model a checkpoint is."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.skeleton import Identity
from ontogeny.trajectory.weights.settings import flat, left_settings, taken_settings


class Whole(nn.Module):
    """Takes all settings as one object."""

    def __init__(self, config):
        super().__init__()
        self.layer, self.scale = nn.Linear(2, 2), config.scale


class Named(nn.Module):
    """Takes settings by name, of which one has a default."""

    def __init__(self, width, scale=1.0):
        super().__init__()
        self.layer, self.scale = nn.Linear(width, width), scale


class Defaults(nn.Module):
    """Has a default for every setting."""

    def __init__(self, width=2, scale=1.0, device="cpu"):
        super().__init__()
        self.layer, self.scale, self.device = nn.Linear(width, width), scale, device


class OneDefault(nn.Module):
    """Has a default for all settings together."""

    def __init__(self, config=None):
        super().__init__()
        self.layer, self.scale = (
            nn.Linear(2, 2),
            1.0 if config is None else config["scale"],
        )


def build():
    return Named(2)


def write(folder, key, make, scales=(1.0, 3.0)):
    for step, scale in enumerate(scales):
        settings = make(width=2, scale=scale, device="cuda", run_name=f"part {step}")
        state = {"model": Named(2).state_dict(), key: settings, "step": step}
        torch.save(state, folder / f"ckpt_{step}.pt")
    return folder


@pytest.mark.parametrize("key", ["config", "model_args", "hyper_parameters", "args"])
@pytest.mark.parametrize("make", [dict, Namespace])
@pytest.mark.parametrize("kind", [Whole, Named, Defaults, OneDefault])
def test_every_checkpoint_is_built_with_its_own_settings(tmp_path, key, make, kind):
    run = og.Trajectory.from_folder(write(tmp_path, key, make), model=kind)
    for order in ((0, 1, 0), (1, 0, 1)):
        skeleton = run.skeleton()
        assert [skeleton.load(step).scale for step in order] == [
            1.0 + 2.0 * s for s in order
        ]
    assert [checkpoint.model().scale for checkpoint in run] == [1.0, 3.0]
    assert run[0].settings()["scale"] == 1.0 and run[1].settings_left() == {}


def test_a_module_is_kept_where_its_settings_stay(tmp_path):
    folder = write(tmp_path, "config", dict, scales=(2.0, 2.0))
    skeleton = og.Trajectory.from_folder(folder, model=Named).skeleton()
    assert skeleton.load(0) is skeleton.load(1)
    anew = og.Trajectory.from_folder(folder, model=Named).skeleton(anew=True)
    assert anew.load(0) is not anew.load(1)


@pytest.mark.parametrize("model", [build, Named(2)])
def test_a_change_that_nothing_takes_is_refused_unless_it_is_of_training(
    tmp_path, model
):
    run = og.Trajectory.from_folder(write(tmp_path, "config", dict), model=model)
    said = r"^ckpt_1.pt has other settings than ckpt_0.pt: scale 1.0 -> 3.0; .* build\(config\)\.$"
    first = Identity.of(run[0])
    first.refuse(run[0])
    with pytest.raises(CheckpointError, match=said):
        first.refuse(run[1])
    skeleton = run.skeleton()
    skeleton.load(0)
    with pytest.raises(CheckpointError, match=said):
        skeleton.load(1)


@pytest.mark.parametrize(
    ("name", "is_of_training"),
    [
        ("learning_rate", True),
        ("wandb_run_name", True),
        ("max_iters", True),
        ("out_dir", True),
        ("eval_interval", True),
        ("min_lr", True),
        ("warmup_steps", True),
        ("batch_size", True),
        ("optim.betas", True),
        ("grad_clip", True),
        ("resume_from", True),
        ("dropout", True),
        ("rope_theta", False),
        ("window", False),
        ("logit_scale", False),
        ("softcap", False),
        ("block_size", False),
        ("norm_eps", False),
        ("clip_qkv", False),
        ("value_dim", False),
        ("expansion", False),
        ("rope.base", False),
        ("local_attn_interval", False),
        ("num_recurrent_steps", False),
        ("decay_rate", False),
        ("projection_dim", False),
    ],
)
def test_which_settings_are_of_training_alone(tmp_path, name, is_of_training):
    torch.save(
        {"model": {"w": torch.ones(1)}, "config": {name: 1}}, tmp_path / "ckpt_1.pt"
    )
    assert (left_settings(build, tmp_path / "ckpt_1.pt") == {}) == is_of_training


def test_settings_are_compared_as_plain_values():
    settings = {
        "a": {"b": (1, torch.float16)},
        "c": torch.ones(2),
        "d": {3, 1},
        "e": object(),
    }
    assert flat(settings) == {
        "a.b": [1, "torch.float16"],
        "c": [1.0, 1.0],
        "d": ["1", "3"],
        "e": "object",
    }
    assert taken_settings(None, None) == taken_settings(Named(2), Path("run.pt")) == {}
    in_memory = {"scale": 1.0, "layer.in_features": 2, "layer.out_features": 2}
    assert taken_settings(Named(2), None) == in_memory
