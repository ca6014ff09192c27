"""A study runs its texts through each checkpoint once, and once more for attention maps."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers import tiny_models
from helpers.study_examples import tiny_inputs
from ontogeny.capture import forward, reading
from ontogeny.needs import Activations
from ontogeny.observables import AttentionEntropy, Loss, Observable, TextStatistics, TokenLosses
from ontogeny.study.cells import ahead
from ontogeny.study.running import mapping, schedule
from ontogeny.study.running import run as running

STEPS = (0, 1, 2)
TEXTS = 16


@dataclass(frozen=True)
class FromAllSteps(Observable):
    """How far activations are from their mean over all steps."""

    kind: ClassVar[str] = "from-all-steps"

    def needs(self):
        return [Activations("*.mlp", max_tokens=50)]

    @property
    def prepares_over_steps(self):
        return True

    def prepare(self, run):
        readings = [run.reading(int(step))[self.needs()[0]] for step in run.steps]
        return xr.Dataset({"mean": sum(float(r["transformer.h.0.mlp"].mean()) for r in readings)})

    def observe(self, reading, state):
        values = reading[self.needs()[0]]["transformer.h.0.mlp"]
        return xr.Dataset({"away": float(values.mean()) - float(state["mean"])})


def observables():
    return [
        Loss(),
        TokenLosses(n_texts=2),
        TextStatistics(depth=2, n_draws=3, loss="loss"),
        AttentionEntropy(),
        FromAllSteps(),
    ]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The folder of a study, and how often each task ran all texts, with eager attention or not."""
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    counts, task, folder = Counter(), [""], tmp_path_factory.mktemp("passes")
    with pytest.MonkeyPatch.context() as patch:
        called, computed = forward._called, running.compute_task

        def calling(model, ids, inputs):
            if len(ids) == TEXTS:
                counts[task[0], model.config._attn_implementation] += 1
            return called(model, ids, inputs)

        def computing(job, of):
            task[0] = of.label
            return computed(job, of)

        patch.setattr(forward, "_called", calling)
        patch.setattr(running, "compute_task", computing)
        study = og.Study(trajectory, tiny_inputs(TEXTS), observables(), controls=1)
        study.run(folder)
    return folder, counts


def test_every_checkpoint_runs_its_texts_once_and_once_for_maps(counted):
    _, counts = counted
    plain = {label: n for (label, kind), n in counts.items() if kind != "eager"}
    assert sum(n for label, n in plain.items() if label and "turned" not in label) == len(STEPS)
    eager = {label: n for (label, kind), n in counts.items() if kind == "eager"}
    assert all(eager[f"step {step}"] == 1 for step in STEPS)
    # A control begins at a checkpoint of the run, which is not read again.
    assert sum(n for label, n in plain.items() if "turned" in label) == len(STEPS) - 1
    assert sum(n for label, n in eager.items() if "turned" in label) == len(STEPS) - 1


@pytest.mark.parametrize("limit", [ahead.LIMIT, 0])
def test_the_plan_counts_a_pass_again_where_nothing_that_it_gave_can_be_kept(
    tmp_path, monkeypatch, limit
):
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    passes, together, computed = Counter(), reading._read_together, running.compute_task

    def reading_together(source, needs):
        passes[source.key.eager] += 1
        return together(source, needs)

    def computing(job, task):
        with monkeypatch.context() as patch:  # passes of the examination are not planned
            patch.setattr(reading, "_read_together", reading_together)
            return computed(job, task)

    monkeypatch.setattr(running, "compute_task", computing)
    monkeypatch.setattr(ahead, "LIMIT", limit)
    study = og.Study(trajectory, tiny_inputs(TEXTS), [Loss(), FromAllSteps(), AttentionEntropy()])
    planned = study.plan(tmp_path / "s").forwards
    assert not study.run(tmp_path / "s").problems()
    assert planned == passes.total()
    assert passes[False] == len(STEPS) * (1 if limit else 2)


def test_workers_read_ahead_what_a_state_needs_and_no_pass_twice(counted, tmp_path, monkeypatch):
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    study = og.Study(trajectory, tiny_inputs(TEXTS), observables(), controls=1)
    passes, labels, called, computed = Counter(), [], forward._called, running.compute_task

    def calling(model, ids, inputs):
        passes[model.config._attn_implementation == "eager"] += len(ids) == TEXTS and bool(labels)
        return called(model, ids, inputs)

    def computing(job, of):
        labels.append(of.label)
        return computed(job, of)

    monkeypatch.setattr(forward, "_called", calling)
    monkeypatch.setattr(mapping, "run_task", lambda job, task: computing(job, task))
    monkeypatch.setattr(schedule, "ProcessPoolExecutor", ThreadPoolExecutor)  # to count passes here
    monkeypatch.setattr(schedule, "workers_here", lambda _: 2)
    with ThreadPoolExecutor(1) as executor:
        parallel = study.run(tmp_path / "s", executor)
    assert [label for label in labels if "reading" in label][:3] == [
        f"reading step {step}" for step in STEPS
    ]
    assert passes[False] == passes[True] == 2 * len(STEPS) - 1
    alone = og.open_study(counted[0]).tree
    for node, data in alone.children.items():
        xr.testing.assert_equal(data.to_dataset(), parallel.tree[node].to_dataset())
