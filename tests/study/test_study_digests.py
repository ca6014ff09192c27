"""Weights that change on disk are noticed, whatever a file's size and times say."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import ontogeny as og
from helpers.study_examples import record, tiny_inputs, tiny_model
from ontogeny.study.cells.cache import DigestCache, hash_once
from ontogeny.trajectory.weights import digests


def _digest(run, cache):
    """Return the digest of the one checkpoint, as a new process finds it."""
    digests = DigestCache(cache)
    found = digests.whole(og.Trajectory.from_folder(run)[0])
    digests.save()
    return found


def test_weights_that_were_written_again_with_the_same_size_and_time_are_noticed(
    tmp_path,
):
    run, cache = tmp_path / "run", tmp_path / "digests.json"
    record({0: tiny_model(0)}, run)
    weights = run / "checkpoint-0" / "model.safetensors"
    before, stat = _digest(run, cache), weights.stat()
    assert _digest(run, cache) == before
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    # The system's clock has moved on.
    while weights.stat().st_ctime_ns == stat.st_ctime_ns:
        weights.write_bytes(content)
        os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    now = weights.stat()
    assert (now.st_size, now.st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert _digest(run, cache) != before


@pytest.mark.parametrize("change", [lambda p: [*p, {"w": "0"}], lambda p: p[:1] * 3])
def test_an_entry_with_more_parts_than_files_is_made_anew(tmp_path, change):
    run, cache = tmp_path / "run", tmp_path / "digests.json"
    record({0: tiny_model(0)}, run)
    before, whole = _digest(run, cache), cache.read_text()
    entries = json.loads(whole)
    for entry in entries.values():
        entry["tensors"] = change(entry["tensors"])
    cache.write_text(json.dumps(entries))
    known, checkpoint = DigestCache(cache), og.Trajectory.from_folder(run)[0]
    known.note(checkpoint)
    assert known.whole(checkpoint) == before
    assert not known.has_changed(checkpoint)
    known.save()
    assert json.loads(cache.read_text()) == json.loads(whole)


def forget(hashed):
    """Forget what this process has hashed by now, also to record a run: as a new one."""
    digests._known.clear()
    hashed.clear()


@pytest.fixture
def hashed(monkeypatch):
    """The names of the tensors of every file that is hashed, one entry a file."""
    hashed, seen = [], digests._seen

    def counting(reader):
        hashed.append(reader.names())
        return seen(reader)

    monkeypatch.setattr(digests, "_seen", counting)
    return hashed


def test_processes_that_begin_together_hash_each_checkpoint_once(tmp_path, hashed):
    steps = (0, 1, 2)
    record({step: tiny_model(step) for step in steps}, tmp_path / "run")
    forget(hashed)
    (tmp_path / "s").mkdir()
    tasks = [og.Trajectory.from_folder(tmp_path / "run") for _ in range(4)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: hash_once(tmp_path / "s", each), tasks))
    assert len(hashed) == len(steps)
    known = DigestCache(tmp_path / "s" / "digests.json")
    found = [known.whole(c) for c in tasks[0]]
    assert len(hashed) == len(steps)
    forget(hashed)
    assert found == [DigestCache(None).whole(c) for c in tasks[1]]
    assert len(hashed) == len(steps)  # by a cache that knows nothing
    assert not list((tmp_path / "s" / ".claims").glob("*"))


def test_a_process_that_goes_on_reads_no_file_again_to_audit_it(tmp_path, hashed):
    """What is noted in the folder says of each tensor whether it is finite, too."""
    models = {step: tiny_model(step) for step in (0, 1, 2, 3)}
    next(models[3].parameters()).data[0, 0] = float("nan")
    record(models, tmp_path / "run")
    forget(hashed)
    (tmp_path / "s").mkdir()
    run = og.Trajectory.from_folder(tmp_path / "run")
    hash_once(tmp_path / "s", run)
    before = run.audit().to_records()
    assert any(finding["kind"] == "non-finite" for finding in before)
    assert len(hashed) == 4
    forget(hashed)
    hash_once(tmp_path / "s", run)
    assert run.audit().to_records() == before
    assert not hashed


def test_a_plan_hashes_weights_only_where_cells_may_be_compared_with_them(
    tmp_path, hashed
):
    record({step: tiny_model(step) for step in (0, 1, 2)}, tmp_path / "run")
    forget(hashed)
    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    study = og.Study(trajectory, tiny_inputs(), [og.observables.Loss()], controls=2)
    assert study.plan(tmp_path / "s").to_do == study.plan().to_do == 9 and not hashed
    study.run(tmp_path / "s")
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    assert study.plan(tmp_path / "copy").to_do == 0 and len(hashed) == 3


def test_a_damaged_list_of_digests_costs_time_and_no_result(tmp_path):
    run, cache = tmp_path / "run", tmp_path / "digests.json"
    record({0: tiny_model(0)}, run)
    before, path = _digest(run, cache), str(run / "checkpoint-0")
    for content in (
        "[]",
        "no JSON",
        f'{{"{path}": []}}',
        f'{{"{path}": {{"files": 1}}}}',
    ):
        cache.write_text(content)
        assert _digest(run, cache) == before
    entry = json.loads(cache.read_text())[path]
    for tensors in (None, [], "a", {}, [dict.fromkeys(entry["tensors"][0], 1)]):
        cache.write_text(json.dumps({path: {**entry, "tensors": tensors}}))
        assert not DigestCache(cache).has_changed(og.Trajectory.from_folder(run)[0])
        assert _digest(run, cache) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "observable", [og.observables.Loss(), og.observables.WeightRank(n_draws=19)]
)
def test_weights_written_over_during_a_run_are_never_stored_under_the_old_digest(
    tmp_path, monkeypatch, observable
):
    run = tmp_path / "run"
    record({step: tiny_model(step) for step in range(4)}, run)
    compute, other, calls = type(observable).observe, tmp_path / "other", []
    record({0: tiny_model(7)}, other)

    def writing_over(self, *arguments, **options):
        calls.append(self)
        # The first is the dry run, when nothing has been planned yet.
        if len(calls) == 2:
            shutil.copy(other / "checkpoint-0" / "model.safetensors", tmp_path / "new")
            (tmp_path / "new").replace(run / "checkpoint-2" / "model.safetensors")
        return compute(self, *arguments, **options)

    study = og.Study(
        og.Trajectory.from_folder(run), tiny_inputs(), [observable], noise=0
    )
    with monkeypatch.context() as patched:
        patched.setattr(type(observable), "observe", writing_over)
        first = study.run(tmp_path / "s")
    assert any("step 2 was written over" in problem.why for problem in first.problems())
    again = og.Study(
        og.Trajectory.from_folder(run), tiny_inputs(), [observable], noise=0
    )
    second = again.run(tmp_path / "s")
    fresh = again.run(tmp_path / "fresh")
    assert not len(second.problems())
    assert second.tree[observable.name].equals(fresh.tree[observable.name])
