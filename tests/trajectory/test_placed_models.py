"""Models that accelerate has placed: the same numbers as without, and nobody's weights change."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers import family_models as families
from ontogeny import needs
from ontogeny.capture import read
from ontogeny.capture.layer_readout import readouts
from ontogeny.capture.ov_circuit import check_has_ov_circuit
from ontogeny.errors import ArgumentError
from ontogeny.trajectory.weights import placement
from ontogeny.trajectory.weights.files import state_tensors

accelerate = pytest.importorskip("accelerate")

VOCABULARY = 151_936
PLACEMENTS = ("hooked", "in memory", "in files")
FEW = (5, 9, 3, 7)


def placed(model, how, folder):
    if how == "hooked":
        return accelerate.dispatch_model(model, {"": "cpu"}, force_hooks=True)
    if how == "in memory":
        return accelerate.cpu_offload(model, execution_device="cpu")
    return accelerate.disk_offload(model, folder, execution_device="cpu")


def two(name, vocabulary=families.VOCABULARY):
    models = {step: families.build(name, step, vocabulary) for step in (0, 7)}
    return {step: model.bfloat16() for step, model in models.items()}


def both(models, how, folder):
    """The same models as a trajectory, plain and placed; and the placed ones."""
    there = {
        s: placed(copy.deepcopy(m), how, folder / str(s)) for s, m in models.items()
    }
    return (og.Trajectory.from_models(models), og.Trajectory.from_models(there), there)


def readings(trajectory, inputs, wanted):
    skeleton = trajectory.skeleton()
    for checkpoint in trajectory:
        values = read(skeleton.load(checkpoint), wanted, {"text": inputs})
        yield {need: _arrays(value) for need, value in values.items()}


def _arrays(value):
    if isinstance(value, dict):
        return {name: array.numpy() for name, array in value.items()}
    return {name: array.values for name, array in value.data_vars.items()}


def assert_same(one, other):
    for here, there in zip(one, other, strict=True):
        for need, arrays in here.items():
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, there[need][name])


@pytest.mark.slow
@pytest.mark.parametrize("name", families.NAMES)
def test_every_family_gives_the_same_bits(name, tmp_path):
    wanted = [needs.Activations("mlp"), needs.Attention()]
    wanted += [] if name == "t5" else [needs.Losses()]
    inputs = families.inputs_of(FEW)
    models = two(name, VOCABULARY)
    plain = list(readings(og.Trajectory.from_models(models), inputs, wanted))
    layer = next(iter(plain[0][wanted[0]]))
    assert not np.array_equal(*(p[wanted[0]][layer] for p in plain))
    for how in PLACEMENTS:
        _, there, _ = both(models, how, tmp_path / how)
        assert_same(plain, readings(there, inputs, wanted))


@pytest.mark.parametrize("how", PLACEMENTS)
def test_a_checkpoint_never_writes_into_the_models_that_were_given(how, tmp_path):
    plain, trajectory, given = both(two("llama"), how, tmp_path)
    skeleton = trajectory.skeleton()
    skeleton.load(0)
    skeleton.load(7)
    for step, model in given.items():
        with plain[step].open() as reader:
            for name, tensor in state_tensors(model).items():
                assert torch.equal(tensor, reader.get(name)), (step, name)
    assert trajectory[0].model() is not given[0]
    assert trajectory[7].digests() == plain[7].digests()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])
@pytest.mark.parametrize("kind", ["reads none", "reads activations and has controls"])
def test_studies_give_the_same_bits(name, kind, tmp_path):
    models = two(name)
    trajectories = [og.Trajectory.from_models(models)]
    trajectories += [both(models, how, tmp_path / how)[1] for how in PLACEMENTS]
    observables = [og.observables.Loss(), og.observables.WeightNorms()]
    has_controls = kind != "reads none"
    if has_controls:
        observables.append(og.observables.ActivationDecay("mlp"))
    trees = []
    for i, trajectory in enumerate(trajectories):
        study = og.Study(
            trajectory,
            families.inputs_of(),
            observables,
            device="cpu",
            noise=0,
            controls=2 if has_controls else 0,
        )
        result = study.run(tmp_path / str(i))
        assert not list(result.problems())
        trees.append(og.open_study(tmp_path / str(i)).tree)
    for tree in trees[1:]:
        for node in trees[0].children:
            for variable, values in trees[0][node].data_vars.items():
                np.testing.assert_array_equal(values.values, tree[node][variable])


def test_what_a_function_places_is_filled_from_files(tmp_path):
    models = two("llama")
    plain = og.Trajectory.from_models(copy.deepcopy(models))
    for step, model in models.items():
        model.save_pretrained(tmp_path / f"checkpoint-{step}")

    def build():
        fresh = families.build("llama", 3).bfloat16()
        return placed(fresh, "in files", tmp_path / "offloaded")

    trajectory = og.Trajectory.from_folder(tmp_path, model=build)
    wanted = [needs.Activations("mlp"), needs.Losses()]
    inputs = families.inputs_of(FEW)
    assert_same(readings(plain, inputs, wanted), readings(trajectory, inputs, wanted))


def test_weights_in_files_are_mapped_and_never_copied(tmp_path, monkeypatch):
    """A swap of what lies in files gives the module other maps, and copies nothing."""
    models = two("llama")
    for step, model in models.items():
        model.save_pretrained(tmp_path / f"checkpoint-{step}")
    build = lambda: placed(  # noqa: E731
        families.build("llama", 3).bfloat16(), "in files", tmp_path / "offloaded"
    )
    skeleton = og.Trajectory.from_folder(tmp_path, model=build).skeleton()
    module = skeleton.load(0)
    before = weakref.ref(module.lm_head.weight)
    copied = []
    monkeypatch.setattr(
        torch.Tensor, "copy_", lambda tensor, other: copied.append(tensor)
    )
    assert skeleton.load(7) is module
    assert not copied
    assert before() is None
    assert torch.equal(module.lm_head.weight, models[7].lm_head.weight)


@pytest.mark.parametrize("how", PLACEMENTS[1:])
def test_tied_weights_stay_tied(how, tmp_path):
    _, trajectory, given = both(two("gpt2"), how, tmp_path)
    tensors = state_tensors(given[0])
    assert tensors["lm_head.weight"] is tensors["transformer.wte.weight"]
    module = trajectory.skeleton().load(7)
    assert module.lm_head.weight is module.transformer.wte.weight


def test_parts_take_their_weights_to_the_device_that_they_run_on(tmp_path):
    """On `meta`, as on any device that is not the one where weights rest."""
    model = accelerate.cpu_offload(families.build("llama"), execution_device="meta")
    module = placement.own_copy(model)
    part = module.model.layers[0].mlp.up_proj
    seen = []
    part.register_forward_pre_hook(lambda m, _: seen.append(m.weight.device.type))
    resting = part.weight
    output = module(torch.tensor([[1, 2, 3]], device="meta"))
    assert output.logits.is_meta
    assert seen == ["meta"]
    assert part.weight is resting
    assert resting.device.type == "cpu"


def test_what_a_stopped_pass_left_on_a_device_is_put_back_before_a_swap(tmp_path):
    model = accelerate.cpu_offload(families.build("llama"), execution_device="meta")
    module = placement.own_copy(model)
    part = module.model.layers[0].mlp.up_proj
    resting = part.weight

    class Stopped(BaseException):
        pass

    def stop(*_):
        raise Stopped

    part.register_forward_pre_hook(stop)
    with pytest.raises(Stopped):
        module(torch.tensor([[1, 2, 3]], device="meta"))
    assert part.weight.is_meta
    placement.at_rest(module)
    assert part.weight is resting


def test_a_copy_of_a_copy_is_put_back_too():
    """As of a checkpoint's model that is given to another trajectory."""
    model = accelerate.cpu_offload(families.build("llama"), execution_device="meta")
    module = placement.own_copy(placement.own_copy(model))
    part = module.model.layers[0].mlp.up_proj
    (take, *_) = part._forward_pre_hooks.values()
    take()
    assert part.weight.is_meta
    placement.at_rest(module)
    assert part.weight.device.type == "cpu"


def test_nothing_keeps_a_model_that_holds_weights_itself():
    model = nn.Sequential(nn.Linear(3, 3))
    model.register_parameter("scale", nn.Parameter(torch.ones(3)))
    placed_one = accelerate.cpu_offload(model, execution_device="meta")
    module = placement.own_copy(placed_one)
    kept = weakref.ref(module)
    del module
    gc.collect()
    assert kept() is None


def test_readouts_need_weights_and_the_advice_gives_them():
    layer = "model.layers.1"
    model = families.build("llama")
    there = accelerate.cpu_offload(copy.deepcopy(model), execution_device="cpu")
    with pytest.raises(ArgumentError, match="only while it runs"):
        readouts(there, [layer])
    with pytest.raises(ArgumentError, match="only while it runs"):
        check_has_ov_circuit(there)
    advised = og.Trajectory.from_models({0: there})[0].model()
    rows = np.eye(families.WIDTH)
    np.testing.assert_array_equal(
        readouts(advised, [layer])[layer].written(rows),
        readouts(model, [layer])[layer].written(rows),
    )


def test_transformers_places_a_model_by_a_map_with_files(tmp_path):
    plain, there = {}, {}
    for step, model in two("llama").items():
        folder = tmp_path / f"step{step}"
        model.save_pretrained(folder)
        plain[step] = type(model).from_pretrained(folder, dtype=torch.bfloat16)
        there[step] = type(model).from_pretrained(
            folder,
            dtype=torch.bfloat16,
            device_map={"model": "cpu", "lm_head": "disk"},
            offload_folder=tmp_path / f"offloaded{step}",
        )
    assert there[0].lm_head.weight.is_meta
    wanted = [needs.Activations("mlp"), needs.Losses()]
    inputs = families.inputs_of(FEW)
    trajectories = map(og.Trajectory.from_models, (plain, there))
    assert_same(*(readings(t, inputs, wanted) for t in trajectories))


def test_placed_models_are_not_sent_to_other_processes():
    model = accelerate.cpu_offload(families.build("llama"), execution_device="cpu")
    with pytest.raises(ArgumentError, match="give checkpoints in files"):
        pickle.dumps(og.Trajectory.from_models({0: model})[0].weights)
