"""Progress is shown where people look: a bar on a terminal, few lines elsewhere."""

import sys
from types import SimpleNamespace

import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.errors import ArgumentError
from ontogeny.study import progress as shown_progress
from ontogeny.study.progress import (
    BarProgress,
    LineProgress,
    Pace,
    Silent,
    chosen_progress,
)
from ontogeny.study.running import schedule


@pytest.fixture
def clock(monkeypatch):
    time = SimpleNamespace(now=0.0, monotonic=lambda: time.now)
    monkeypatch.setattr(shown_progress, "time", time)
    return time


def study():
    trajectory = og.Trajectory.from_models(developing((0, 2, 4)))
    return og.Study(
        trajectory, tiny_inputs(), [og.observables.Loss()], device="cpu", noise=0
    )


def test_a_short_run_writes_nothing_of_its_tasks_into_a_log(tmp_path, capsys):
    study().run(tmp_path / "s")
    assert "cells" not in capsys.readouterr().err


def test_a_log_gets_a_line_a_minute(clock, capsys):
    progress = LineProgress()
    progress.pace = Pace([("steps", 2.0)] * 150)
    progress.start(150, 300)
    for _ in range(150):
        clock.now += 1.0
        progress.pace.add("steps", 2.0, 1.0)
        progress.advance("step 4", 2, 1.0)
    progress.finish()
    assert capsys.readouterr().err.splitlines() == [
        "300 cells to compute in 150 tasks",
        "[60/150] step 4: 2 cells in 1.0 s, about 1 min 30 s left",
        "[120/150] step 4: 2 cells in 1.0 s, about 30 s left",
    ]


def test_references_and_states_tell_no_pace(clock):
    # Two steps of SmolLM2 that were read ahead in 49 s each made 2 hours of the rest.
    pace = shown_progress.Pace([*[("first", 1.0)] * 3, *[("steps", 9.0)] * 4])
    for seconds in (40.0, 40.0, 60.0):
        pace.add("first", 1.0, seconds)
        clock.now += seconds
    assert pace.words() == "time left not known yet"
    pace.add("steps", 9.0, 20.0)
    clock.now += 20.0
    assert pace.words() == "time left not known yet"
    pace.add("steps", 9.0, 20.0)
    clock.now += 20.0
    assert pace.words() == "about 40 s left"


def test_references_of_controls_count_as_much_as_those_of_the_run(
    tmp_path, monkeypatch
):
    # Of a run whose references were there but for one, each of them in its controls took as long.
    given = []
    monkeypatch.setattr(
        schedule, "Pace", lambda tasks: given.extend(tasks) or Pace(tasks)
    )
    trajectory = og.Trajectory.from_models(developing((0, 1, 2, 4)))
    decay = og.observables.ActivationDecay(LAYERS)
    study = og.Study(
        trajectory, tiny_inputs(), [decay], device="cpu", controls=2, control_steps=3
    )
    study.run(tmp_path / "s")
    assert [size for kind, size in given if kind == "first"] == [1.0] * 3


def test_the_first_checkpoint_tells_no_pace(clock):
    """It reads what is read once, and may have waited: 550 s made 5 h 52 min of 38 others."""
    pace = shown_progress.Pace([("steps", 9.0)] * 39)
    for seconds in (550.0, 10.0):
        pace.add("steps", 9.0, seconds)
        clock.now += seconds
    assert pace.words() == "about 6 min 10 s left"


def test_what_fits_is_chosen_by_where_python_runs(monkeypatch):
    assert isinstance(chosen_progress(None), LineProgress)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert isinstance(chosen_progress(True), BarProgress)


def test_a_run_takes_a_progress_or_false(tmp_path):
    class Heard(Silent):
        tasks = 0

        def advance(self, label, cells, seconds):
            self.tasks += 1

    heard = Heard()
    study().run(tmp_path / "s", progress=heard)
    assert heard.tasks == 3
    assert (
        isinstance(chosen_progress(False), Silent) and chosen_progress(heard) is heard
    )


@pytest.mark.parametrize("bad", ["bar", 1, SimpleNamespace(note=print)])
def test_what_is_no_progress_is_refused(bad, tmp_path):
    with pytest.raises(
        ArgumentError, match="progress must be True, False or an object"
    ):
        study().run(tmp_path / "s", progress=bad)
    assert not (tmp_path / "s").exists()


def test_the_time_left_weighs_tasks_by_what_they_cost(clock):
    """Six steps of 60 s (two with noise: 120 s), 27 short tasks of blocks, and 12 of a control."""
    size = {"first": 4.0, "noise": 20.0, "steps": 10.0, "blocks": 8.0}
    kind = {"noise": "steps", "half": "steps"}
    size["half"] = 5.0
    tasks = [
        "first",
        *["noise"] * 2,
        *["steps"] * 4,
        *["blocks"] * 27,
        "first",
        *["half"] * 12,
    ]
    seconds = {
        "first": 40.0,
        "noise": 120.0,
        "steps": 60.0,
        "blocks": 3.0,
        "half": 30.0,
    }
    total = sum(seconds[task] for task in tasks)
    pace, by_tasks = Pace([(kind.get(t, t), size[t]) for t in tasks]), []
    for number, task in enumerate(tasks, start=1):
        clock.now += seconds[task] / 2  # two workers
        pace.add(kind.get(task, task), size[task], seconds[task])
        if clock.now > total / 6:
            left = clock.now / pace.share_done() - clock.now
            truth = total / 2 - clock.now
            assert truth / 1.5 - 1 <= left <= 1.5 * truth + 1
            by_tasks.append(clock.now / number * (len(tasks) - number) / max(truth, 1))
    assert min(by_tasks) < 1 / 1.5 or max(by_tasks) > 1.5  # counting tasks would not do
    assert pace.words() == "about 0 s left"


def test_a_run_says_the_time_left_by_cost_to_whoever_takes_it(tmp_path):
    lines = LineProgress()
    study().run(tmp_path / "s", progress=lines)
    assert lines.pace.share_done() == 1.0
