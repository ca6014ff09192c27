"""A study loads each checkpoint once and runs its texts through it once."""

import weakref
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
from helpers.task_at_work import TaskAtWork
from ontogeny.capture import forward, reading
from ontogeny.needs import Activations
from ontogeny.observables import (
    ActivationDecay,
    AttentionEntropy,
    JointConcepts,
    Loss,
    Observable,
    TextStatistics,
    TokenLosses,
)
from ontogeny.quantities import Quantity
from ontogeny.study.cells import ahead
from ontogeny.study.running import run as running
from ontogeny.study.running import schedule, stages
from ontogeny.trajectory.skeleton import Skeleton

STEPS = (0, 1, 2)
TEXTS = 16


@dataclass(frozen=True)
class FromAllSteps(Observable):
    """How far activations are from their mean over all steps."""

    kind: ClassVar[str] = "from-all-steps"
    quantities: ClassVar = (Quantity("away", "distance"),)

    def needs(self):
        return [Activations("*.mlp", max_tokens=50)]

    @property
    def prepares_over_steps(self):
        return True

    def prepare(self, run):
        readings = [run.reading(int(step))[self.needs()[0]] for step in run.steps]
        return xr.Dataset(
            {"mean": sum(float(r["transformer.h.0.mlp"].mean()) for r in readings)}
        )

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
    """The folder of a study, and how often each task ran all texts."""
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    counts = Counter()
    folder = tmp_path_factory.mktemp("passes")
    with pytest.MonkeyPatch.context() as patch:
        called = forward._called
        at_work = TaskAtWork(patch)

        def calling(model, ids, inputs):
            if len(ids) == TEXTS:
                counts[at_work.label] += 1
            return called(model, ids, inputs)

        patch.setattr(forward, "_called", calling)
        study = og.Study(trajectory, tiny_inputs(TEXTS), observables(), controls=1)
        study.run(folder)
    return folder, counts


def test_every_checkpoint_runs_its_texts_once(counted):
    _, counts = counted
    assert sum(
        n for label, n in counts.items() if label and "turned" not in label
    ) == len(STEPS)
    # A control begins at a checkpoint of the run, which is not read again.
    assert sum(n for label, n in counts.items() if "turned" in label) == len(STEPS) - 1


def test_what_learned_concepts_read_beside_the_checkpoints_is_other_models(
    tmp_path, monkeypatch
):
    """Two thirds of SmolLM2 were read 14 times beside its checkpoints: never one of them again.

    An untrained model is read once for the run and its controls, and the first checkpoint once
    with the norms of each checkpoint that is searched: three of six. These passes end at the layer.
    """
    steps = (10, 20, 30, 40, 50, 60)  # without an initialisation
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in steps})
    block = type(tiny_models.gpt2().transformer.h[0])
    blocks = Counter()
    forward_of_block = block.forward
    at_work = TaskAtWork(monkeypatch)

    def counting(self, states, *given, **named):
        if len(states) == TEXTS:
            blocks[at_work.label, self.attn.layer_idx] += 1
        return forward_of_block(self, states, *given, **named)

    monkeypatch.setattr(block, "forward", counting)
    concepts = og.observables.LearnedConcepts(
        n_concepts=3, examples=0, max_tokens=None, layers="transformer.h.0.mlp"
    )
    study = og.Study(trajectory, tiny_inputs(TEXTS), [Loss(), concepts], controls=2)
    study.run(tmp_path)
    beside = {
        label: n for (label, b), n in blocks.items() if b == 0 and "states" in label
    }
    assert beside == {"states": 1 + 3, "turned 0: states": 3, "turned 1: states": 3}
    assert not any("states" in label for label, b in blocks if b > 0)
    whole = Counter()
    for (label, b), n in blocks.items():
        whole[b, "turned" in label] += n * (bool(label) and "states" not in label)
    last = max(b for _, b in blocks)
    assert whole[last, False] == len(steps)
    # A control begins at a checkpoint of the run.
    assert whole[last, True] == 2 * (len(steps) - 1)
    assert whole[0, False] == whole[last, False] and whole[0, True] == whole[last, True]


@pytest.mark.slow
def test_the_weights_of_a_control_are_computed_once_for_all_that_is_read_of_a_step(
    tmp_path, monkeypatch
):
    steps = (10, 20, 30)  # without an initialisation: the untrained model is made
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in steps})
    loads = Counter()
    load = Skeleton.load
    at_work = TaskAtWork(monkeypatch)

    def loading(skeleton, checkpoint):
        loads[at_work.label] += 1
        return load(skeleton, checkpoint)

    monkeypatch.setattr(Skeleton, "load", loading)
    joint = JointConcepts("*.mlp", n_concepts=4, n_active=2, examples=2)
    study = og.Study(trajectory, tiny_inputs(TEXTS), [Loss(), joint], controls=2)
    assert not study.run(tmp_path / "s").problems()
    labels = [
        f"turned {k}: reading step {step}" for k in range(2) for step in steps[1:]
    ]
    # What the untrained model is like is seen at the run's last checkpoint.
    labels += [*(f"reading step {step}" for step in steps), "states"]
    assert {label: n for label, n in loads.items() if label} == dict.fromkeys(labels, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "controls"), [(ahead.LIMIT, 2), (0, 0)])
@pytest.mark.parametrize("over_steps", [True, False])
def test_the_plan_counts_the_passes_of_run_and_controls_as_they_come(
    tmp_path, monkeypatch, limit, over_steps, controls
):
    """Again where nothing is kept, and not where a control begins with what the run has read."""
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    passes, together, computed = [], reading._read_together, running.compute_task

    def reading_together(source, needs):
        passes.append(source.key)
        return together(source, needs)

    def computing(job, task):
        # Passes of the examination are not planned.
        with monkeypatch.context() as patch:
            patch.setattr(reading, "_read_together", reading_together)
            return computed(job, task)

    monkeypatch.setattr(running, "compute_task", computing)
    monkeypatch.setattr(ahead, "LIMIT", limit)
    kinds = [
        Loss(),
        AttentionEntropy(),
        ActivationDecay(),
        *[FromAllSteps()] * over_steps,
    ]
    study = og.Study(trajectory, tiny_inputs(TEXTS), kinds, controls=controls)
    planned = study.plan(tmp_path / "s").forwards
    assert not study.run(tmp_path / "s").problems()
    assert planned == len(passes)
    if limit:
        assert planned == len(STEPS) + controls * (len(STEPS) - 1)
    else:
        assert planned > len(STEPS)


def _computed(monkeypatch, folder, workers):
    """Run a study with controls in threads; return its result, and tasks as they began."""
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    study = og.Study(trajectory, tiny_inputs(TEXTS), observables(), controls=1)
    labels, computed = [], running.compute_task

    def computing(job, of):
        labels.append(of.label)
        return computed(job, of)

    monkeypatch.setattr(running, "compute_task", computing)
    monkeypatch.setattr(schedule, "workers_here", lambda _: workers)
    with ThreadPoolExecutor(1) as executor:
        return study.run(folder, executor), labels


@pytest.mark.slow
def test_a_control_begins_while_the_states_of_the_run_are_fitted(
    counted, tmp_path, monkeypatch
):
    result, labels = _computed(monkeypatch, tmp_path / "s", 2)
    # Where one task of the run is left for two workers, that of a control is beside it.
    first, reading = ["references"], [f"reading step {step}" for step in STEPS]
    beside = [f"turned 0: {label}" for label in [*first, *reading]]
    assert labels[:9] == [*first, beside[0], *reading, *beside[1:], "states"]
    alone = og.open_study(counted[0]).tree
    for node, data in alone.children.items():
        xr.testing.assert_equal(data.to_dataset(), result.tree[node].to_dataset())


@pytest.mark.slow
def test_a_control_waits_until_its_files_have_room_beside_those_of_the_run(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(stages, "_bytes", lambda *_: ahead.LIMIT // 2 + 1)
    _, labels = _computed(monkeypatch, tmp_path / "s", 2)
    assert labels.index("step 2") < labels.index("turned 0: references")


def test_what_needs_no_state_is_stored_before_there_is_one(tmp_path, monkeypatch):
    prepare = FromAllSteps.prepare

    def stopped(self, run):
        raise KeyboardInterrupt

    monkeypatch.setattr(FromAllSteps, "prepare", stopped)
    models = {step: tiny_models.gpt2() for step in STEPS}
    study = og.Study(
        og.Trajectory.from_models(models), tiny_inputs(TEXTS), observables()
    )
    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "s")
    left = study.plan(tmp_path / "s")
    monkeypatch.setattr(FromAllSteps, "prepare", prepare)
    assert {e.cell.node for e in left.entries if e.to_do} == {"from-all-steps"}
    assert not study.run(tmp_path / "s").problems()


@dataclass(frozen=True)
class ReadAndLetGo(FromAllSteps):
    """Notes which activations are in memory when all checkpoints have been read."""

    kind: ClassVar[str] = "read-and-let-go"
    held: ClassVar[list] = []

    def prepare(self, run):
        need = self.needs()[0]
        means = []
        read = []
        for step in run.steps:
            values = run.reading(int(step))[need]["transformer.h.0.mlp"]
            means.append(float(values.mean()))
            read.append(weakref.ref(values))
            del values
        self.held.append([is_there() is not None for is_there in read])
        return xr.Dataset({"mean": sum(means)})


def test_a_fit_over_steps_keeps_no_activations_that_it_has_read(tmp_path):
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    ReadAndLetGo.held.clear()
    og.Study(trajectory, tiny_inputs(TEXTS), ReadAndLetGo()).run(tmp_path)
    assert ReadAndLetGo.held == [[False] * len(STEPS)]
