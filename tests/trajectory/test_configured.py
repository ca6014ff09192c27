"""A class of the user's is built with the settings that its checkpoint holds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import ArgumentError


@dataclass
class Sizes:
    """The settings of a model, as nanoGPT's `GPTConfig`."""

    width: int = 8
    deep: bool = False


class Model(nn.Module):
    """One that is given its settings as one object."""

    def __init__(self, config) -> None:
        super().__init__()
        self.layer = nn.Linear(config.width, config.width)
        self.kind = type(config).__name__


class Wide(nn.Module):
    """One that is given each setting by its name."""

    def __init__(self, width: int, *, bias: bool = True) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width, bias=bias)
        self.kind = ""


def _run(folder, key, settings, width=3):
    folder.mkdir()
    for step in (0, 10):
        state = nn.Module()
        state.layer = nn.Linear(width, width)
        content = {"model": state.state_dict(), "iter_num": step, key: settings}
        torch.save(content, folder / f"ckpt_{step}.pt")
    return folder


@pytest.mark.parametrize("key", ["model_args", "config", "hyper_parameters"])
@pytest.mark.parametrize(
    ("cls", "settings", "kind"),
    [
        (Model, {"width": 3}, "Sizes"),
        (Model, {"width": 3, "learning_rate": 0.1}, "Settings"),
        (Wide, {"width": 3, "learning_rate": 0.1}, ""),
    ],
    ids=["a dataclass beside it", "plain settings", "by name"],
)
def test_settings_of_the_checkpoint_build_the_model(tmp_path, key, cls, settings, kind):
    run = og.Trajectory.from_folder(_run(tmp_path / "run", key, settings), model=cls)
    model = run[10].model()
    assert (model.layer.in_features, model.kind) == (3, kind)


def test_settings_in_the_one_file_of_a_folder_count(tmp_path):
    """Of `out-500/ckpt.pt` it was said that the checkpoint holds no settings."""
    for path in _run(tmp_path / "files", "model_args", {"width": 3}).iterdir():
        folder = tmp_path / "run" / path.stem.replace("ckpt_", "out-")
        folder.mkdir(parents=True)
        path.rename(folder / "ckpt.pt")
    run = og.Trajectory.from_folder(tmp_path / "run", model=Model)
    assert run.steps.tolist() == [0, 10] and run[10].model().kind == "Sizes"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {},
            "Model needs config, and the checkpoint holds no settings under model_args",
        ),
        ({"height": 3}, "Model cannot build the model: KeyError: 'width'"),
    ],
)
def test_a_model_that_cannot_be_built_is_said_in_one_line(tmp_path, settings, message):
    run = og.Trajectory.from_folder(
        _run(tmp_path / "run", "model_args", settings), model=Model
    )
    with pytest.raises(ArgumentError) as refused:
        run[0].model()
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)
