"""Models larger than one device: the same numbers, wherever accelerate has put the weights."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers import family_models as families
from helpers.text_models import save_tokenizer
from ontogeny import needs
from ontogeny.capture import read
from ontogeny.errors import ArgumentError
from ontogeny.study import read_study
from ontogeny.tasks import bundled_texts, train_tokenizer
from ontogeny.trajectory import placing
from ontogeny.trajectory.placing import is_placed_run, placed, weight_bytes
from ontogeny.trajectory.weights import placed as placed_weights
from ontogeny.trajectory.weights.placed import fits_one, room_here
from ontogeny.trajectory.weights.placement import names_in_files

pytest.importorskip("accelerate")

VOCABULARY = 300
FEW = (5, 9, 3, 7)
ACTIVATIONS = needs.Activations("mlp")


@pytest.fixture
def run(tmp_path):
    for step in (0, 3, 7):
        model = families.build("llama", step, VOCABULARY).bfloat16()
        model.save_pretrained(tmp_path / "run" / f"checkpoint-{step}")
    return og.Trajectory.from_folder(tmp_path / "run")


def little_room(monkeypatch, room):
    monkeypatch.setattr(placing, "room_here", lambda device: room)


def test_what_fits_on_one_device_stays_as_it_is(run):
    assert placed(run) is run
    assert fits_one(weight_bytes(run[7]), room_here())


def test_weights_are_counted_in_the_precision_they_are_computed_in(run):
    assert weight_bytes(run[7], torch.float32) == 2 * weight_bytes(run[7])
    stored = sum(p.numel() for p in run[7].model().parameters())
    assert weight_bytes(run[7]) == 2 * stored


@pytest.mark.parametrize("share", [0, 0.5])
def test_what_is_too_large_lies_partly_in_files_and_gives_the_same_bits(
    run, share, monkeypatch
):
    little_room(monkeypatch, {"cpu": int(share * weight_bytes(run[7]))})
    there = placed(run)
    assert is_placed_run(there)
    assert not is_placed_run(run)
    assert there.fingerprint == run.fingerprint
    in_files = names_in_files(there[7].model())
    assert in_files
    ids = torch.tensor([[1, 2, 3, 4]])
    skeletons = run.skeleton(), there.skeleton()
    for step in (0, 7, 0):
        one, other = (s.load(step)(input_ids=ids).logits for s in skeletons)
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", families.NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_function_builds_the_model_of_the_folder(name, dtype, tmp_path):
    """A dtype rounded rotary frequencies, which moved a loss by .001."""
    folder = tmp_path / "checkpoint-7"
    families.build(name, 7).bfloat16().save_pretrained(folder)
    run = og.Trajectory.from_folder(tmp_path)
    built = og.Trajectory.from_folder(tmp_path, model=lambda: families.build(name, 3))
    inputs = families.inputs_of(FEW)
    one, other = (
        read(r[7].model(dtype=dtype), [ACTIVATIONS], {"text": inputs})[ACTIVATIONS]
        for r in (run, built)
    )
    # A function's own constants are of single precision.
    exact = dtype == torch.bfloat16
    for layer, values in one.items():
        np.testing.assert_allclose(
            values.float(), other[layer].float(), rtol=0, atol=0 if exact else 1e-6
        )


class Wrapped(torch.nn.Module):
    """A module of the user's around a model of transformers, as training loops have them."""

    def __init__(self):
        super().__init__()
        self.model = families.build("llama", 3)


def test_a_module_around_a_model_keeps_its_rotary_frequencies(tmp_path):
    state = {
        f"model.{n}": t for n, t in families.build("llama", 7).state_dict().items()
    }
    torch.save(state, tmp_path / "step_7.pt")
    run = og.Trajectory.from_folder(tmp_path, model=Wrapped)
    module = run[7].model(dtype=torch.bfloat16)
    there = dict(families.build("llama", 7).named_buffers())
    for name, buffer in module.model.named_buffers():
        assert torch.equal(buffer, there[name])
    assert module.model.lm_head.weight.dtype == torch.bfloat16


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:1", "cpu"])
def test_gpus_count_where_they_compute(device, monkeypatch):
    gpu = SimpleNamespace(total_memory=1000)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    room = room_here(device)
    room.pop("cpu")
    assert room == ({} if device == "cpu" else {0: 750, 1: 750})


STUDY = """
[trajectory]
folder = "run"
placed = {placed}

[inputs]
files = ["texts.txt"]
max_length = 12

[[observables]]
kind = "loss"

[[observables]]
kind = "weight-norms"

[[observables]]
kind = "activation-decay"
layers = "mlp"

[controls]
count = 2
steps = 3

[options]
device = "cpu"
{options}
"""


@pytest.fixture
def folder(run, tmp_path):
    save_tokenizer(train_tokenizer(bundled_texts(), VOCABULARY), tmp_path / "run")
    (tmp_path / "texts.txt").write_text("a b c d\n\nc d e f g\n\nh g f e d\n")
    return tmp_path


def studied(folder, is_placed, options="noise = 2"):
    file = folder / f"{is_placed}.toml"
    file.write_text(STUDY.format(placed=str(is_placed).lower(), options=options))
    return read_study(file)


def test_a_study_of_a_placed_model_gives_the_same_bits(folder, monkeypatch):
    studied(folder, False).run(folder / "whole")
    little_room(monkeypatch, {"cpu": 1})
    study = studied(folder, True)
    assert is_placed_run(study.trajectory)
    assert list(study.run(folder / "placed").problems()) == []
    trees = [og.open_study(folder / name).tree for name in ("whole", "placed")]
    for node in trees[0].children:
        for variable, values in trees[0][node].data_vars.items():
            np.testing.assert_array_equal(
                values.values, trees[1][node][variable], err_msg=f"{node} {variable}"
            )
    unplaced = read_study(folder / "False.toml")
    assert not is_placed_run(unplaced.trajectory)
    of_command = read_study(folder / "False.toml", placed=True)
    assert is_placed_run(of_command.trajectory)
    # Where weights lie is no part of what was computed: nothing is done again.
    assert not read_study(folder / "True.toml").plan(folder / "whole").to_do


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('weights = "streamed"', "goes with loaded weights"),
        ('dtype = "int8"', "dtype must be one of"),
    ],
)
def test_options_that_place_weights_otherwise_are_refused(folder, options, message):
    with pytest.raises(ArgumentError, match=message):
        studied(folder, True, options)


def test_models_of_own_code_are_refused_with_what_helps(tmp_path, monkeypatch):
    models = {step: families.build("llama", step) for step in (0, 7)}
    little_room(monkeypatch, {"cpu": 1})
    with pytest.raises(ArgumentError, match="function of yours place it"):
        placed(og.Trajectory.from_models(models))


def test_without_room_anywhere_it_says_by_how_much(run, monkeypatch):
    little_room(monkeypatch, {"cpu": 1})
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(placing.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ArgumentError, match=r"fits nowhere: of its .* GB"):
        placed(run)


def test_without_accelerate_it_says_what_to_install(run, monkeypatch):
    little_room(monkeypatch, {"cpu": 1})
    monkeypatch.setattr(placed_weights, "find_spec", lambda _: None)
    with pytest.raises(ArgumentError, match=r"ontogeny\[accelerate\]"):
        placed(run)
