"""Trajectories of models in memory."""

import copy
import pickle

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError


def linear(seed):
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def same(model, other):
    state, expected = model.state_dict(), other.state_dict()
    return state.keys() == expected.keys() and all(
        torch.equal(state[k], expected[k]) for k in state
    )


@pytest.mark.parametrize("as_state", [False, True])
@pytest.mark.parametrize("shipped", [False, True])
def test_modules_and_state_dicts_are_read_alike_also_in_another_process(
    as_state, shipped
):
    models = {100: linear(1), np.int64(0): linear(0)}
    values = {step: m.state_dict() if as_state else m for step, m in models.items()}
    trajectory = Trajectory.from_models(
        values, model=nn.Linear(3, 2) if as_state else None
    )
    fingerprint = trajectory.fingerprint
    if shipped:
        trajectory = pickle.loads(pickle.dumps(trajectory))
    assert list(trajectory.steps) == [0, 100] and trajectory.fingerprint == fingerprint
    skeleton = trajectory.skeleton()
    for step in (100, 0, 100):
        model = skeleton.load(step)
        assert same(model, models[step]) and same(
            trajectory[step].model(), models[step]
        )
        assert (
            trajectory[step].path is None and trajectory[step].label == f"step {step}"
        )
    assert skeleton.file_names() == {"weight": "weight", "bias": "bias"}
    with trajectory[100].open() as tensors:
        assert torch.equal(tensors.rows("weight", 1, 2), models[100].weight[1:2])
        assert not tensors.get("weight").requires_grad


def test_a_file_and_its_model_in_memory_have_the_same_digests(tmp_path):
    from ontogeny import Recorder

    Recorder(tmp_path)(0, linear(3))
    in_memory, on_disk = (
        Trajectory.from_models({0: linear(3)}),
        Trajectory.from_folder(tmp_path),
    )
    assert in_memory[0].digests() == on_disk[0].digests()
    assert in_memory.fingerprint == on_disk.fingerprint


def test_digests_follow_weights_that_change_in_memory():
    model = linear(0)
    trajectory = Trajectory.from_models({0: model})
    before = trajectory[0].digests()
    model.weight.data[0, 0] += 1
    after = trajectory[0].digests()
    assert before["bias"] == after["bias"] and before["weight"] != after["weight"]


def test_the_users_models_are_left_as_they_are():
    model = linear(0).train()
    trajectory = Trajectory.from_models({0: model, 1: linear(1)})
    before = copy.deepcopy(model.state_dict())
    trajectory.skeleton().load(0)
    loaded = trajectory.skeleton()
    loaded.load(0)
    with torch.no_grad():
        loaded.load(1).weight.zero_()
        trajectory[0].model().weight.zero_()
    assert model.training and all(
        torch.equal(before[k], v) for k, v in model.state_dict().items()
    )


def test_the_same_weights_twice_are_refused():
    model = linear(0)
    with pytest.raises(
        ArgumentError, match=r"steps 0 and 100 share the same tensors.*deepcopy"
    ):
        Trajectory.from_models({0: model, 100: model})
    with pytest.raises(ArgumentError, match="share the same tensors"):
        Trajectory.from_models({0: model.state_dict(), 100: model.state_dict()})
    other = linear(1)
    other.bias = model.bias  # a frozen part may be shared
    assert len(Trajectory.from_models({0: model, 100: other})) == 2


def test_another_model_in_between_is_refused():
    def gpt2(layers):
        config = transformers.GPT2Config(
            n_embd=8,
            n_layer=layers,
            n_head=2,
            vocab_size=9,
            bos_token_id=1,
            eos_token_id=2,
        )
        return transformers.GPT2LMHeadModel(config)

    trajectory = Trajectory.from_models({0: gpt2(1), 1: gpt2(2), 2: gpt2(1)})
    skeleton = trajectory.skeleton()
    assert same(skeleton.load(0), trajectory[0].model())
    with pytest.raises(
        CheckpointError, match="step 1 is another model than step 0: n_layer 1 -> 2"
    ):
        skeleton.load(1)
    assert [
        (f.kind, f.steps) for f in trajectory.audit() if f.certainty == "certain"
    ] == [("configuration", (1,)), ("configuration", (2,))]


def test_saving_one_of_the_models_does_not_make_it_another(tmp_path):
    config = transformers.GPT2Config(
        n_embd=8, n_layer=1, n_head=2, vocab_size=9, bos_token_id=1, eos_token_id=2
    )
    models = {
        step: transformers.GPT2LMHeadModel(copy.deepcopy(config)) for step in (0, 1)
    }
    trajectory = Trajectory.from_models(models)
    models[1].save_pretrained(tmp_path)
    skeleton = trajectory.skeleton()
    assert same(skeleton.load(0), models[0]) and same(skeleton.load(1), models[1])


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({}, "at least one step"),
        ([linear(0)], "models must be a dict .* got list"),
        ({-1: linear(0)}, "must be an integer, zero or more; got -1"),
        ({"0": linear(0)}, "must be an integer, zero or more; got '0'"),
        (
            {0: "gpt2"},
            r"models\[0\] must be an nn\.Module or a state dict of tensors; got str",
        ),
        ({0: {"weight": 3}}, r"models\[0\] must be an nn\.Module or a state dict"),
    ],
)
def test_what_is_no_model_is_refused(models, message):
    with pytest.raises(ArgumentError, match=message):
        Trajectory.from_models(models)


def test_state_dicts_without_a_model_give_tensors_but_no_module():
    trajectory = Trajectory.from_models({0: linear(0).state_dict()})
    assert set(trajectory[0].digests()) == {"weight", "bias"}
    with pytest.raises(CheckpointError, match="model=build in Python"):
        trajectory[0].model()


def test_it_prints_as_what_it_is():
    trajectory = Trajectory.from_models({5: linear(0), 7: linear(1)}, tokenizer="mine")
    assert repr(trajectory) == "Trajectory('Linear': 2 checkpoints, steps 5 to 7)"
    assert (
        repr(trajectory.select(steps=[7]))
        == "Trajectory('Linear': 1 checkpoint, step 7)"
    )
    assert repr(trajectory[5]) == "Checkpoint(step=5, label='step 5', path=None)"
    assert trajectory.select(steps=[7]).tokenizer() == "mine"
