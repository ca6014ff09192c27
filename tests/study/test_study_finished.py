"""A run with nothing to do reads neither cells nor weights; whatever has changed is noticed."""

import json
import os
import shutil

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, record, tiny_inputs
from ontogeny.study.cells import cache
from ontogeny.study.planning import examination
from ontogeny.trajectory import Checkpoint
from ontogeny.trajectory.weights.files import WeightFiles

pytestmark = pytest.mark.slow

_OWN = """
import xarray as xr
from dataclasses import dataclass
from typing import ClassVar
from ontogeny import needs
from ontogeny.observables import Observable

@dataclass(frozen=True)
class Mean(Observable):
    kind: ClassVar[str] = "mean"
    def needs(self): return [needs.Activations("model.layers.1.mlp")]
    def observe(self, reading, state):
        (value,) = reading[self.needs()[0]].values()
        return xr.Dataset({"mean": FACTOR * float(value.mean())})
    def summarise(self, data, others): return data.assign_attrs(note="NOTE")
"""


class Notes:
    """A progress that keeps what it is told."""

    def __init__(self):
        self.lines, self.tasks = [], 0

    def note(self, text):
        self.lines.append(text)

    def start(self, tasks, cells):
        self.tasks = tasks

    def advance(self, label, cells, seconds): ...

    def finish(self): ...


def _own(folder, factor="1.0", note="a"):
    path = folder / "mine.py"
    path.write_text(_OWN.replace("FACTOR", factor).replace("NOTE", note))
    return og.observables.make_own(
        "mine.py:Mean", og.own_code.load("mine.py:Mean", folder)
    )


def _study(folder, inputs=None, own=None):
    chosen = [
        og.observables.Loss(),
        og.observables.Concepts("svd", n_concepts=2, layers=LAYERS, max_tokens=100),
        own or _own(folder),
    ]
    run = og.Trajectory.from_folder(folder / "run")
    return og.Study(
        run, inputs or tiny_inputs(), chosen, device="cpu", noise=0, controls=2
    )


def _run(study, folder):
    notes = Notes()
    result = study.run(folder, progress=notes)
    return result, notes, any("nothing to do" in line for line in notes.lines)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    record(developing((0, 1, 2, 4)), folder / "run")
    _study(folder).run(folder / "study", progress=False)
    return folder


def _copied(made, folder):
    """Return a folder with a run and its finished study, which is run once where it lies now."""
    shutil.copytree(made, folder, dirs_exist_ok=True)
    assert _run(_study(folder), folder / "study")[1].tasks == 0
    return folder


@pytest.fixture
def finished(made, tmp_path):
    return _copied(made, tmp_path)


@pytest.fixture(scope="module")
def mendable(made, tmp_path_factory):
    """A finished study for tests that leave it finished, however they change it meanwhile."""
    return _copied(made, tmp_path_factory.mktemp("mendable"))


@pytest.fixture(scope="module")
def fresh(made, tmp_path_factory):
    """The result of the same run studied in a new folder."""
    return _study(made).run(tmp_path_factory.mktemp("fresh"), progress=False)


def _counted(monkeypatch):
    """Return counters of what is opened: cells, models, weights and dry runs."""
    counts = {"cells": 0, "models": 0, "opened": 0, "probes": 0}

    def counting(what, function):
        def counted(*args, **options):
            counts[what] += 1
            return function(*args, **options)

        return counted

    monkeypatch.setattr(cache, "read_cell", counting("cells", cache.read_cell))
    monkeypatch.setattr(Checkpoint, "model", counting("models", Checkpoint.model))
    monkeypatch.setattr(Checkpoint, "digests", counting("opened", Checkpoint.digests))
    monkeypatch.setattr(examination, "probe", counting("probes", examination.probe))
    return counts


def test_a_run_with_nothing_to_do_reads_no_cell_no_model_and_no_weights(
    finished, monkeypatch
):
    before = _run(_study(finished), finished / "study")[0].tree.load()
    counts = _counted(monkeypatch)
    result, notes, nothing = _run(_study(finished), finished / "study")
    assert nothing and counts == {"cells": 0, "models": 0, "opened": 0, "probes": 0}
    assert f"nothing to do: {_cells(finished)} cells are there" in notes.lines
    xr.testing.assert_identical(result.tree.load(), before)
    assert notes.tasks == 0 and not result.problems()


def _cells(folder):
    places = ("cells/*/*", "runs/*/cells/*/*")
    return sum(len(list((folder / "study").glob(place))) for place in places)


def test_a_first_run_leaves_a_second_one_nothing_to_do(tmp_path, monkeypatch):
    record(developing((0, 1, 2)), tmp_path / "run")
    assert not _run(_study(tmp_path), tmp_path / "study")[2]
    counts = _counted(monkeypatch)
    assert _run(_study(tmp_path), tmp_path / "study")[2] and not any(counts.values())


def _rewrite(path, change):
    """Write a file over with the same size and modification time."""
    stat, content = path.stat(), bytearray(path.read_bytes())
    change(content)
    while path.stat().st_ctime_ns == stat.st_ctime_ns:
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (
        stat.st_size,
        stat.st_mtime_ns,
    )


def _flip(content):
    content[-2] ^= 1


def _in(content):
    content[len(content) // 2] ^= 4


def _chunk(folder):
    return next(
        p for p in sorted((folder / "result.zarr" / "loss").glob("*/0*")) if p.is_file()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda f: _rewrite(f / "study" / "cells" / "loss" / "2.safetensors", _flip),
        lambda f: _rewrite(next((f / "study" / "states").iterdir()), _in),
        lambda f: _rewrite(f / "study" / "summaries" / "loss.safetensors", _in),
        lambda f: _rewrite(next((f / "study" / "runs").glob("*/cells/loss/*")), _in),
        lambda f: _rewrite(_chunk(f / "study"), _in),
        lambda f: (f / "study" / "cells" / "loss" / "2.safetensors").unlink(),
        lambda f: (f / "study" / "summaries" / "loss.safetensors").unlink(),
        lambda f: _chunk(f / "study").unlink(),
        lambda f: shutil.rmtree(f / "study" / "result.zarr"),
        lambda f: (f / "study" / "finished").write_bytes(b"\xff"),
    ],
)
def test_what_was_damaged_deleted_or_written_over_is_read_and_mended(
    mendable, fresh, change
):
    assert _same(_mended(mendable, change), fresh)


def test_weights_that_were_written_over_are_read(finished, fresh):
    weights = finished / "run" / "checkpoint-2" / "model.safetensors"
    mended = _mended(finished, lambda _: _rewrite(weights, _flip))
    assert _same(mended, _study(finished).run(finished / "fresh", progress=False))
    assert not _same(mended, fresh)


def _mended(finished, change):
    """Change a file of a finished study, and return the result of the run after that."""
    assert _run(_study(finished), finished / "study")[2]
    change(finished)
    result, _, nothing = _run(_study(finished), finished / "study")
    assert not nothing
    opened = og.open_study(finished / "study")
    assert _same(result, opened) and _same(opened, result)
    assert _run(_study(finished), finished / "study")[2]
    return opened


def _same(result, fresh):
    a, b = result.tree.load(), fresh.tree.load()
    return all(
        a[name].to_dataset().identical(b[name].to_dataset()) for name in b.children
    )


def test_other_texts_code_and_configurations_are_noticed(finished, monkeypatch):
    study = finished / "study"
    assert not _run(_study(finished, tiny_inputs(seed=5)), study)[2]
    assert not _run(_study(finished), study)[2] and _run(_study(finished), study)[2]
    result, _, nothing = _run(_study(finished, own=_own(finished, note="b")), study)
    assert not nothing and result["mean"].attrs["note"] == "b"
    monkeypatch.setattr(
        "ontogeny.study.results.finished.library_code", lambda: "edited"
    )
    assert not _run(_study(finished), study)[2] and _run(_study(finished), study)[2]
    monkeypatch.undo()
    path = finished / "run" / "checkpoint-4" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rms_norm_eps": 1e-3}))
    with pytest.warns(og.errors.StudyWarning, match="rms_norm_eps"):
        result, _, nothing = _run(_study(finished), study)
    assert not nothing and "configuration" in result.attrs["findings"]


def test_changed_numbers_of_an_own_observable_are_noticed(finished):
    study = finished / "study"
    before = _run(_study(finished), study)[0]["mean/mean"].values
    result, _, nothing = _run(_study(finished, own=_own(finished, "2.0")), study)
    assert not nothing and np.array_equal(result["mean/mean"].values, 2 * before)


def test_what_the_audit_reads_beside_weights_is_noticed(finished):
    study = finished / "study"
    _run(_study(finished), study)
    assert _run(_study(finished), study)[2]
    note = json.loads((finished / "run" / "recorder.json").read_text())
    note["digests"]["1"] = note["digests"]["1"][::-1]
    (finished / "run" / "recorder.json").write_text(json.dumps(note))
    result, _, nothing = _run(_study(finished), study)
    assert not nothing and "altered" in result.attrs["findings"]
    _, notes, nothing = _run(_study(finished), study)
    assert nothing and "step 1 no longer holds" in str(notes.lines)  # said in every run


def test_a_failed_cell_is_tried_in_every_run(finished):
    study = finished / "study"
    own = _own(finished, "(1 / 0)")
    with pytest.warns(og.errors.StudyWarning):
        assert (
            not _study(finished, own=own)
            .run(study, keep_going=True)["mean"]
            .attrs.get("note")
        )
    notes = Notes()
    with pytest.warns(og.errors.StudyWarning):
        _study(finished, own=own).run(study, progress=notes, keep_going=True)
    assert notes.tasks and "nothing to do" not in str(notes.lines)


def test_a_copied_study_is_checked_once(finished):
    shutil.copytree(finished / "study", finished / "copy")
    assert not _run(_study(finished), finished / "copy")[2]
    assert _run(_study(finished), finished / "copy")[2]


def test_another_environment_is_said_in_every_run(finished, monkeypatch):
    study = finished / "study"
    assert _run(_study(finished), study)[2]
    for module in ("study", "results.finished", "planning.examination"):
        where = f"ontogeny.study.{module}.environment"
        monkeypatch.setattr(where, lambda device: {"torch": "9.9"})
    for _ in range(2):
        _, notes, nothing = _run(_study(finished), study)
        assert not nothing and "another environment" in str(notes.lines)


def test_damage_that_no_stamp_shows_is_found_where_it_is_read(finished, monkeypatch):
    study = finished / "study"
    path = study / "result.zarr" / ".zmetadata"
    monkeypatch.setattr("ontogeny.study.results.finished.stamp_of", lambda stat: 0)
    assert not _run(_study(finished), study)[2] and _run(_study(finished), study)[2]
    path.write_bytes(path.read_bytes()[:-1])
    assert not _run(_study(finished), study)[2]
    assert _run(_study(finished), study)[2]


def test_a_probe_of_a_folder_is_kept_for_its_checkpoint_alone(finished, monkeypatch):
    counts = _counted(monkeypatch)
    _study(finished).parts(finished / "study")
    assert counts["probes"] == 0
    _rewrite(finished / "run" / "checkpoint-0" / "model.safetensors", _flip)
    _study(finished).parts(finished / "study")
    assert counts["probes"] == 1


def test_a_model_of_a_users_code_is_examined_in_every_run(tmp_path, monkeypatch):
    assert examination._is_identified(record(developing((0, 1)), tmp_path / "run")[0])
    (tmp_path / "model.py").write_text(
        "from helpers.study_examples import tiny_model\ndef build(): return tiny_model()\n"
    )
    build_own = og.own_code.load("model.py:build", tmp_path)
    own = og.Trajectory.from_folder(tmp_path / "run", model=build_own)
    assert isinstance(own[0].weights, WeightFiles) and not examination._is_identified(
        own[0]
    )
