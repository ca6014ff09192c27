"""Plans of large runs from headers alone: what they count, and what they say to leave out."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import ontogeny as og
from helpers import header_runs
from ontogeny.errors import ArgumentError
from ontogeny.start import fitting
from ontogeny.start.fitting import lines_on_paper
from ontogeny.start.paper import Model, Paper, Wanted, _rate_here, check_fits
from ontogeny.start.times import hours_of
from ontogeny.trajectory.weights.files import _Shard

STEPS = tuple(range(0, 300, 10))
TEXTS, LENGTH = 250, 64
LAYERS = "layers[0:32:8].mlp"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seven")
    parameters = header_runs.write(folder, STEPS)
    return folder, parameters


@pytest.fixture
def paper(folder, monkeypatch):
    """A study of 7 billion parameters, 30 checkpoints and 12 controls; no tensor can be read."""
    monkeypatch.setattr(_Shard, "rows", None)
    monkeypatch.setattr(_Shard, "get", None)
    ids = np.random.default_rng(0).integers(5, 32_000, (TEXTS, LENGTH))
    study = og.Study(
        og.Trajectory.from_folder(folder[0]),
        og.Inputs.from_tokens(ids),
        [
            og.observables.Loss(),
            og.observables.AttentionEntropy(),
            og.observables.ActivationDecay(LAYERS, max_tokens=3000),
            og.observables.Concepts("ica", layers=LAYERS, max_tokens=3000),
            og.observables.WeightChange(),
        ],
        device="cpu",
        controls=12,
        control_steps=6,
    )
    return replace(Paper.of(study), memory=8 * 80e9)


def test_a_model_is_known_by_headers(paper, folder):
    model = paper.model
    assert model.parameters == folder[1] == 6_738_415_616
    assert (model.stored, model.itemsize) == (2 * folder[1], 2)
    assert (model.width, model.depth, model.vocabulary) == (4096, 32, 32_000)
    assert all(p.is_meta for p in model.module.parameters())


def test_passes_bytes_and_operations_are_counted(paper, folder):
    wanted = Wanted.of(paper.study)
    readings = 30 + 12 * 5  # a control begins with what the run has read
    assert wanted.readings == readings
    bill = paper.bill(wanted)
    # Losses, maps and activations are read in one pass.
    assert bill.passes == readings
    assert bill.tokens == readings * TEXTS * LENGTH
    stored = 2 * folder[1]
    # Passes, hashing with the audit, and weight blocks; two checkpoints for each of a control.
    assert bill.asked == stored * (3 * 30 + 2 * 60)
    assert (
        bill.read == stored * 2 * 30
    )  # each checkpoint once, and once for its matrices
    kept, two, one = (
        replace(paper, memory=n * stored).bill(wanted) for n in (60, 4, 3)
    )
    assert kept.read == stored * 30
    assert two.read == bill.read
    assert one.read == one.asked == bill.asked
    # Where each worker hashes what it reads, none waits for that.
    assert not two.alone
    assert two.hours(8) < one.hours(8)
    assert bill.on_devices == pytest.approx(2 * folder[1] * bill.tokens / 1e14)
    assert bill.shared["control weights"] == pytest.approx(3.5e-9 * folder[1] * 60)
    halved = paper.bill(replace(wanted, steps=15, controls=6))
    assert (2 * halved.passes, 2 * halved.asked) == (bill.passes, bill.asked)


def test_what_runs_in_parallel_is_divided_by_devices_and_the_rest_is_not(paper):
    bill = paper.bill(Wanted.of(paper.study))
    one, eight = bill.hours(1), bill.hours(8)
    alone = sum(bill.alone.values()) / 3600
    assert one - alone == pytest.approx(8 * (eight - alone))


def test_a_budget_that_holds_all_leaves_nothing_out(paper):
    lines = lines_on_paper(paper, 8, 216)
    assert lines[-1] == "within 216.0 h: nothing has to be left out"
    assert any("6.74 billion parameters" in line for line in lines)


@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_what_is_left_fits_and_every_choice_saves(paper, share, monkeypatch):
    hours = share * paper.bill(Wanted.of(paper.study)).hours(8)
    seen = []
    bill = Paper.bill
    monkeypatch.setattr(
        Paper, "bill", lambda self, wanted: seen.append(wanted) or bill(self, wanted)
    )
    lines = lines_on_paper(paper, 8, hours)
    assert sum(line.startswith("leave out:") for line in lines) >= 1
    assert "the rest takes" in lines[-1]
    assert bill(paper, seen[-1]).hours(8) <= hours
    assert og.observables.Loss() in seen[-1].observables


def test_the_least_is_named_and_is_enough(paper):
    with pytest.raises(ArgumentError, match="too small for anything") as refused:
        lines_on_paper(paper, 8, hours_of("1s"))
    text = str(refused.value)
    assert "loss at 3 checkpoints without control runs" in text
    amount, unit = re.search(r"takes ([\d.]+) (s|min|h);", text).groups()
    budget = f"{1.1 * float(amount):.2f}{unit[0]}"
    assert "the rest takes" in lines_on_paper(paper, 8, hours_of(budget))[-1]


@pytest.mark.parametrize("text", ["8", "h", "0h", "-1h", "8 h", "nan", "1e3h"])
def test_a_budget_that_is_no_time_is_refused(text):
    with pytest.raises(ArgumentError, match="such as 8h"):
        hours_of(text)


def test_devices_that_are_not_there_are_assumed_and_said(paper, monkeypatch):
    monkeypatch.setattr(fitting.torch.cuda, "is_available", lambda: False)
    (line,) = [text for text in lines_on_paper(paper, 8) if "assumed" in text]
    assert line.startswith("assumed: 8 devices of 80 GB")
    assert line.endswith("this machine has no GPU")


def test_the_rate_of_devices_that_are_there_is_assumed_and_said(paper, monkeypatch):
    there = SimpleNamespace(total_memory=40e9)
    monkeypatch.setattr(fitting.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(fitting.torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(fitting.torch.cuda, "get_device_properties", lambda _: there)
    lines = lines_on_paper(paper, 8)
    assert "assumed of each device: 100 TFLOP/s" in lines
    assert any(line.endswith("of 40 GB") for line in lines)


def test_the_rate_of_a_core_is_measured_on_one_thread(monkeypatch):
    threads = []
    product = torch.Tensor.__matmul__
    monkeypatch.setattr(
        torch.Tensor,
        "__matmul__",
        lambda *two: threads.append(torch.get_num_threads()) or product(*two),
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        _rate_here()
    finally:
        torch.set_num_threads(before)
    assert {*threads} == {1}


def test_a_model_lies_on_one_device_on_several_or_nowhere(monkeypatch):
    monkeypatch.setattr("ontogeny.start.paper.memory_of_this_machine", lambda: 24e9)
    model = Model(70_000_000_000, 140_000_000_000, 2, 8192, 80, 32_000, 1)
    assert check_fits(int(79e9), model, 1, 80e9) == ""
    text = check_fits(int(150e9), model, 8, 80e9)
    assert "70 GB too small" in text and "over 2 (" in text
    smaller = replace(model, parameters=40_000_000_000)
    text = check_fits(int(150e9), smaller, 1, 80e9)
    assert "on 1 and in memory (" in text
    with pytest.raises(ArgumentError, match="36 GB too little"):
        check_fits(int(150e9), model, 1, 80e9)


def test_memory_that_cannot_be_known_is_said_and_refuses_nothing(paper, monkeypatch):
    monkeypatch.setattr("ontogeny.start.paper.memory_of_this_machine", lambda: None)
    monkeypatch.setattr(fitting.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(fitting, "_gpus", lambda devices: (80e9, "assumed"))
    unknown = Paper.of(paper.study)
    assert unknown.memory is None
    bill = unknown.bill(Wanted.of(paper.study))
    assert bill.read == bill.asked
    (line,) = [text for text in lines_on_paper(unknown, 8) if "to read" in text]
    assert line.endswith("of weights, as the memory of this machine cannot be known")
    model = Model(70_000_000_000, 140_000_000_000, 2, 8192, 80, 32_000, 1)
    text = check_fits(int(150e9), model, 1, 80e9)
    assert text.startswith("the devices are 60 GB too small together")
    assert text.endswith("cannot be known")


def test_the_command_reads_no_weights(folder, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from ontogeny.cli.commands import app

    monkeypatch.setattr(_Shard, "rows", None)
    monkeypatch.setattr(_Shard, "get", None)
    np.save(tmp_path / "ids.npy", np.full((20, 16), 7))
    (tmp_path / "study.toml").write_text(
        f'[trajectory]\nfolder = "{folder[0]}"\n[inputs]\ntokens = "ids.npy"\n'
        '[[observables]]\nkind = "loss"\n'
    )
    options = ["plan", str(tmp_path / "study.toml"), "--devices", "8", "--budget", "8h"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "time: about" in result.output
    assert "nothing has to be left out" in result.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--devices", "0"], "greater than or equal to 1"),
        (["--devices", "many"], "valid integer"),
        (["--budget", "0"], "above zero"),
        (["--budget", "-1h"], "above zero"),
        (["--devices", "2", "--time"], "without --time"),
    ],
)
def test_options_that_mean_nothing_are_refused_before_a_study_is_read(options, says):
    from typer.testing import CliRunner

    from ontogeny.cli.commands import app

    result = CliRunner().invoke(app, ["plan", "there-is-none.toml", *options])
    assert result.exit_code
    assert says in f"{result.output} {result.exception}"


def test_a_model_of_ones_own_has_a_plan_too():
    models = {step: _own() for step in (0, 1, 2)}
    study = _study_of(og.Trajectory.from_models(models))
    paper = Paper.of(study)
    assert paper.model.parameters == sum(p.numel() for p in models[0].parameters())
    assert paper.bill(Wanted.of(study)).passes == 3
    lines = lines_on_paper(paper, 1, 1.0)
    assert "nothing has to be left out" in lines[-1]
    assert any("no width of the model" in line for line in lines)


def test_what_a_function_builds_is_built_without_weights(tmp_path):
    for step in (0, 1):
        (tmp_path / f"step{step}").mkdir()
        save_file(_own().state_dict(), tmp_path / f"step{step}/model.safetensors")
    study = _study_of(og.Trajectory.from_folder(tmp_path, model=_own))
    paper = Paper.of(study)
    assert all(p.is_meta for p in paper.model.module.parameters())
    assert paper.bill(Wanted.of(study)).passes == 2
    with pytest.raises(ArgumentError, match="the least, loss at 2 checkpoints"):
        lines_on_paper(paper, 1, 1e-17)


def _own():
    return nn.Sequential(nn.Embedding(40, 8), nn.Linear(8, 8), nn.Linear(8, 40))


def _study_of(trajectory):
    ids = np.random.default_rng(0).integers(2, 40, (30, 9))
    observables = [og.observables.Loss(), og.observables.ActivationDecay("1")]
    inputs = og.Inputs.from_tokens(ids)
    return og.Study(trajectory, inputs, observables, device="cpu")
