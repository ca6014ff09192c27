"""A model is observed while it trains: the training stays the same, within a budget of its time."""

import json
import random
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from ontogeny import needs
from ontogeny.errors import ArgumentError, CheckpointError, StudyWarning
from ontogeny.observables import EffectiveDimensions, Loss, Observable, WeightNorms
from ontogeny.recording import read_observed
from ontogeny.recording.observer import Budget, Observer

STEPS = 24


def draws(*_):
    """Draw from Python's and NumPy's random states, as a hook of a training may."""
    random.random(), np.random.rand()  # noqa: NPY002


class Net(nn.Module):
    """What a forward pass may disturb: dropout, running statistics, a hook that draws."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.norm = nn.BatchNorm1d(8)
        self.mlp = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.3))
        self.head = nn.Linear(8, 20)
        self.head.register_forward_hook(draws)

    def forward(self, ids):
        x = self.embed(ids)
        x = self.norm(x.flatten(0, 1)).view_as(x)
        return self.head(self.mlp(x))


def texts():
    return og.Inputs.from_tokens(np.random.default_rng(0).integers(0, 20, (6, 7)))


def observables():
    dimensions = EffectiveDimensions("mlp", max_tokens=30)
    return [Loss(objective="causal"), dimensions, WeightNorms("*.weight")]


def trained(record=None, frozen=True):
    """Train with everything that draws random numbers, and return weights and random states."""
    random.seed(1)
    np.random.seed(2)  # noqa: NPY002
    torch.manual_seed(3)
    model = Net().train()
    model.embed.weight.requires_grad_(not frozen)
    data = torch.randint(0, 20, (16, 7), generator=torch.Generator().manual_seed(4))
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], 1e-2
    )
    step = 0
    if record:
        record(0, model)
    while step < STEPS:
        for batch in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
            scale = 1 + 0.1 * random.random() + 0.1 * np.random.rand()  # noqa: NPY002
            logits = model(batch[:, :-1])
            loss = nn.functional.cross_entropy(
                logits.flatten(0, 1), batch[:, 1:].flatten()
            )
            (scale * loss).backward()  # gradients add up over two batches
            step += 1
            if step % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
            if record:
                record(step, model)
    assert all(module.training for module in model.modules())
    if record:
        record.finish(STEPS, model)
    drawn = (random.random(), np.random.rand(), float(torch.rand(())))  # noqa: NPY002
    return model.state_dict(), drawn


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("frozen", [True, False])
def test_the_training_is_the_same_bit_for_bit(tmp_path, frozen, monkeypatch):
    monkeypatch.setattr(Budget, "allows", lambda self: True)
    plain, drawn = trained(frozen=frozen)
    record = og.Recorder(
        tmp_path,
        every=1,
        observe=observables(),
        inputs=texts(),
        log=lambda *_: None,
        budget=1,
    )
    observed, drawn_then = trained(record, frozen)
    assert same(observed, plain) and drawn_then == drawn
    assert len(read_observed(tmp_path)["step"].unique()) == STEPS + 1


def test_an_observer_alone_changes_nothing_and_every_step_is_observed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Budget, "allows", lambda self: True)
    plain, _ = trained()
    observe = Observer(observables(), texts(), tmp_path, every=1)
    observed, _ = trained(observe)
    assert same(observed, plain)
    table = read_observed(tmp_path)
    assert sorted(table["step"].unique()) == list(range(STEPS + 1))
    assert {
        "observed/loss",
        "observed/effective-dimensions/participation_ratio/mlp",
        "observed/weight-norms/stable_rank/head.weight",
    } <= set(table["name"])
    assert np.isfinite(table["value"]).all()


def test_only_the_first_process_observes(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    model, sent = Net(), []
    log = lambda metrics, step: sent.append(step)  # noqa: E731
    observe = Observer([WeightNorms("*.weight")], texts(), tmp_path, log=log)
    assert observe(0, model) is None and observe.observe(1, model) is None
    observe.finish(2, model)
    assert not sent and not any(tmp_path.iterdir())


def test_the_numbers_are_those_of_a_study_of_the_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "allows", lambda self: True)
    record = og.Recorder(
        tmp_path / "run", every=8, observe=observables(), inputs=texts()
    )
    trained(record)
    run = og.Trajectory.from_folder(tmp_path / "run", model=Net)
    assert run.steps.tolist() == [0, 8, 16, 24]
    result = og.Study(run, texts(), observables(), device="cpu", noise=0).run(
        tmp_path / "study"
    )
    table = read_observed(tmp_path / "run").pivot(
        index="step", columns="name", values="value"
    )
    np.testing.assert_allclose(
        table["observed/loss"], result["loss"]["loss"], rtol=1e-5
    )
    ratio = result["effective-dimensions"]["participation_ratio"].sel(layer="mlp")
    column = "observed/effective-dimensions/participation_ratio/mlp"
    np.testing.assert_allclose(table[column], ratio, rtol=1e-4)


@dataclass(frozen=True)
class Breaks(Observable):
    """Fails from the second step on, and gives NaN in one layer."""

    kind: ClassVar[str] = "breaks"
    after: int = 0

    def needs(self):
        return [needs.Activations("mlp")]

    def observe(self, reading, state):
        if reading.step > self.after:
            raise ZeroDivisionError("nothing to divide by")
        status = xr.DataArray(["done", "failed: no rank"], dims="layer")
        values = {"width": ("layer", [8.0, np.nan]), "status": status}
        return xr.Dataset(values, coords={"layer": ["a", "b"]})


def test_what_fails_is_said_once_kept_and_never_stops_the_training(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Budget, "allows", lambda self: True)

    def broken(metrics, step):
        raise OSError("no route to the server")

    sent = []
    log = [broken, lambda metrics, step: sent.append((step, metrics))]
    observe = [Breaks(), Loss(objective="causal")]
    record = og.Recorder(tmp_path, every=4, observe=observe, inputs=texts(), log=log)
    with pytest.warns(StudyWarning) as warned:
        trained(record)
    said = [str(w.message) for w in warned if w.category is StudyWarning]
    first = [s for s in said if "failed at step" in s]
    assert [s.split(" failed")[0] for s in first] == [
        "observing breaks/b",
        "observing log test_what_fails_is_said_once_kept_and_never_stops_the_training",
        "observing breaks",
    ]
    where = r"ZeroDivisionError: nothing to divide by \(test_observing\.py, line \d+\)"
    assert re.search(f"{where}; the training goes on", first[2])
    assert "observing breaks failed 6 times; observed.jsonl says why" in said
    lines = [
        json.loads(line)
        for line in (tmp_path / "observed.jsonl").read_text().splitlines()
    ]
    assert lines[0]["failed"]["breaks/b"] == "no rank"
    assert lines[0]["metrics"]["observed/breaks/width/a"] == 8.0
    assert re.fullmatch(where, lines[1]["failed"]["breaks"])
    assert [step for step, _ in sent] == [0, 4, 8, 12, 16, 20, 24]
    assert all("observed/loss" in metrics for _, metrics in sent)


def test_a_record_that_cannot_be_written_is_said_once_and_stops_nothing(tmp_path):
    (tmp_path / "observed.jsonl").mkdir()
    observe = Observer([Loss(objective="causal")], texts(), tmp_path, every=1, budget=1)
    with pytest.warns(
        StudyWarning, match="cannot be written: .*the training goes on"
    ) as said:
        found = [observe(step, Net()) for step in range(3)]
    assert found[0] and len(said) == 1


def test_steps_are_skipped_beyond_the_budget_and_that_is_said(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(Budget.__init__, "__defaults__", (lambda: now[0],))

    class Slow(Loss):
        def observe(self, reading, state):
            now[0] += 1  # an observation takes a second
            return super().observe(reading, state)

    observe = Observer(
        [Slow(objective="causal")], texts(), tmp_path, every=1, budget=0.05
    )
    model = Net()
    for step in range(101):
        observe(step, model)
        now[0] += 1  # as long as an update
    with pytest.warns(
        StudyWarning, match=r"observed at 5 of 101 steps: .*budget=0\.05"
    ) as said:
        observe.finish(100, model)
    assert len(said) == 1
    assert observe.overhead <= 0.05 and observe.skipped[:3] == [1, 2, 3]
    lines = [
        json.loads(line)
        for line in (tmp_path / "observed.jsonl").read_text().splitlines()
    ]
    assert [e["step"] for e in lines if "metrics" in e] == [0, 40, 60, 80, 100]
    assert [e["step"] for e in lines if e.get("skipped") == "budget"] == observe.skipped
    assert lines[-1]["finished"] and lines[-1]["overhead"] <= 0.05


def test_a_run_that_goes_on_keeps_what_was_observed(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "allows", lambda self: True)
    model = Net()

    def recorder(**options):
        return og.Recorder(
            tmp_path, every=2, observe=[Loss(objective="causal")], **options
        )

    record = recorder(inputs=texts())
    record(0, model), record(2, model)
    with (tmp_path / "observed.jsonl").open("a") as file:
        file.write('{"step": 4, "metr')  # the process died here
    record = recorder(inputs=texts())
    record(2, model), record(4, model)
    assert read_observed(tmp_path)["step"].tolist() == [0, 2, 4]
    record = recorder(inputs=texts(), overwrite=True)
    record(0, model)
    assert read_observed(tmp_path)["step"].tolist() == [0]


@pytest.mark.parametrize(
    ("observable", "why"),
    [
        (og.observables.WeightRank(), "computed over all steps"),
        (og.observables.Similarity(), "compared with another checkpoint"),
        (og.observables.JointConcepts(), "state of other checkpoints"),
    ],
)
def test_what_takes_several_checkpoints_is_refused(tmp_path, observable, why):
    with pytest.raises(
        ArgumentError, match=f"{observable.name} cannot be observed .*{why}"
    ):
        og.Recorder(tmp_path, observe=[observable], inputs=texts())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"inputs": None}, "observe= needs inputs="),
        ({"observe": []}, "at least one observable"),
        ({"observe": None}, "go with observe="),
        ({"budget": 0}, "budget must be a finite number above 0 and at most 1"),
        ({"log": "wandb"}, "log must be a function"),
        ({"log": 5}, "log must be a function"),
    ],
)
def test_arguments_are_checked_at_once(tmp_path, options, said):
    given = {"observe": [Loss()], "inputs": texts(), **options}
    with pytest.raises(ArgumentError, match=said):
        og.Recorder(tmp_path, **given)


def test_a_folder_without_observations_says_so(tmp_path):
    with pytest.raises(CheckpointError, match="nothing was observed"):
        read_observed(tmp_path)
