"""Whatever fails is said once, costs nothing else, and shows in the result, exit code and page."""

import json
import shutil
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.command import call
from helpers.study_examples import (
    LAYERS,
    ActivationNorm,
    Counting,
    developing,
    record,
    tiny_inputs,
)
from ontogeny import needs, own_code
from ontogeny.cli import main
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.features.weights import norms
from ontogeny.observables import Observable, WeightNorms, by_layer
from ontogeny.observables.registry import make_own
from ontogeny.start.cost import time_left
from ontogeny.study.planning import probe
from ontogeny.words.basis import basis
from ontogeny.words.content import read_content

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8, 16)
TEXTS = 24


class PooledModel(torch.nn.Module):
    """A model that gives one row of logits for a text, where one for each token is wanted."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = torch.nn.Embedding(40, 8)
        self.mlp = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 40)

    def forward(self, input_ids, attention_mask):
        hidden = self.mlp(self.embed(input_ids)) * attention_mask[..., None]
        return self.head(hidden.sum(1) / attention_mask.sum(1, keepdim=True))


@dataclass(frozen=True)
class Picky(Observable):
    """Fails as it is told: at steps, in layers, or with fewer rows than it wants."""

    steps: tuple[int, ...] = ()
    layer: str = ""
    rows: int = 0
    with_all_steps: bool = False
    kind: ClassVar[str] = "picky"

    def needs(self):
        return [needs.Activations(LAYERS, tokens="mean", max_tokens=None)]

    def prepare(self, run):
        if self.with_all_steps and len(run.steps) < len(STEPS):
            raise ArgumentError("needs all steps")

    def observe(self, reading, state):
        def one(path, a):
            if reading.step in self.steps and self.layer in path:
                raise ArgumentError("not at this step")
            if len(a) < self.rows:
                raise ArgumentError(f"needs {self.rows} texts; got {len(a)}")
            return {"mean": a.mean()}

        return by_layer(reading[self.needs()[0]], one)


@pytest.fixture(scope="module")
def trajectory():
    return og.Trajectory.from_models(developing(STEPS))


@pytest.fixture(scope="module")
def pooled():
    return og.Trajectory.from_models({step: PooledModel(step) for step in STEPS})


def study_of(trajectory, *observables, **options):
    return og.Study(
        trajectory, tiny_inputs(TEXTS), observables, device="cpu", noise=0, **options
    )


def wrong_logits(pooled):
    return study_of(
        pooled, og.observables.Loss(objective="causal"), ActivationNorm("mlp")
    )


def said_by(study, folder, **options):
    """Return a result and the warnings of its run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = study.run(folder, **options)
    return tree, [str(w.message) for w in caught]


def command(study, monkeypatch, capsys, name, folder, *options):
    """Return exit code and lines on standard error of a command on a study."""
    monkeypatch.setattr("ontogeny.study.read_study", lambda path, **_: study)
    with pytest.raises(SystemExit) as stop:
        main([name, "study.toml", "--output", str(folder), *options])
    return stop.value.code or 0, capsys.readouterr().err.splitlines()


def test_a_wrong_shape_of_logits_costs_seconds(pooled, tmp_path, monkeypatch, capsys):
    study = wrong_logits(pooled)
    plan = study.plan()
    assert plan.refused.startswith(
        "1 observable would fail at every step: loss: ArgumentError: "
    )
    assert "(texts, tokens, vocabulary)" in plan.refused
    with pytest.raises(
        ArgumentError, match=r"loss: .* keep_going=True \(--keep-going\)"
    ):
        study.run(tmp_path / "s")
    assert not list(tmp_path.rglob("*.safetensors"))
    for name in ("plan", "run"):
        code, (line,) = command(study, monkeypatch, capsys, name, tmp_path / "s")
        assert code == 1 and line.startswith(
            "ontogeny: 1 observable would fail at every step"
        )


def test_all_cells_of_one_observable_fail(pooled, tmp_path, monkeypatch, capsys):
    tree, (said,) = said_by(wrong_logits(pooled), tmp_path / "s", keep_going=True)
    assert said.startswith(
        "6 of 12 cells failed: loss (6): ArgumentError: PooledModel must return"
    )
    assert said.endswith("; see `result.problems()`")
    assert np.isfinite(tree["activation-norm"].norm).all()
    problems = tree.problems()
    (row,) = problems
    assert (row.node, row.steps, row.layers) == ("loss", STEPS, ())
    assert problems.lost == ["loss"] and (problems.failed, problems.cells) == (6, 12)
    assert "6 of 12 cells failed; 1 of 2 observables has no result" in repr(problems)
    assert "<td>loss</td><td>0 to 16 (6 steps)</td>" in problems._repr_html_()
    assert og.open_study(tmp_path / "s").result.problems() == problems
    for quiet in ([], ["--quiet"]):
        options = ("--keep-going", *quiet)
        study = wrong_logits(pooled)
        code, lines = command(
            study, monkeypatch, capsys, "run", tmp_path / "s", *options
        )
        assert code == 3
        assert [
            line for line in lines if "PooledModel" in line and "may fail" not in line
        ] == [
            line
            for line in lines
            if line.startswith("ontogeny: 6 of 12 cells failed: loss (6)")
        ]
        assert len(lines) == 1 or not quiet
    assert said_by(wrong_logits(pooled), tmp_path / "s", keep_going=True)[1] == [said]


@dataclass(frozen=True)
class Broken(Picky):
    """Fails at its steps in the same way, or in another one at each; it counts its calls."""

    differs: bool = False
    kind: ClassVar[str] = "broken"
    calls: ClassVar[list[int]] = []

    def observe(self, reading, state):
        self.calls.append(reading.step)
        if reading.step in self.steps:
            raise TypeError(f"unsupported{f' at {reading.step}' * self.differs}")
        return super().observe(reading, state)


@pytest.mark.parametrize(
    ("steps", "differs", "tried"),
    [(STEPS, False, STEPS[:3]), (STEPS, True, STEPS), (STEPS[1:], False, STEPS)],
    ids=["the same thrice", "each in its way", "one was done"],
)
def test_the_same_failure_three_times_ends_an_observable(
    trajectory, tmp_path, steps, differs, tried
):
    broken = Broken(steps=steps, differs=differs)
    study = og.Study(
        trajectory, tiny_inputs(), [broken, ActivationNorm(LAYERS)], noise=0
    )
    study.examination.spare()
    Broken.calls.clear()
    with pytest.warns(StudyWarning, match=f"{len(steps)} of 12 cells failed"):
        result = study.run(tmp_path / "s", progress=False)
    assert Broken.calls == list(tried)
    assert np.isfinite(result["activation-norm"].norm).all()
    failed = [
        line for line in json.loads(result.attrs["problems"]) if "TypeError" in line
    ]
    assert failed


@pytest.mark.parametrize(
    ("steps", "keep_going", "observed"),
    [
        (STEPS, False, [0, 16]),
        (STEPS, True, [0, 16, 0, 1, 2]),
        ((0,), False, [0, 16, *STEPS]),
        ((0, 16), False, [0, 16]),
    ],
    ids=["at all", "at all, asked for", "at the first", "at both that are tried"],
)
def test_what_fails_at_two_checkpoints_is_left_out_with_its_reason(
    trajectory, tmp_path, steps, keep_going, observed
):
    study = og.Study(
        trajectory,
        tiny_inputs(),  # so few that all are tried at once
        [Broken(steps=steps), ActivationNorm(LAYERS)],
        noise=0,
        control_runs={"other": og.Trajectory.from_models(developing(STEPS))},
    )
    progress = Counting()
    Broken.calls.clear()
    result, _ = said_by(study, tmp_path / "s", progress=progress, keep_going=keep_going)
    # At first it is tried on two texts, then on all of them.
    seen = [s for n, s in enumerate(Broken.calls) if n == 0 or s != Broken.calls[n - 1]]
    assert seen[: len(observed)] == observed
    if observed == [0, 16]:
        assert seen == observed
        (line,) = [n for n in progress.notes if n.startswith("left out unless")]
        assert "broken, which failed when tried at steps 0 and 16: TypeError" in line
        assert line.endswith("the study goes on with 1 other observable")
        (row,) = [row for row in result.problems() if not row.run]
        assert row.steps == STEPS and row.reason.startswith("TypeError: unsupported (")
        # It was not tried at the steps between.
        assert row.reason.endswith(
            "left out, as it failed when tried at steps 0 and 16"
        )
        assert result.problems().lost == ["broken"]
    assert np.isfinite(result["activation-norm"].norm).all()


OWN = """
import torch

def score(model, texts):
    with torch.no_grad():
        next(model.parameters()).zero_()
    return further(len(texts))

def further(count):
    return count + "one"

def other(model, texts):
    return further(1)
"""

OWN_LATE = """
sums = []

def late(model, texts):
    sums.append(sum(float(p.sum()) for p in model.parameters()))
    if sums[-1] != sums[0]:
        raise ValueError("not the first checkpoint")
    return texts.lengths
"""


def own_measures(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    names = [f"{tmp_path}/mine.py:{name}" for name in ("score", "other")]
    return [make_own(name, own_code.load(name)) for name in names]


def test_a_mistake_in_a_function_of_ones_own_is_said_once_with_its_line(
    trajectory, tmp_path
):
    study = study_of(trajectory, ActivationNorm(LAYERS), *own_measures(tmp_path))
    (line,) = [note for note in study.plan().notes if note.startswith("left out")]
    assert "score, other, which failed when tried at steps 0 and 16: TypeError" in line
    assert line.endswith(
        "(mine.py, line 10); the study goes on with 1 other observable"
    )
    expected = study_of(trajectory, ActivationNorm(LAYERS)).run(
        tmp_path / "alone", progress=False
    )
    tree, (said,) = said_by(study, tmp_path / "s", progress=False)
    assert said.startswith("12 of 18 cells failed: score (6): TypeError")
    assert "(mine.py, line 10); left out" in said and "; other (6): TypeError" in said
    # What a trial does to the model is undone.
    np.testing.assert_array_equal(
        tree["activation-norm"].norm, expected["activation-norm"].norm
    )
    # Failed cells do not tell how edited code does: it is tried again before the next run.
    again = study_of(trajectory, ActivationNorm(LAYERS), *own_measures(tmp_path))
    assert line in again.plan(tmp_path / "s").notes


def test_what_fails_at_the_checkpoint_that_is_timed_is_said_before_the_question(
    trajectory, tmp_path
):
    study = study_of(trajectory, ActivationNorm(LAYERS), *own_measures(tmp_path))
    first = time_left(study, study.plan()).lines()[0]
    assert first.startswith(
        "may fail: score, other, as when tried at step 16: TypeError"
    )
    assert first.endswith(
        "(mine.py, line 10); the study goes on with 1 other observable"
    )


def test_what_only_the_timed_checkpoint_shows_is_printed_with_the_plan(
    trajectory, tmp_path, monkeypatch, capsys
):
    (tmp_path / "late.py").write_text(OWN_LATE)
    late = make_own("late.py:late", own_code.load("late.py:late", tmp_path))
    late_alone = study_of(trajectory, late, ActivationNorm(LAYERS))
    monkeypatch.setattr("ontogeny.study.read_study", lambda path, **_: late_alone)
    code, out, _ = call(
        capsys, "plan", "study.toml", "--output", tmp_path / "s", "--time"
    )
    (line,) = [line for line in out.splitlines() if "may fail" in line]
    assert code == 0 and line.startswith(
        "may fail: late, as when tried at step 16: ValueError: "
    )
    # What the plan says already is not printed again.
    one = study_of(trajectory.select(steps=[16]), *own_measures(tmp_path))
    monkeypatch.setattr("ontogeny.study.read_study", lambda path, **_: one)
    code, out, _ = call(
        capsys, "plan", "study.toml", "--output", tmp_path / "one", "--time"
    )
    assert code == 0 and out.count("may fail: score, other") == 1 and "time: " in out


def test_a_refused_plan_does_not_say_that_the_study_goes_on(pooled, tmp_path):
    loss = og.observables.Loss(objective="causal")
    plan = study_of(pooled, loss, ActivationNorm("mlp"), *own_measures(tmp_path)).plan()
    (doubt,) = [
        note for note in plan.notes if "score, other, which failed when tried" in note
    ]
    assert "loss: ArgumentError" in plan.refused and "goes on" not in doubt


def test_the_page_opens_with_what_failed(pooled, tmp_path):
    study = study_of(
        pooled,
        og.observables.Loss(objective="causal"),
        og.observables.ActivationDecay("mlp"),
    )
    tree, _ = said_by(study, tmp_path / "s", keep_going=True)
    text = og.open_study(tmp_path / "s").report(tmp_path / "page.html").read_text()
    start = text.index('id="failures"')
    assert start < text.index('id="verdict"')
    panel = text[start : text.index("</section>", start)]
    assert (
        "1 of 2 observables failed" in panel
        and "PooledModel must return logits" in panel
    )
    assert "6 of 12 cells failed" in panel and 'href="#section-loss"' in panel
    section = text[text.index('<section id="section-loss"') :]
    section = section[: section.index("</section>")]
    assert "PooledModel must return logits" in section
    assert "Change what the message names" in section
    assert "1 of 2 observables failed and is not counted." in basis(read_content(tree))


def test_nmf_on_signed_activations_is_refused_in_the_plan(trajectory, tmp_path):
    nmf = og.observables.Concepts("nmf", n_concepts=3, layers=LAYERS)
    study = study_of(trajectory, og.observables.Loss(), nmf)
    assert "concepts-nmf: ArgumentError" in study.plan().refused
    assert "nonnegative='relu'" in study.plan().refused
    tree, (said,) = said_by(study, tmp_path / "s", keep_going=True)
    assert "6 of 12 cells failed: concepts-nmf (6)" in said and "nonnegative=" in said
    assert np.isfinite(tree["loss"].loss).all() and tree.problems().lost == [
        "concepts-nmf"
    ]


def test_one_damaged_checkpoint_is_said_and_nothing_else_is_lost(
    tmp_path, monkeypatch, capsys
):
    trajectory = record(developing(STEPS), tmp_path / "run")
    whole, none = said_by(
        study_of(trajectory, og.observables.Loss()), tmp_path / "whole"
    )
    assert none == [] and not whole.problems()
    weights = tmp_path / "run" / "checkpoint-4" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    study = study_of(trajectory, og.observables.Loss())
    options = ("run", tmp_path / "s", "--quiet")
    code, (line,) = command(study, monkeypatch, capsys, *options)
    assert code == 0 and line.startswith(
        "ontogeny: 1 of 6 cells failed: loss (1): missing: "
    )
    assert command(study, monkeypatch, capsys, *options, "--strict")[0] == 3
    tree = og.open_study(tmp_path / "s").result
    assert [row.steps for row in tree.problems()] == [(4,)]
    others = [step for step in STEPS if step != 4]
    np.testing.assert_array_equal(
        tree["loss"].loss.sel(step=others), whole["loss"].loss.sel(step=others)
    )


def test_one_layer_with_nan_is_named(trajectory, tmp_path, monkeypatch, capsys):
    @dataclass(frozen=True)
    class Dividing(Picky):
        kind: ClassVar[str] = "dividing"

        def observe(self, reading, state):
            broken = reading.step == 2
            return by_layer(
                reading[self.needs()[0]],
                lambda path, a: {
                    "mean": np.nan if broken and "1" in path else a.mean()
                },
            )

    study = study_of(trajectory, Dividing())
    tree, (said,) = said_by(study, tmp_path / "s")
    assert said.startswith(
        "1 of 6 cells failed: dividing (1): NonFiniteError: mean is not finite"
    )
    (row,) = tree.problems()
    assert (row.steps, row.layers) == ((2,), ("model.layers.1.mlp",))
    assert np.isfinite(tree["dividing"]["mean"]).sum() == 2 * len(STEPS) - 1
    code, lines = command(study, monkeypatch, capsys, "run", tmp_path / "s", "--quiet")
    assert code == 0 and len(lines) == 1


def test_a_healthy_run_says_nothing(trajectory, tmp_path, monkeypatch, capsys):
    study = study_of(
        trajectory, og.observables.Loss(), og.observables.AttentionEntropy()
    )
    progress = Counting()
    tree, said = said_by(study, tmp_path / "s", progress=progress)
    assert said == [] and progress.notes == [] and study.plan().refused == ""
    assert repr(tree.problems()) == "no problems in 12 cells" and not tree.problems()
    assert command(study, monkeypatch, capsys, "run", tmp_path / "s", "--quiet") == (
        0,
        [],
    )
    assert 'id="failures"' not in (
        og.open_study(tmp_path / "s").report(tmp_path / "page.html").read_text()
    )


@pytest.mark.parametrize("rows", [3, 17, TEXTS])
def test_what_lacks_texts_in_the_dry_run_alone_is_neither_refused_nor_said(
    trajectory, tmp_path, rows
):
    progress = Counting()
    tree, said = said_by(
        study_of(trajectory, Picky(rows=rows)), tmp_path / "s", progress=progress
    )
    assert said == [] and progress.notes == [] and not tree.problems()


def test_the_dry_run_reads_two_matrices(trajectory, monkeypatch):
    shapes, measures = [], norms._measures
    monkeypatch.setattr(
        norms, "_measures", lambda W: shapes.append(W.shape) or measures(W)
    )
    assert not study_of(trajectory, WeightNorms()).plan().refused and len(shapes) == 2


def test_what_lacks_texts_in_the_whole_study_is_refused(trajectory):
    assert (
        f"needs {TEXTS + 1} texts"
        in study_of(trajectory, Picky(rows=TEXTS + 1)).plan().refused
    )


@pytest.mark.parametrize(
    "picky", [Picky(steps=(0,)), Picky(layer="layers.0", steps=STEPS)]
)
def test_what_fails_in_part_is_doubted_and_not_refused(trajectory, tmp_path, picky):
    study, progress = study_of(trajectory, picky), Counting()
    assert study.plan().refused == ""
    (doubt,) = [
        note for note in study.plan().notes if note.startswith("may fail: picky")
    ]
    assert "ArgumentError: not at this step" in doubt
    tree, (_,) = said_by(study, tmp_path / "s", progress=progress)
    assert doubt in progress.notes and np.isfinite(tree["picky"]["mean"]).any()


def test_a_state_of_all_steps_is_not_tried(trajectory):
    plan = study_of(trajectory, Picky(with_all_steps=True)).plan()
    assert plan.refused == "" and not any("fail" in note for note in plan.notes)


@pytest.fixture
def tried(monkeypatch):
    """Names of the observables that get a dry run, one list for each time."""
    found, dry_run = [], probe.dry_run

    def noting(model, trajectory, inputs, observables, *others):
        found.append([each.name for each in observables])
        return dry_run(model, trajectory, inputs, observables, *others)

    monkeypatch.setattr(probe, "dry_run", noting)
    return found


def test_what_has_cells_is_not_tried_again(trajectory, tmp_path, tried):
    study_of(trajectory, Picky()).run(tmp_path / "s")
    study = study_of(trajectory, Picky(), ActivationNorm())
    study.plan(tmp_path / "s")
    assert tried == [["picky"], ["activation-norm"]]
    changed = study_of(trajectory, Picky(rows=TEXTS + 1))
    assert (
        changed.plan(tmp_path / "s").refused and not study.plan(tmp_path / "s").refused
    )


def test_what_one_folder_spares_the_next_one_does_not(trajectory, tmp_path, tried):
    """A second folder is not spared the dry run; what was tried once is not tried again."""
    picky = Picky(steps=(0, 16))
    said_by(study_of(trajectory, picky), tmp_path / "begun", keep_going=True)
    tried.clear()
    study = study_of(trajectory, picky, ActivationNorm())
    assert not study.plan(tmp_path / "begun").refused and tried == [["activation-norm"]]
    assert (
        "picky: ArgumentError: not at this step" in study.plan(tmp_path / "new").refused
    )
    with pytest.raises(
        ArgumentError, match="1 observable would fail at every step: picky"
    ):
        study.run(tmp_path / "other")
    assert not study.plan(tmp_path / "begun").refused
    assert study.plan().refused and tried == [["activation-norm"], ["picky"]]


def test_warnings_as_errors_lose_nothing(pooled, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StudyWarning, match="6 of 12 cells failed"):
            wrong_logits(pooled).run(tmp_path / "s", keep_going=True)
    result = og.open_study(tmp_path / "s").result
    assert np.isfinite(result["activation-norm"].norm).all()


def test_what_fails_in_a_control_is_said_with_its_name(trajectory, tmp_path):
    broken = developing(STEPS)
    with torch.no_grad():
        broken[4].model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    given = {"broken": og.Trajectory.from_models(broken)}
    study = study_of(
        trajectory, og.observables.ActivationDecay(LAYERS), control_runs=given
    )
    tree, (said,) = said_by(study, tmp_path / "s")
    assert said.startswith(
        "1 control run failed in part: broken: activation-decay: NonFinite"
    )
    problems = og.open_study(tmp_path / "s").result.problems()
    assert problems == tree.problems() and {row.run for row in problems} == {"broken"}
    assert problems.failed == 0 and "broken: activation-decay  4 " in repr(problems)


def test_a_reference_that_is_no_longer_the_last_is_said_and_can_be_moved(tmp_path):
    models = developing(STEPS)
    run = record({s: m for s, m in models.items() if s < 16}, tmp_path / "run")
    decay = og.observables.ActivationDecay(LAYERS)
    _, said = said_by(study_of(run, decay), tmp_path / "s")
    assert said == []
    record({16: models[16]}, tmp_path / "new")
    shutil.copytree(
        tmp_path / "new" / "checkpoint-16", tmp_path / "run" / "checkpoint-16"
    )
    grown = study_of(og.Trajectory.from_folder(tmp_path / "run"), decay)
    words = "the reference is step 8, which was the last when this study was begun; it is step 16"
    assert [note for note in grown.plan(tmp_path / "s").notes if note.startswith(words)]
    tree, (line,) = said_by(grown, tmp_path / "s")
    assert line == f"{words} now; run(rereference=True) moves it"
    assert tree.attrs["reference_step"] == 8
    page = og.open_study(tmp_path / "s").report(tmp_path / "page.html").read_text()
    assert "The reference is step 8, the last step when the study was begun" in page
    assert grown.plan(tmp_path / "s", rereference=True).to_do == len(STEPS)

    moved, said = said_by(grown, tmp_path / "s", rereference=True)
    assert said == [] and moved.attrs["reference_step"] == 16
    fresh, _ = said_by(grown, tmp_path / "fresh")
    xr.testing.assert_identical(
        moved["activation-decay"].to_dataset().load(),
        fresh["activation-decay"].to_dataset().load(),
    )
    again, said = said_by(grown, tmp_path / "s")
    assert said == [] and again.attrs["reference_step"] == 16
    assert (
        json.loads((tmp_path / "s" / "study.json").read_text())["reference_step"] == 16
    )


@dataclass(frozen=True)
class Claiming(Picky):
    """Computes all of its numbers, and fails when it says what they mean."""

    kind: ClassVar[str] = "claiming"

    def claims(self, name, data):
        raise KeyError("mean_of_means")


def test_numbers_stay_where_an_observable_cannot_say_what_it_found(
    trajectory, tmp_path
):
    study = study_of(trajectory, Claiming(), ActivationNorm("mlp"))
    result = study.run(tmp_path / "study")
    assert np.isfinite(result["claiming"]["mean"]).all()
    (problem,) = result.problems()
    assert problem.node == "claiming" and "mean_of_means" in problem.why
    assert "activation-norm" in result.tree.children
