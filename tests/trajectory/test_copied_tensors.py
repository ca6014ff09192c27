"""Tensors of one step that are another step's: named with both, and nothing else is."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from ontogeny import Trajectory
from ontogeny.trajectory.audit.copied_tensors import places_of_return

STEPS = range(0, 600, 50)
LAYERS = 4


def trained(seed=0, dtype=torch.float32, rate=0.02):
    """Return states of a run that walks: with biases of 0, constant buffers and tied weights."""
    torch.manual_seed(seed)
    moving = {"embed.weight": 0.02 * torch.randn(400, 32)}
    for layer in range(LAYERS):
        moving[f"h.{layer}.weight"] = 0.2 * torch.randn(32, 32)
        moving[f"h.{layer}.norm"] = torch.ones(32)
    still = {f"h.{layer}.bias": torch.zeros(32) for layer in range(LAYERS)}
    still["positions"] = torch.arange(400.0)
    states = {}
    for step in STEPS:
        state = {name: tensor.to(dtype) for name, tensor in {**moving, **still}.items()}
        states[step] = {**state, "head.weight": state["embed.weight"].clone()}
        moving = {name: w + rate * torch.randn_like(w) for name, w in moving.items()}
    return states


def run_of(states, folder, shards=False):
    for step, state in states.items():
        path = folder / f"checkpoint-{step}"
        path.mkdir()
        names = sorted(state)
        parts = [names[::2], names[1::2]] if shards else [names]
        for i, part in enumerate(parts):
            file = (
                f"model-{i + 1:05}-of-00002.safetensors"
                if shards
                else "model.safetensors"
            )
            save_file({name: state[name].contiguous() for name in part}, path / file)
    return Trajectory.from_folder(folder)


def found(states, folder, **options):
    return [
        (f.kind, f.steps, f.message) for f in run_of(states, folder, **options).audit()
    ]


def test_values_that_come_back_are_told_from_those_that_stay():
    assert places_of_return("aabbb") == []
    assert places_of_return(["a", None, "a"]) == [((0,), (2,))]
    assert places_of_return("abcab") == [((0,), (3,)), ((1,), (4,))]


@pytest.mark.parametrize(
    ("dtype", "rate"),
    [
        (torch.float32, 0.02),
        (torch.bfloat16, 1e-3),
        (torch.bfloat16, 2e-5),
        (torch.float16, 2e-5),
    ],
)
def test_trained_runs_have_no_copies(tmp_path, dtype, rate):
    """Of 16 bits and small rates, single elements hover between two values."""
    for seed in range(3):
        (folder := tmp_path / str(seed)).mkdir()
        kinds = {kind for kind, *_ in found(trained(seed, dtype, rate), folder)}
        assert kinds <= {"frozen"}


@pytest.mark.parametrize("shards", [False, True])
def test_part_of_a_checkpoint_is_named_with_the_step_that_it_is_of(tmp_path, shards):
    states = trained()
    for layer in range(2):
        for part in ("weight", "norm", "bias"):
            states[200][f"h.{layer}.{part}"] = states[500][f"h.{layer}.{part}"].clone()
    kind, steps, message = found(states, tmp_path, shards=shards)[0]
    assert (kind, steps) == ("copied", (200,))
    assert message.startswith(
        "4 of 15 tensors of step 200 are those of step 500, byte for byte: "
    )


def test_the_step_that_a_tensor_is_of_may_be_earlier_or_later(tmp_path):
    for early, late, copy in ((100, 450, 100), (100, 450, 450)):
        states = trained()
        states[copy]["h.1.weight"] = states[{early: late, late: early}[copy]][
            "h.1.weight"
        ].clone()
        (folder := tmp_path / str(copy)).mkdir()
        (finding,) = found(states, folder)
        of = late if copy == early else early
        assert (
            finding[1] == (copy,)
            and f"is that of step {of}, byte for byte" in finding[2]
        )


def test_embeddings_of_two_steps_that_are_a_later_one_s_are_no_exchange(tmp_path):
    states = trained()
    for step in (200, 250):
        for name in ("embed.weight", "head.weight"):
            states[step][name] = states[450]["embed.weight"].clone()
    (finding,) = found(states, tmp_path)
    assert finding[:2] == ("copied", (200, 250))
    assert "2 of 15 tensors of steps 200 and 250 are those of step 450" in finding[2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("first", "stop"), [(0, 200), (200, 400), (100, 300)])
def test_rows_of_a_tensor_are_named(tmp_path, dtype, first, stop):
    states = trained(dtype=dtype, rate=0.005)
    states[200]["embed.weight"][first:stop] = states[450]["embed.weight"][first:stop]
    (finding,) = found(states, tmp_path)
    rows = f"rows {first} to {stop - 1} of 400 of embed.weight of step 200"
    assert finding == ("copied", (200,), f"{rows} are those of step 450, byte for byte")


def test_frozen_layers_and_those_that_are_frozen_for_a_time_are_no_copies(tmp_path):
    states = trained()
    for step in STEPS:
        states[step]["h.0.weight"] = states[0]["h.0.weight"].clone()  # always
        if step < 300:
            states[step]["h.1.weight"] = states[0]["h.1.weight"].clone()  # at first
        if step > 300:
            states[step]["h.2.weight"] = states[300]["h.2.weight"].clone()  # in the end
    assert [kind for kind, *_ in found(states, tmp_path)] == ["frozen"]


def test_a_bias_that_is_set_to_zero_again_is_no_copy(tmp_path):
    states = trained()
    states[300]["h.0.bias"] = torch.randn(32)
    assert found(states, tmp_path) == []


def test_a_checkpoint_that_is_saved_twice_is_said_once(tmp_path):
    states = trained()
    states[400] = {name: tensor.clone() for name, tensor in states[100].items()}
    saved_twice, *others = found(states, tmp_path)
    assert saved_twice[:2] == ("identical", (100, 400))
    assert not any(kind == "copied" for kind, *_ in others)


def test_averages_that_are_kept_beside_the_weights_are_no_copies(tmp_path):
    states = trained()
    average = states[0]["h.0.weight"]
    for step in STEPS:
        average = 0.5 * average + 0.5 * states[step]["h.0.weight"]
        states[step]["ema.h.0.weight"] = average
        states[step]["before.h.0.weight"] = states[max(step - 50, 0)][
            "h.0.weight"
        ].clone()
    assert found(states, tmp_path) == []


def test_both_of_two_exchanged_steps_are_named_with_their_distances(tmp_path):
    states = trained()
    states[100], states[400] = states[400], states[100]
    (finding,) = found(states, tmp_path)
    assert finding[:2] == ("order", (100, 400))
    assert (
        "steps 100 and 400 look exchanged" in finding[2]
        and " in place of " in finding[2]
    )
