"""A run that is resumed before its last checkpoint: replaced as it is passed, else named."""

from __future__ import annotations

import json
import os

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ontogeny import Inputs, Recorder, Trajectory
from ontogeny.observables import Loss
from ontogeny.recording import folder as recording_folder
from ontogeny.recording import read_observed
from ontogeny.recording.observer import Budget
from ontogeny.trajectory.audit import early


class Run:
    """A model in training that can be put back to a step, as from the trainer's own checkpoint."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.model, self.saved = nn.Linear(40, 40), {}

    def train(self, record, start, stop, seed):
        generator = torch.Generator().manual_seed(seed)
        if start in self.saved:
            self.model.load_state_dict(self.saved[start])
        for step in range(start, stop + 1):
            if step > start:
                with torch.no_grad():
                    self.model.weight += 0.05 * torch.randn(40, 40, generator=generator)
            state = self.model.state_dict()
            self.saved[step] = {name: value.clone() for name, value in state.items()}
            record(step, self.model)


def branches_of(folder):
    return json.loads((folder / "recorder.json").read_text())["branches"]


def findings(folder):
    found = Trajectory.from_folder(folder, model=nn.Linear(40, 40)).audit()
    return [(f.kind, f.steps) for f in found]


def stored(folder, step):
    return Trajectory.from_folder(folder, model=nn.Linear(40, 40))[step].model().weight


@pytest.mark.parametrize("one_process", [True, False])
def test_abandoned_steps_are_replaced_as_the_resumed_run_passes_them(
    tmp_path, caplog, one_process
):
    record, run = Recorder(tmp_path, every=10), Run()
    run.train(record, 0, 75, 1)
    before = stored(tmp_path, 40).clone()
    run.train(record if one_process else Recorder(tmp_path, every=10), 50, 65, 2)
    assert branches_of(tmp_path) == [{"resumed": 50, "abandoned": [70]}]
    assert torch.equal(stored(tmp_path, 60), run.saved[60]["weight"])
    assert torch.equal(stored(tmp_path, 40), before)
    assert findings(tmp_path) == [("branch", (70,))]
    trajectory = Trajectory.from_folder(tmp_path, model=nn.Linear(40, 40))
    (finding,) = early(trajectory.checkpoints, trajectory.catalogue, tmp_path)
    assert "step 70 belongs to a run that was resumed at step 50" in finding.message
    assert "--exclude checkpoint-70" in finding.message
    assert "step 60 is replaced" in caplog.text
    # Which is not on disk: 70 is kept.
    run.train(Recorder(tmp_path, every=10), 65, 90, 3)
    assert branches_of(tmp_path) == [{"resumed": 50, "abandoned": [70]}]


def test_a_run_that_repeats_itself_has_no_branch(tmp_path):
    run, again = Run(), Run()
    run.train(Recorder(tmp_path, every=10), 0, 75, 1)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("model.safetensors")}
    again.train(Recorder(tmp_path, every=10), 0, 65, 1)
    assert branches_of(tmp_path) == [] and findings(tmp_path) == []
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())


def test_steps_that_another_schedule_never_writes_are_named(tmp_path):
    run = Run()
    run.train(Recorder(tmp_path, every=10), 0, 75, 1)
    run.train(Recorder(tmp_path, every=25), 50, 80, 2)
    assert branches_of(tmp_path) == [{"resumed": 50, "abandoned": [60, 70]}]
    kinds = dict(findings(tmp_path))
    assert kinds["branch"] == (60, 70)


def test_what_cannot_be_shown_to_be_the_same_run_is_kept_and_named(tmp_path, caplog):
    run = Run()
    run.train(Recorder(tmp_path, every=10), 0, 75, 1)
    kept = stored(tmp_path, 60).clone()
    run.train(Recorder(tmp_path, every=10), 55, 80, 2)  # which is not on disk
    assert torch.equal(stored(tmp_path, 60), kept)
    assert "keeps its earlier checkpoint at step 60" in caplog.text
    assert branches_of(tmp_path) == [{"resumed": 55, "abandoned": [60, 70]}]


def test_a_replacement_that_fails_keeps_what_was_there(tmp_path, monkeypatch, caplog):
    run = Run()
    run.train(Recorder(tmp_path, every=10), 0, 75, 1)
    write, before = recording_folder.save_checkpoint, stored(tmp_path, 60).clone()

    def full(folder, *rest):
        if folder.name == "checkpoint-60":
            raise OSError(28, "No space left on device")
        return write(folder, *rest)

    monkeypatch.setattr(recording_folder, "save_checkpoint", full)
    run.train(Recorder(tmp_path, every=10), 50, 65, 2)
    assert torch.equal(stored(tmp_path, 60), before)
    assert "step 60 was not recorded" in caplog.text
    assert branches_of(tmp_path) == [{"resumed": 50, "abandoned": [60, 70]}]


def test_what_was_observed_of_an_abandoned_branch_is_observed_anew(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Budget, "allows", lambda self: True)
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    inputs = Inputs.from_tokens([[1, 2, 3], [4, 5, 6]])
    saved = {}

    def leg(start, stop, rate):
        record = Recorder(
            tmp_path, every=10, observe=[Loss(objective="causal")], inputs=inputs
        )
        if start in saved:
            model.load_state_dict(saved[start])
        for step in range(start, stop + 1, 10):
            if step > start:
                with torch.no_grad():
                    model[1].weight += rate
                    model[1].weight[0] += rate
            saved[step] = {
                name: value.clone() for name, value in model.state_dict().items()
            }
            record(step, model)

    leg(0, 70, 0.1)
    first = read_observed(tmp_path).set_index("step").value
    leg(50, 60, 0.9)
    second = read_observed(tmp_path).set_index("step").value
    assert list(second.index) == [0, 10, 20, 30, 40, 50, 60]
    assert (second.loc[:50] == first.loc[:50]).all() and second.loc[60] != first.loc[60]


def trainer_run(folder, log, steps, time):
    """Write checkpoints as the Trainer does, with what was logged until each of them."""
    for step in steps:
        path = folder / f"checkpoint-{step}"
        path.mkdir(exist_ok=True)
        torch.manual_seed(step + time)
        save_file({"w": torch.randn(4, 4)}, path / "model.safetensors")
        history = [
            {"step": s, "loss": v, "epoch": 0.0} for s, v in log.items() if s <= step
        ]
        history.append({"step": step, "eval_loss": 1.0, "eval_runtime": float(time)})
        state = path / "trainer_state.json"
        state.write_text(json.dumps({"global_step": step, "log_history": history}))
        os.utime(state, (time + step, time + step))


def test_the_trainers_own_logs_show_a_branch(tmp_path):
    first = {s: 5.0 - s / 100 for s in range(5, 100, 5)}
    second = {s: v if s <= 50 else v + 0.01 for s, v in first.items()}
    trainer_run(tmp_path, first, range(10, 80, 10), 1000)
    assert findings_of_trainer(tmp_path) == []
    trainer_run(tmp_path, second, (65, 80, 95), 5000)
    ((kind, steps, message),) = findings_of_trainer(tmp_path)
    assert (kind, steps) == ("branch", (60, 70))
    assert "steps 60 and 70 belong to a run that was resumed at step 50" in message
    assert "by the logs in trainer_state.json" in message


def test_a_branch_that_reaches_less_far_than_the_one_it_left_is_the_run(tmp_path):
    first = {s: 5.0 - s / 100 for s in range(5, 100, 5)}
    trainer_run(tmp_path, first, range(10, 80, 10), 1000)
    trainer_run(tmp_path, {s: v + (s > 50) for s, v in first.items()}, (60,), 5000)
    ((kind, steps, _),) = findings_of_trainer(tmp_path)
    assert (kind, steps) == ("branch", (70,))


def findings_of_trainer(folder):
    found = Trajectory.from_folder(folder).audit()
    return [(f.kind, f.steps, f.message) for f in found if f.kind == "branch"]
