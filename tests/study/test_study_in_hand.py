"""A run that is larger than the memory: all that reads a checkpoint is done while it is there."""

import json
import shutil
import threading
from collections import Counter, OrderedDict
from types import SimpleNamespace

import pytest
import xarray as xr
from safetensors.torch import load_file, save_file

import ontogeny as og
from helpers import tiny_models
from helpers.control_runs import run_of
from helpers.study_examples import tiny_inputs
from ontogeny.store import read_cell
from ontogeny.study.cells import in_hand
from ontogeny.study.cells.cache import DigestCache
from ontogeny.study.folder.claims import claimed
from ontogeny.study.folder.layout import digests_path
from ontogeny.study.running.mapping import Work, _next
from ontogeny.study.running.run import _note_weights
from ontogeny.trajectory.audit import several_runs
from ontogeny.trajectory.weights import digests
from ontogeny.trajectory.weights.files import _Shard

STEPS = (0, 1, 2, 3, 4, 5, 6, 7)
CONTROLS = 4
_PAGE = 512


class FileCache:
    """What a system keeps of files: the pages that were read last, up to so many bytes."""

    def __init__(self, limit):
        self.limit = limit
        self.read = Counter()  # bytes that came from the disk, by checkpoint
        self._pages = OrderedDict()

    def touch(self, path, offset, size):
        for page in range(offset // _PAGE, -(-(offset + size) // _PAGE)):
            if (path, page) not in self._pages:
                self.read[path.parent.name] += _PAGE
            self._pages[path, page] = None
            self._pages.move_to_end((path, page))
        while len(self._pages) * _PAGE > self.limit:
            self._pages.popitem(last=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for step, model in run_of(tiny_models.gpt2, STEPS).items():
        model.save_pretrained(folder / f"checkpoint-{step}")
    return folder


def study_of(run, *more):
    return og.Study(
        og.Trajectory.from_folder(run),
        tiny_inputs(16),
        [og.observables.Loss(), og.observables.ActivationDecay("mlp"), *more],
        controls=CONTROLS,
        control_steps=4,
        device="cpu",
    )


def size_of(run):
    return sum(
        t.nbytes for t in load_file(run / "checkpoint-0/model.safetensors").values()
    )


@pytest.fixture
def cache(run, monkeypatch):
    """A file cache of three checkpoints; the study knows of it when `.told` is called."""
    cache = FileCache(3.2 * size_of(run))
    mapped = _Shard._mapped

    def counting(self, offset, size, dtype):
        cache.touch(self._path, offset, size)
        return mapped(self, offset, size, dtype)

    monkeypatch.setattr(_Shard, "_mapped", counting)
    monkeypatch.setattr(
        several_runs, "_ELEMENTS", 8
    )  # of a large model it is a small part
    cache.told = lambda: monkeypatch.setattr(
        in_hand, "memory_for_files", lambda: int(cache.limit)
    )
    return cache


def cells_of(folder):
    """Return what every cell holds, by its place: fingerprint, status and data."""
    cells = {}
    for path in sorted(folder.rglob("*.safetensors")):
        if "probe" not in path.name:
            cell = read_cell(path)
            cells[path.relative_to(folder)] = (cell.fingerprint, cell.status, cell.data)
    return cells


def assert_equal(one, other):
    """Check that two folders hold the same cells to the last bit."""
    cells, others = cells_of(one), cells_of(other)
    assert cells.keys() == others.keys()
    for place, (fingerprint, status, data) in cells.items():
        assert others[place][:2] == (fingerprint, status)
        xr.testing.assert_identical(data, others[place][2])


def readings(cache, run):
    """Return how often whole checkpoints came from the disk, and forget it."""
    read = {name: n / size_of(run) for name, n in cache.read.items()}
    cache.read.clear()
    return [read[f"checkpoint-{step}"] for step in STEPS]


@pytest.mark.slow
def test_every_checkpoint_is_read_once_with_the_same_numbers(run, cache, tmp_path):
    assert not study_of(run).run(tmp_path / "by-run").problems()
    before = readings(cache, run)
    cache.told()
    assert not study_of(run).run(tmp_path / "by-step").problems()
    once = readings(cache, run)
    # Examined, hashed with its run, and read for that and for each of four controls.
    assert sum(before) > 2 * len(STEPS)
    assert once == pytest.approx([1] * len(STEPS), abs=0.3)
    assert sum(once) == pytest.approx(len(STEPS), rel=0.1)
    assert_equal(tmp_path / "by-run", tmp_path / "by-step")


@pytest.mark.slow
def test_what_was_stopped_goes_on_and_hashes_nothing_twice(
    run, cache, tmp_path, monkeypatch
):
    cache.told()
    observe, steps = og.observables.Loss.observe, []

    def stopping(self, reading, state):
        steps.append(reading.step)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return observe(self, reading, state)

    with monkeypatch.context() as patched:
        patched.setattr(og.observables.Loss, "observe", stopping)
        with pytest.raises(KeyboardInterrupt):
            study_of(run).run(tmp_path / "s")
    noted = json.loads((tmp_path / "s" / "digests.json").read_text())
    assert 0 < len(noted) < len(STEPS)
    digests._known.clear()  # as another process
    hashed, seen = [], digests._seen
    monkeypatch.setattr(digests, "_seen", lambda r: hashed.append(r) or seen(r))
    assert not study_of(run).run(tmp_path / "s").problems()
    assert len(hashed) == len(STEPS) - len(noted)
    study_of(run).run(tmp_path / "whole")
    assert_equal(tmp_path / "s", tmp_path / "whole")
    assert study_of(run).plan(tmp_path / "s").to_do == 0


@pytest.mark.slow
def test_one_checkpoint_that_cannot_be_read_costs_no_other(run, cache, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    weights = tmp_path / "run" / "checkpoint-5" / "model.safetensors"
    tensors = load_file(weights)
    save_file(dict(list(tensors.items())[1:]), weights, {"format": "pt"})
    study = study_of(tmp_path / "run")
    by_run = study.run(tmp_path / "by-run")
    cache.told()
    by_step = study_of(tmp_path / "run").run(tmp_path / "by-step")
    for result in (by_run, by_step):
        assert {s for p in result.problems() for s in p.steps} == {5}
    assert_equal(tmp_path / "by-run", tmp_path / "by-step")


@pytest.mark.slow
def test_weights_written_over_while_they_are_read_are_not_stored_under_another_digest(
    run, cache, tmp_path, monkeypatch
):
    shutil.copytree(run, tmp_path / "run")
    cache.told()
    observe = og.observables.Loss.observe
    weights = tmp_path / "run" / "checkpoint-3" / "model.safetensors"

    def writing_over(self, reading, state):
        if reading.step == 3 and not weights.with_name("old").exists():
            weights.rename(weights.with_name("old"))
            shutil.copy(run / "checkpoint-4" / "model.safetensors", weights)
        return observe(self, reading, state)

    with monkeypatch.context() as patched:
        patched.setattr(og.observables.Loss, "observe", writing_over)
        first = study_of(tmp_path / "run").run(tmp_path / "s")
    assert any("step 3 was written over" in problem.why for problem in first.problems())
    assert not study_of(tmp_path / "run").run(tmp_path / "s").problems()
    study_of(tmp_path / "run").run(tmp_path / "fresh")
    assert_equal(tmp_path / "s", tmp_path / "fresh")


def test_what_another_process_is_hashing_is_waited_for(run, tmp_path, monkeypatch):
    path, trajectory = digests_path(tmp_path), og.Trajectory.from_folder(run)
    job = SimpleNamespace(folder=tmp_path, studied=None, digests=DigestCache(path))
    cell = SimpleNamespace(place="that is left")
    task = SimpleNamespace(step=1, trajectory=trajectory, cells=[cell])
    other, hashed, seen = DigestCache(path), [], digests._seen
    monkeypatch.setattr(digests, "_seen", lambda r: hashed.append(r) or seen(r))
    digests._known.clear()
    with claimed(tmp_path, f"digests of {trajectory[1].label}"):
        waiting = threading.Thread(target=_note_weights, args=(job, task))
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive() and not hashed
        other.note(trajectory[1])
        other.save()
        digests._known.clear()  # as another process
    waiting.join()
    assert len(hashed) == 1
    assert job.digests.whole(trajectory[1]) == other.whole(trajectory[1])


def test_another_process_takes_the_checkpoint_that_nobody_has(tmp_path):
    """Where a process is at a step, the next one begins with another step."""
    job = SimpleNamespace(by_step=True, folder=tmp_path)
    works = [
        Work(job, SimpleNamespace(step=step, label=f"{run}step {step}"))
        for step in (1, 2)
        for run in ("", "turned 0: ")
    ]
    assert _next(works, None) == 0
    with claimed(tmp_path, "turned 0: step 1"):
        assert _next(works, None) == 2
        assert _next(works, 1) == 0  # its own
        with claimed(tmp_path, "step 2"):
            assert _next(works, None) == 0  # each is at work, and this one helps
    works[0].job.by_step = False
    with claimed(tmp_path, "step 1"):
        assert _next(works, None) == 0
