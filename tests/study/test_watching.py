"""A run that is still training is studied as its checkpoints land."""

import json
import os
import shutil
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import warm_process
from helpers.command import call
from helpers.study_examples import developing, record, tiny_inputs
from ontogeny.errors import (
    ArgumentError,
    CheckpointError,
    LayerMatchError,
    StudyWarning,
)
from ontogeny.study import watch
from ontogeny.study.progress import Silent
from ontogeny.trajectory.landing import Landing

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8)
NOTE = "Training was still running when this page was written, at step"
LIMIT = 600  # seconds; only what hangs takes so long, on any machine


class Trains(Silent):
    """Writes the next checkpoints whenever a page has been written, as a training would."""

    def __init__(self, folder, page, begin=3):
        self.record = og.Recorder(folder, every=lambda step: True)
        self.left, self.page = list(developing(STEPS).items()), page
        self.pages, self.notes = [], []
        for _ in range(begin):
            self.go_on()

    def go_on(self):
        step, model = self.left.pop(0)
        self.record(step, model)
        if not self.left:
            self.record.finish(step, model)

    def note(self, text):
        self.notes.append(text)
        if text.startswith("page: "):
            self.pages.append(self.page.read_text())
            self.go_on()


def observables():
    return [og.observables.Loss(), og.observables.Concepts("pca", n_concepts=3)]


def study_of(folder, **options):
    options = {"noise": 0, **options}

    def opened():
        run = og.Trajectory.from_folder(folder)
        return og.Study(run, tiny_inputs(8), observables(), device="cpu", **options)

    return opened


def nodes(folder):
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    attrs = {k: v for k, v in tree.attrs.items() if k not in ("created", "provenance")}
    return {
        name: node.to_dataset().load() for name, node in tree.children.items()
    }, attrs


def assert_same_result(found, expected):
    (nodes_found, attrs_found), (nodes_expected, attrs_expected) = (
        nodes(found),
        nodes(expected),
    )
    assert attrs_found == attrs_expected
    assert nodes_found.keys() == nodes_expected.keys()
    for name, data in nodes_expected.items():
        xr.testing.assert_identical(nodes_found[name], data)


def test_what_a_watch_ends_with_is_what_a_study_made_afterwards_gives(tmp_path):
    page = tmp_path / "watched" / "report.html"
    trains = Trains(tmp_path / "run", page)
    opened = study_of(tmp_path / "run", controls=2, control_steps=3, noise=2)
    result = watch(opened, tmp_path / "watched", every=0.01, progress=trains)
    assert [
        f"{NOTE} {step}." in text
        for step, text in zip((2, 4), trains.pages, strict=True)
    ]
    assert all("refreshes itself every 0.01 s" in text for text in trains.pages)
    assert "Provisional" not in page.read_text()
    assert (
        result.attrs["reference_step"] == 8
        and len(json.loads(result.attrs["controls"])) == 2
    )
    opened().run(tmp_path / "afterwards")
    assert_same_result(tmp_path / "watched", tmp_path / "afterwards")


def test_a_round_computes_what_has_landed_and_nothing_twice(tmp_path):
    class Counts(Trains):
        cells = ()

        def start(self, tasks, cells):
            self.cells = (*self.cells, cells)

    progress = Counts(tmp_path / "run", tmp_path / "watched" / "report.html")
    watch(
        study_of(tmp_path / "run"), tmp_path / "watched", every=0.01, progress=progress
    )
    # Two observables at three steps, then at one more. At the end both at the last step, and the
    # concepts at the four others, which are compared with the last step from now on.
    assert progress.cells == (6, 2, 2 + 4)


def test_what_fails_in_a_round_is_said_once_and_does_not_end_the_watch(tmp_path):
    page = tmp_path / "watched" / "report.html"
    trains = Trains(tmp_path / "run", page)
    opened, calls = study_of(tmp_path / "run"), []

    def sometimes():
        calls.append(len(calls))
        if calls[-1] in (2, 3):
            raise CheckpointError("checkpoint-4 is gone")
        return opened()

    with pytest.warns(StudyWarning, match="tried again: checkpoint-4 is gone") as said:
        watch(sometimes, tmp_path / "watched", every=0.01, progress=trains)
    assert sum("is gone" in str(each.message) for each in said) == 1
    assert "Provisional" not in page.read_text()


def test_checkpoints_that_the_trainer_deletes_do_not_end_the_watch(tmp_path):
    class Limited(Trains):
        def go_on(self):
            super().go_on()
            folders = sorted(
                tmp_path.glob("run/checkpoint-*"), key=lambda p: int(p.name[11:])
            )
            for old in folders[:-3]:
                shutil.rmtree(old)

    trains = Limited(tmp_path / "run", tmp_path / "watched" / "report.html")
    opened = study_of(tmp_path / "run")
    with pytest.warns(
        StudyWarning, match="deleted by now, and no longer shown: step 0"
    ):
        result = watch(opened, tmp_path / "watched", every=0.01, progress=trains)
    assert result["loss"].step.values.tolist() == [2, 4, 8]


@pytest.mark.parametrize(
    ("there", "said"),
    [(True, ".*holds no checkpoints"), (False, ".*neither a folder nor a file")],
)
def test_a_watch_waits_for_the_first_checkpoints(tmp_path, there, said):
    trains = Trains(tmp_path / "run", tmp_path / "watched" / "report.html", begin=0)
    opened = study_of(tmp_path / "run", controls=2)
    if there:
        (tmp_path / "run").mkdir()

    def later():
        try:
            return opened()
        finally:
            if trains.left:
                trains.go_on()

    with pytest.warns(StudyWarning, match=f"waiting for checkpoints: {said}"):
        result = watch(
            later, tmp_path / "watched", every=0.01, settle=0, progress=trains
        )
    assert result["loss"].step.values.tolist() == list(STEPS)


def test_a_last_page_that_cannot_be_written_leaves_none_that_waits_for_it(
    tmp_path, monkeypatch
):
    from ontogeny.study import watching

    write, failures = watching._write_page, [OSError("no space left")]

    def writes(result, page, live=None):
        if live is None and failures:
            raise failures.pop()
        write(result, page, live)

    monkeypatch.setattr(watching, "_write_page", writes)
    page = tmp_path / "report.html"
    trains = Trains(tmp_path / "run", page, begin=4)
    options = {"every": 0.01, "settle": 0.0, "page": page, "progress": trains}
    with pytest.raises(OSError, match="no space left"):
        watch(study_of(tmp_path / "run"), tmp_path / "study", **options)
    assert "Watching was stopped there" in page.read_text()


def test_a_mistake_in_the_study_ends_the_watch_at_once(tmp_path):
    record(developing((0, 1, 2)), tmp_path / "run")
    run = og.Trajectory.from_folder(tmp_path / "run")
    wrong = og.Study(
        run, tiny_inputs(8), [og.observables.Concepts("pca", layers="nothing.*")]
    )
    with pytest.raises(LayerMatchError, match=r"nothing\.\*"):
        watch(lambda: wrong, tmp_path / "watched", every=0.01)


def test_only_folders_are_watched(tmp_path):
    run = og.Trajectory.from_models(developing((0, 1, 2)))
    study = og.Study(run, tiny_inputs(8), observables())
    with pytest.raises(ArgumentError, match=r"only a folder .* is in memory"):
        watch(lambda: study, tmp_path / "watched")


@pytest.mark.parametrize(
    "wrong",
    [
        {"every": 0},
        {"every": np.nan},
        {"settle": -1},
        {"until": 1.5},
        {"patience": "1"},
    ],
)
def test_arguments_are_checked_at_once(tmp_path, wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        watch(study_of(tmp_path), tmp_path / "watched", **wrong)


@pytest.mark.parametrize("end", [{"until": 4}, {"patience": 0.5}])
def test_a_training_that_does_not_say_so_ends_by_a_step_or_by_patience(tmp_path, end):
    record(developing((0, 1, 2, 4)), tmp_path / "run")
    (tmp_path / "run" / "recorder.json").unlink()
    opened = study_of(tmp_path / "run")
    result = watch(opened, tmp_path / "watched", every=0.01, settle=0, **end)
    assert result["loss"].step.values.tolist() == [0, 1, 2, 4]
    assert result.attrs["reference_step"] == 4


def test_half_written_checkpoints_are_not_read(tmp_path):
    now = [0.0]
    record(developing((0, 1)), tmp_path)
    (tmp_path / "recorder.json").unlink()
    landing = Landing(tmp_path, 5, lambda: now[0])
    assert landing.look().landed == {}
    now[0] = 5.0
    assert list(landing.look().landed) == [0, 1]
    folder = tmp_path / "checkpoint-2"
    folder.mkdir()
    for size in (10, 20):  # it grows from look to look
        (folder / "model.safetensors").write_bytes(b"x" * size)
        now[0] += 60
        look = landing.look()
        assert list(look.landed) == [0, 1] and look.unsettled == (2,)
    now[0] += 5
    assert list(landing.look().landed) == [0, 1, 2]
    (folder / "optimizer.pt").write_bytes(b"x")  # the Trainer writes on
    assert landing.look().unsettled == (2,)
    shutil.rmtree(folder)
    assert landing.look().unsettled == ()


def test_what_a_recorder_noted_is_whole_at_once_and_says_when_it_ends(tmp_path):
    models = developing((0, 1, 2))
    recorder = og.Recorder(tmp_path, every=1)
    landing = Landing(tmp_path, 5, lambda: 0.0)
    for step, model in models.items():
        recorder(step, model)
        look = landing.look()
        assert max(look.landed) == step and not look.unsettled and not look.ended
    recorder.finish(2, models[2])
    assert landing.look().ended
    again = og.Recorder(tmp_path, every=1)  # the run goes on
    again(2, models[2])
    assert not landing.look().ended


def test_the_trainers_state_says_when_the_training_has_ended(tmp_path):
    record(developing((0, 5, 10)), tmp_path)
    (tmp_path / "recorder.json").unlink()
    landing = Landing(tmp_path, 0)
    state = tmp_path / "checkpoint-10" / "trainer_state.json"
    for content, ended in (
        ('{"global_step": 10, "max_steps": 20}', False),
        ('{"global_step": 10, "max_steps": 10}', True),
        ('{"global_step": 10, "max_steps": -1}', False),
        ("[1", False),
        ('{"global_step": "10"}', False),
    ):
        state.write_text(content)
        landing.look()
        assert landing.look().ended is ended, content


@contextmanager
def running(*command, **options):
    process = warm_process.begin(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def wait_for(condition, process):
    """Poll until something is so; what cannot be any more fails at once."""
    begin = time.monotonic()
    while not condition():
        assert process.exitcode is None, "the watch has ended"
        assert time.monotonic() - begin < LIMIT
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals as POSIX has them")
def test_a_watch_is_killed_stopped_and_resumed_beside_a_training(tmp_path, capsys):
    """The watch is a process of its own; nothing is lost, and the end is that of a study."""
    inputs = tiny_inputs(8)
    np.save(tmp_path / "ids.npy", np.where(inputs.mask, inputs.ids, 5))
    (tmp_path / "study.toml").write_text(
        '[trajectory]\nfolder = "run"\n[inputs]\ntokens = "ids.npy"\n[options]\ndevice = "cpu"\n'
        '[[observables]]\nkind = "attention-entropy"\n'
        '[[observables]]\nkind = "concepts"\nextractor = "pca"\nn_concepts = 3\n'
    )
    page = tmp_path / "studies" / "report.html"
    command = ["-m", "ontogeny", "run", str(tmp_path / "study.toml")]
    watching = [*command, "--output", str(page.parent), "--watch", "0.1", "--quiet"]
    record_at, left = (
        og.Recorder(tmp_path / "run", every=lambda step: True),
        developing(STEPS),
    )

    def shows(step):
        return lambda: page.exists() and f"{NOTE} {step}." in page.read_text()

    def trained(step):
        model = left.pop(step)
        record_at(step, model)
        if not left:
            record_at.finish(step, model)

    for step in (0, 1, 2):
        trained(step)
    with running(*watching) as watcher:
        wait_for(shows(2), watcher)
        trained(4)
        wait_for(shows(4), watcher)
    kept = page.parent.glob("cells/attention-entropy/*.safetensors")
    cells = {path: path.stat().st_mtime_ns for path in kept}
    assert len(cells) == 4
    before = page.stat().st_mtime_ns
    with running(*watching, err=tmp_path / "said", cwd=tmp_path) as watcher:
        wait_for(lambda: page.stat().st_mtime_ns != before, watcher)
        os.kill(watcher.pid, signal.SIGINT)
        watcher.join(LIMIT)
        assert watcher.exitcode == 130 and "stopped" in (tmp_path / "said").read_text()
    assert "Watching was stopped there" in page.read_text()
    assert 'http-equiv="refresh"' not in page.read_text()
    trained(8)
    code, said, complaints = call(capsys, *watching[2:])
    assert code == 0, complaints
    assert f"page: {page}" in said and "Provisional" not in page.read_text()
    assert {p: p.stat().st_mtime_ns for p in cells} == cells
    code, _, complaints = call(
        capsys, *command[2:], "--output", tmp_path / "after", "--quiet"
    )
    assert code == 0, complaints
    assert_same_result(page.parent, tmp_path / "after")
