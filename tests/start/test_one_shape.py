"""Of files of several models in one folder those of one shape are studied, and all others named."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.start import Wishes, propose
from ontogeny.trajectory.shapes import are_sizes

CODE = """
from torch import nn


def build(width=8):
    return nn.Sequential(nn.Embedding(16, width), nn.Linear(width, 16))


def wide():
    return build(12)
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "model.py").write_text(CODE)
    np.save(tmp_path / "ids.npy", np.arange(600).reshape(30, 20) % 16)
    return tmp_path


def written(place, widths):
    code = {}
    exec(CODE, code)
    (place / "out").mkdir()
    for number, width in enumerate(widths):
        weights = code["build"](width).state_dict()
        torch.save(weights, place / "out" / f"ckpt_{10 * number}.pt")


def proposed(place, build="build", **wishes):
    return propose(
        Wishes(
            str(place / "out"),
            "quick",
            texts=[str(place / "ids.npy")],
            model=str(place / f"model.py:{build}"),
            **wishes,
        ),
        place,
    )


def test_checkpoints_are_taken_among_those_that_fit_the_model(place):
    # Of each ten, eight fit: a preset of eight takes none of the others.
    written(place, [12 if n % 10 in (3, 7) else 8 for n in range(30)])
    proposal = proposed(place)
    others = [f"ckpt_{10 * n}.pt" for n in range(30) if n % 10 in (3, 7)]
    assert sorted(proposal.content["trajectory"]["exclude"]) == sorted(others)
    assert proposal.content["trajectory"]["select"]["count"] == 8
    line = next(line for line in proposal.lines if "other shapes" in line)
    assert line.startswith("left out: 6 checkpoints of other shapes than the model's")
    assert not any("changes at step" in line for line in proposal.lines)
    # The same command goes on with the study: nothing was asked that was not said.
    assert "--exclude" not in proposal.wishes.options()


def test_the_model_says_which_shape_is_its_own_also_where_others_are_more(place):
    written(place, [8, 8, 8, 12, 12])
    proposal = proposed(place, "wide")
    assert len(proposal.content["trajectory"]["exclude"]) == 3
    assert proposal.shown.width == 12


def test_of_one_shape_nothing_is_left_out(place):
    written(place, [8, 8, 8])
    assert "exclude" not in proposed(place).content["trajectory"]


def test_models_of_several_sizes_are_no_run(place):
    """Nine sizes of one model were ordered by their widths, as steps 8 to 72."""
    code = {}
    exec(CODE, code)
    (place / "sizes").mkdir()
    for width in (8, 16, 24):
        state = code["build"](width).state_dict()
        torch.save(state, place / "sizes" / f"model_{width}.pt")
    for opened in (place / "sizes", str(place / "sizes")):
        with pytest.raises(CheckpointError, match="no two of 3 models") as error:
            Trajectory.from_folder(opened)
    # What the message advises is right.
    assert "--step-from 'model_{}'" in str(error.value)
    run = Trajectory.from_folder(place / "sizes", step_from="model_{}")
    assert run.steps.tolist() == [8, 16, 24]
    assert len(Trajectory.from_folder(place / "sizes" / "model_24.pt")) == 1
    told = [f for f in run.audit() if "these are 3 runs" in f.message]
    assert len(told) == 1
    written(place, [8, 12, 16])
    with pytest.raises(
        ArgumentError, match=r"no two of 3 models .*\. Name one of them"
    ):
        proposed(place)


def test_of_a_run_two_checkpoints_are_opened_to_see_that_it_is_one(tmp_path):
    for step in range(1, 9):
        save_file({"w": torch.zeros(2)}, tmp_path / f"model_{step}.safetensors")
    run = Trajectory.from_folder(tmp_path).checkpoints
    opened = []

    class Counted:
        def __init__(self, checkpoint):
            self.checkpoint = checkpoint

        def open(self):
            opened.append(self.checkpoint.step)
            return self.checkpoint.open()

    assert are_sizes([Counted(checkpoint) for checkpoint in run]) == ""
    assert opened == [1, 2]
