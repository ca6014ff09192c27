"""Several processes that run one study in one folder at once, as tasks of a batch job do."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import stalling_study, warm_process
from helpers.paths import script
from helpers.study_examples import (
    ActivationNorm,
    Counting,
    developing,
    observables,
    record,
    tiny_inputs,
    tiny_model,
)
from ontogeny import needs
from ontogeny.observables import Observable
from ontogeny.study.folder import frozen as frozen_module
from ontogeny.study.folder.layout import settings_path

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8)
LONG = 600  # seconds; nothing here takes them unless it hangs


def _values(folder):
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    assert tree.attrs["problems"] == "[]"
    return {name: node.to_dataset().load() for name, node in tree.children.items()}


def _assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, data in expected.items():
        xr.testing.assert_identical(found[name], data)


def _strays(folder):
    claims = [*(folder / ".claims").glob("*")]
    return [*claims, *(p for p in folder.rglob("*") if p.name.endswith(".tmp"))]


@pytest.mark.slow
def test_processes_in_one_folder_compute_each_cell_once(tmp_path):
    run, shared = tmp_path / "run", tmp_path / "shared"
    trajectory = record(developing(STEPS), run)
    command = [
        script("killed_study.py"),
        run,
        shared,
        "TOGETHER",
        "to the end",
        "to the end",
    ]
    done = warm_process.run(command)
    assert done.stdout == "[0, 0]", done.stderr
    study = og.Study(trajectory, tiny_inputs(), observables(), device="cpu", noise=1)
    study.run(tmp_path / "alone")
    _assert_same(_values(shared), _values(tmp_path / "alone"))
    assert _strays(shared) == []
    lines = [line for line in done.stderr.splitlines() if "phase=writing" in line]
    cells = [
        p
        for d in ("cells", "states", "summaries")
        for p in (shared / d).rglob("*.safetensors")
    ]
    assert max(Counter(lines).values()) == 1 and len(lines) == len(cells)


@dataclass(frozen=True)
class Meeting(Observable):
    """Two runs must be at it at the same time, again and again."""

    kind: ClassVar[str] = "meeting"
    barrier: ClassVar[threading.Barrier | None] = None
    seen: ClassVar[list] = []

    def needs(self):
        return [needs.Model()]

    def observe(self, reading, state):
        self.seen.append(reading.step)
        if self.barrier is not None:
            self.barrier.wait(LONG)
        return xr.Dataset({"x": np.float64(reading.step)})


def test_two_runs_in_one_folder_work_at_the_same_time_on_different_steps(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Meeting, "barrier", threading.Barrier(2))
    monkeypatch.setattr(Meeting, "seen", [])
    trajectory = og.Trajectory.from_models(
        {s: tiny_model(s) for s in (0, 1, 2, 3, 4, 5)}
    )
    progress = [Counting(), Counting()]

    def run(number):
        study = og.Study(trajectory, tiny_inputs(), [Meeting()], device="cpu", noise=0)
        return study.run(tmp_path / "s", progress=progress[number])

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run, range(2))
    tried = [0, 0]  # each run tries an observable of one's own before it starts
    assert sorted(Meeting.seen) == [*tried, 0, 1, 2, 3, 4, 5]
    xr.testing.assert_identical(
        first["meeting"].to_dataset(), second["meeting"].to_dataset()
    )
    assert first["meeting"].x.values.tolist() == [0, 1, 2, 3, 4, 5]
    for one in progress:
        assert sorted(one.labels) == [f"step {s}" for s in range(6)] and one.cells == 6
    assert _strays(tmp_path / "s") == []


def test_the_work_of_a_killed_process_is_taken_over_by_one_that_waits_for_it(
    tmp_path, monkeypatch
):
    run, out = tmp_path / "run", tmp_path / "s"
    record(developing(STEPS), run)
    monkeypatch.setattr(stalling_study, "SEEN", [])
    other = warm_process.begin([script("stalling_study.py"), run, out])
    with ExitStack() as at_last:
        at_last.callback(other.kill)
        end = time.monotonic() + LONG
        while not out.with_suffix(".stalled").exists():
            assert other.exitcode is None and time.monotonic() < end
            time.sleep(0.05)

        class Killing(Counting):
            def note(self, text):
                super().note(text)
                if text.startswith("waiting"):
                    assert set(self.labels) >= {"step 4", "step 8"}
                    other.kill()
                    other.join()

        progress = Killing()
        stalling_study.study(run).run(out, progress=progress)
    (note,) = [note for note in progress.notes if note.startswith("waiting")]
    assert note.startswith(f"waiting for step 2, which process {other.pid} on ")
    # The killed process had computed steps 0 and 1, and everything else was done here once.
    assert stalling_study.SEEN == [4, 8, 2]
    stalling_study.study(run).run(tmp_path / "alone")
    _assert_same(_values(out), _values(tmp_path / "alone"))
    assert _strays(out) == []


def test_what_failed_elsewhere_is_tried_and_said_here_too(tmp_path):
    @dataclass(frozen=True)
    class Failing(ActivationNorm):
        def observe(self, reading, state):
            if reading.step == 1:
                raise ValueError("not this one")
            return super().observe(reading, state)

    trajectory = og.Trajectory.from_models({s: tiny_model(s) for s in (0, 1, 2)})
    with ThreadPoolExecutor(2) as pool:
        trees = list(
            pool.map(
                lambda _: og.Study(
                    trajectory, tiny_inputs(), [Failing()], device="cpu", noise=0
                ).run(tmp_path / "s"),
                range(2),
            )
        )
    for tree in trees:
        assert "at step 1: failed: ValueError: not this one" in tree.attrs["problems"]


def test_a_folder_that_another_process_is_just_making_is_no_foreign_folder(
    tmp_path, monkeypatch
):
    trajectory = og.Trajectory.from_models({s: tiny_model(s) for s in (0, 1)})
    study = og.Study(
        trajectory, tiny_inputs(), [ActivationNorm()], device="cpu", noise=0
    )
    study.run(tmp_path / "made")
    frozen = frozen_module.frozen_settings

    def made_meanwhile(place):
        found = frozen(place)
        place.mkdir(exist_ok=True)
        settings_path(place).write_bytes(settings_path(tmp_path / "made").read_bytes())
        return found

    monkeypatch.setattr(frozen_module, "frozen_settings", made_meanwhile)
    assert study.run(tmp_path / "s").attrs["problems"] == "[]"
