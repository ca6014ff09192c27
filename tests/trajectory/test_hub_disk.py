"""Disk: what is on it while revisions are used one after another, and what is left afterwards."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file
from torch import nn

from helpers import hub_readers, warm_process
from helpers.hub_models import REPO, linear, linear_files, tokenizer_files, two_shards
from helpers.hub_server import StandIn, build_cache, commit_of
from helpers.warm_process import warm_context
from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.trajectory import Prefetch, UnknownStepError, retain, retained

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 3, 4, 5)
# The function has its name.
retained_module = sys.modules["ontogeny.trajectory.retention"]


@pytest.fixture
def hub():
    revisions = {f"step{s}": linear_files(s, **tokenizer_files()) for s in STEPS}
    with StandIn({REPO: revisions}) as server:
        yield server


def opened(hub, cache, *args, **options):
    options.setdefault("model", nn.Linear(3, 2))
    return Trajectory.from_hub(
        REPO, *args, cache_dir=cache, endpoint=hub.url, **options
    )


def snapshots(cache):
    """Return the snapshot folders of which anything is on disk, wherever below `cache` they lie.

    Revisions are deleted by another thread meanwhile: `os.walk` passes over a folder that has just
    gone, where `Path.glob` raises.
    """
    found = set()
    for folder, _, files in os.walk(cache):
        if files and Path(folder).parent.name == "snapshots":
            found.add(folder)
    return found


def left(cache):
    """Return what is left of private folders for downloads."""
    folder = cache / ".locks" / "ontogeny"
    return list(folder.iterdir()) if folder.exists() else []


def contents(cache):
    """Return every file of the repositories in a cache with its bytes."""
    return {
        str(p.relative_to(cache)): p.read_bytes()
        for p in cache.glob("models--*/**/*")
        if p.is_file()
    }


def same(model, other):
    return all(
        torch.equal(a, b)
        for a, b in zip(model.parameters(), other.parameters(), strict=True)
    )


def test_never_more_than_two_of_ours_and_nothing_in_the_end(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    with Prefetch(trajectory) as prefetch:
        for step in prefetch.steps:
            with prefetch.use(step) as checkpoint:
                assert 1 <= len(snapshots(tmp_path)) <= 2
                assert same(checkpoint.model(), linear(step))
                assert 1 <= len(snapshots(tmp_path)) <= 2
    assert contents(tmp_path) == {} and left(tmp_path) == []
    assert hub.calls["get"] == len(STEPS)


def test_the_next_revision_downloads_while_one_is_used(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    commits = hub.commits(REPO)
    with Prefetch(trajectory) as prefetch:
        hub.hold = f"GET /{REPO}/resolve/{commits['step1']}"
        with prefetch.use(0):
            # Step 1 is asked for although step 0 is still in use.
            assert hub.entered.wait(600)
            hub.resume.set()
        with prefetch.use(1) as checkpoint:
            assert same(checkpoint.model(), linear(1))


def test_what_was_there_before_survives_with_the_blobs_it_shares(hub, tmp_path):
    # Shares weights.
    hub.repos[REPO]["step3"] = hub.repos[REPO]["step2"] | {"extra.json": b"{}"}
    mine = {"step2": hub.repos[REPO]["step2"]}
    build_cache(tmp_path, REPO, mine)
    other = {"step1": linear_files(50)}
    build_cache(tmp_path, "lab/another", other)
    before = contents(tmp_path)
    trajectory = opened(hub, tmp_path)
    with Prefetch(trajectory) as prefetch:
        for step in prefetch.steps:
            with prefetch.use(step) as checkpoint:
                checkpoint.model()
                assert len(snapshots(tmp_path)) <= 2 + 2
    assert contents(tmp_path) == before
    assert commit_of(mine["step2"]) not in "".join(
        line for line in hub.lines if line.startswith("GET /lab/tiny/resolve")
    )


def test_a_snapshot_that_was_there_in_part_keeps_that_part(hub, tmp_path):
    part = {"tokenizer.json": hub.repos[REPO]["step1"]["tokenizer.json"]}
    folder = build_cache(tmp_path, REPO, {"step1": part})
    commits = hub.commits(REPO)
    (folder / "snapshots" / commit_of(part)).rename(
        folder / "snapshots" / commits["step1"]
    )
    (folder / "refs" / "step1").write_text(commits["step1"])
    before = contents(tmp_path)
    with Prefetch(opened(hub, tmp_path)) as prefetch:
        for step in (0, 1, 2):
            with prefetch.use(step) as checkpoint:
                checkpoint.model()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("most", [1, 2])
def test_whoever_reads_its_trajectory_keeps_to_the_bound(hub, tmp_path, most):
    read, names = [], {"weight", "bias"}
    with Prefetch(opened(hub, tmp_path), [0], max_revisions=most) as prefetch:
        trajectory = prefetch.trajectory
        skeleton = trajectory.skeleton()
        for step in (4, 0, 5, 1):
            assert same(trajectory[step].model(), linear(step))
            assert same(skeleton.load(step), linear(step))
            with trajectory[step].open() as reader:
                assert set(reader.names()) == names
                read.append(len(snapshots(tmp_path)))
    assert max(read) <= most
    assert snapshots(tmp_path) == set() and left(tmp_path) == []


def test_more_open_at_once_than_the_bound_allows_is_an_error_not_a_wait_for_ever(
    hub, tmp_path
):
    with Prefetch(opened(hub, tmp_path), [], max_revisions=1) as prefetch:
        trajectory = prefetch.trajectory
        refused = pytest.raises(
            CheckpointError, match="max_revisions=1 allows 1 open revision"
        )
        with (
            prefetch.use(0) as checkpoint,
            trajectory[0].open(),
            checkpoint.open(),
            refused,
        ):
            trajectory[1].model()
        assert same(trajectory[1].model(), linear(1))


def test_another_process_that_its_trajectory_is_sent_to_keeps_to_the_bound(
    hub, tmp_path
):
    trajectory = opened(hub, tmp_path)
    pool = warm_context().Pool(2)
    with Prefetch(trajectory, [], max_revisions=2) as prefetch, pool:
        tasks = [(prefetch.trajectory, tmp_path, step) for step in STEPS * 2]
        counts = pool.starmap(hub_readers.read, tasks)
    assert max(counts) <= 2 and left(tmp_path) == []


@pytest.mark.parametrize("order", [(5, 0, 1, 2, 3, 4, 5), (3, 3, 1), (4, 2, 0)])
def test_any_order_and_repeated_use(hub, tmp_path, order):
    with Prefetch(opened(hub, tmp_path), order) as prefetch:
        for step in order:
            with prefetch.use(step) as checkpoint:
                assert same(checkpoint.model(), linear(step))
                assert len(snapshots(tmp_path)) <= 2
    assert contents(tmp_path) == {}


def test_steps_used_in_another_order_than_said_or_left_out(hub, tmp_path):
    for most in (1, 2):
        with Prefetch(opened(hub, tmp_path), max_revisions=most) as prefetch:
            for step in (4, 1, 5, 5, 0):
                with prefetch.use(step) as checkpoint:
                    assert same(checkpoint.model(), linear(step))
                    assert len(snapshots(tmp_path)) <= most
        assert contents(tmp_path) == {}


def test_threads_that_use_several_at_once(hub, tmp_path):
    expected = {step: linear(step) for step in STEPS}
    with Prefetch(opened(hub, tmp_path), max_revisions=3) as prefetch:

        def work(step):
            with prefetch.use(step) as checkpoint:
                count = len(snapshots(tmp_path))
                return same(checkpoint.model(), expected[step]) and count <= 3

        with ThreadPoolExecutor(2) as pool:
            assert all(pool.map(work, STEPS))
    assert contents(tmp_path) == {}


def test_a_bound_in_bytes(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    size = trajectory[0].source.size()
    for most, bound in ((1, 2 * size - 1), (2, 2 * size), (3, 4 * size), (1, 1)):
        seen = 0
        with Prefetch(trajectory, max_revisions=3, max_bytes=bound) as prefetch:
            for step in STEPS:
                with prefetch.use(step):
                    seen = max(seen, len(snapshots(tmp_path)))
        assert seen <= most


def test_an_error_in_one_revision_is_raised_where_it_is_used_and_the_rest_goes_on(
    hub, tmp_path
):
    hub.repos[REPO]["step2"] = {"README.md": b"soon"}
    with Prefetch(opened(hub, tmp_path)) as prefetch:
        for step in STEPS:
            if step == 2:
                with (
                    pytest.raises(CheckpointError, match="holds no weights"),
                    prefetch.use(step),
                ):
                    pass
            else:
                with prefetch.use(step) as checkpoint:
                    assert same(checkpoint.model(), linear(step))
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_no_orphan(hub, tmp_path, error):
    trajectory = opened(hub, tmp_path)
    hub.hold = f"GET /{REPO}/resolve/{hub.commits(REPO)['step2']}"

    def stopped():
        with Prefetch(trajectory) as prefetch:
            for step in prefetch.steps:
                with prefetch.use(step):
                    if step == 1:
                        assert hub.entered.wait(600)
                        threading.Timer(0.2, hub.resume.set).start()
                        raise error

    with pytest.raises(error):
        stopped()
    assert contents(tmp_path) == {} and left(tmp_path) == []
    assert "prefetch" not in {thread.name for thread in threading.enumerate()}


KILLED = """
import os, signal, sys
from torch import nn
from ontogeny import Trajectory
from ontogeny.trajectory import Prefetch

options = {{"cache_dir": {cache!r}, "endpoint": {url!r}, "model": nn.Linear(3, 2)}}
trajectory = Trajectory.from_hub({repo!r}, **options)
with Prefetch(trajectory) as prefetch:
    for step in prefetch.steps:
        with prefetch.use(step) as checkpoint:
            checkpoint.model()
            if step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(hub, cache):
    """Run a process that uses step 3 when it is killed; return the folders that it leaves."""
    code = KILLED.format(repo=REPO, cache=str(cache), url=hub.url)
    assert warm_process.run(["-c", code]).returncode == -signal.SIGKILL
    assert 1 <= len(snapshots(cache)) <= 2
    return [path for path in left(cache) if path.is_dir()]


def test_what_a_killed_run_left_goes_with_the_next_run(hub, tmp_path):
    (folder,) = killed(hub, tmp_path)
    (folder / "slot-0" / "half.incomplete").write_bytes(b"half")
    with Prefetch(opened(hub, tmp_path)) as prefetch:
        assert not folder.exists()
        for step in STEPS:
            with prefetch.use(step):
                assert len(snapshots(tmp_path)) <= 2
    assert contents(tmp_path) == {} and left(tmp_path) == []


def test_a_name_half_written_when_a_run_was_killed_does_not_lift_the_bound(
    hub, tmp_path
):
    """Scanned by huggingface_hub, such a cache could not be deleted from any more."""
    (folder,) = killed(hub, tmp_path)
    for ref in (
        next(folder.rglob("refs")),
        tmp_path / f"models--{REPO.replace('/', '--')}/refs",
    ):
        ref.mkdir(parents=True, exist_ok=True)
        (ref / "step4").write_text("")
    with Prefetch(opened(hub, tmp_path)) as prefetch:
        for step in STEPS:
            with prefetch.use(step):
                assert len(snapshots(tmp_path)) <= 2
    assert snapshots(tmp_path) == set() and left(tmp_path) == []


def test_what_workers_of_a_killed_run_still_read_is_left_to_a_later_run(hub, tmp_path):
    (folder,) = killed(hub, tmp_path)
    with FileLock(folder / "slot-0.lock"), Prefetch(opened(hub, tmp_path), []):
        assert folder.exists()
    with Prefetch(opened(hub, tmp_path), []):
        assert not folder.exists()
    assert left(tmp_path) == []


def test_what_a_living_run_uses_is_left_alone(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    with Prefetch(trajectory, [0]) as first, first.use(0) as checkpoint:
        with Prefetch(opened(hub, tmp_path), [0, 1]) as second:
            for step in (0, 1):
                with second.use(step):
                    pass
        assert same(checkpoint.model(), linear(0))
    assert contents(tmp_path) == {}


def test_offline_nothing_is_fetched_and_nothing_deleted(tmp_path):
    build_cache(tmp_path, REPO, {f"step{s}": linear_files(s) for s in (0, 1)})
    before = contents(tmp_path)
    trajectory = Trajectory.from_hub(
        REPO, cache_dir=tmp_path, model=nn.Linear(3, 2), local_files_only=True
    )
    with Prefetch(trajectory) as prefetch:
        for step in prefetch.steps:
            with prefetch.use(step) as checkpoint:
                assert same(checkpoint.model(), linear(step))
    assert contents(tmp_path) == before and not (tmp_path / ".locks").exists()


@pytest.mark.parametrize(
    "options", [{"max_revisions": 0}, {"max_bytes": 0}, {"max_bytes": 1.5}]
)
def test_bounds_that_are_none_are_refused(options):
    trajectory = Trajectory.from_models({0: nn.Linear(1, 1)})
    with pytest.raises(
        ArgumentError,
        match=f"{next(iter(options))} must be a whole number of at least 1",
    ):
        Prefetch(trajectory, **options)
    with pytest.raises(UnknownStepError):
        Prefetch(trajectory, [0, 1])


def test_retained_tensors_are_read_after_the_revision_is_gone(tmp_path):
    revisions = {f"step{s}": two_shards(s, 100 + s) for s in range(4)}
    cache, kept = tmp_path / "cache", tmp_path / "kept"
    with StandIn({REPO: revisions}) as hub:
        trajectory = opened(hub, cache)
        with Prefetch(trajectory) as prefetch:
            for step in prefetch.steps:
                with prefetch.use(step) as checkpoint:
                    whole = {n: checkpoint.digests()[n] for n in ("a",)}
                    small = retain(checkpoint, ["a"], kept)
                    assert small.digests() == whole
        assert contents(cache) == {}
        calls = hub.calls["get"]
        later = retained(trajectory, kept)
        torch.manual_seed(2)
        with later[2].open() as reader:
            assert reader.names() == ["a"]
            assert torch.equal(reader.get("a"), torch.randn(8, 40))
        assert later.fingerprints() == trajectory.fingerprints()
        assert hub.calls["get"] == calls


def test_retained_tensors_of_other_weights_are_not_used(tmp_path):
    first = Trajectory.from_models({0: linear(0), 1: linear(1)})
    for checkpoint in first:
        retain(checkpoint, ["weight"], tmp_path)
    second = Trajectory.from_models({0: linear(0), 1: linear(7)})
    later = retained(second, tmp_path)
    with later[0].open() as zero, later[1].open() as one:
        assert zero.names() == ["weight"]
        assert torch.equal(one.get("weight"), linear(7).weight)
    retain(second[1], ["bias"], tmp_path)
    assert sorted(load_file(tmp_path / "step-1.safetensors")) == ["bias"]
    retain(second[0], ["bias"], tmp_path)
    assert sorted(load_file(tmp_path / "step-0.safetensors")) == ["bias", "weight"]
    with pytest.raises(ArgumentError, match=r"no tensors \['other'\]"):
        retain(second[0], ["other"], tmp_path)
    Path(tmp_path / "step-0.safetensors").write_bytes(b"damaged")
    with retain(second[0], ["weight"], tmp_path).open() as reader:
        assert torch.equal(reader.get("weight"), linear(0).weight)


def test_two_that_retain_the_same_at_the_same_time_do_not_take_each_others_file(
    tmp_path, monkeypatch
):
    checkpoint = Trajectory.from_models({1: linear(1)})[1]
    save, others = retained_module.save_file, [True]

    def meanwhile(tensors, path, **options):
        save(tensors, path, **options)
        if others:
            others.pop()
            retain(checkpoint, ["bias", "weight"], tmp_path)

    monkeypatch.setattr(retained_module, "save_file", meanwhile)
    kept = retain(checkpoint, ["weight"], tmp_path)
    with kept.open() as reader:
        assert torch.equal(reader.get("weight"), linear(1).weight)
    assert [p.name for p in tmp_path.iterdir()] == ["step-1.safetensors"]


OTHER = """
import sys
from torch import nn
from ontogeny import Trajectory
from ontogeny.trajectory import Prefetch

options = {{"cache_dir": {cache!r}, "endpoint": {url!r}, "model": nn.Linear(3, 2)}}
trajectory = Trajectory.from_hub({repo!r}, **options)
with Prefetch(trajectory, [0, 1], max_revisions=1) as prefetch:
    for step in prefetch.steps:
        with prefetch.use(step) as checkpoint:
            checkpoint.model()
            sys.stdout.write("in use\\n")
            sys.stdout.flush()
            sys.stdin.readline()
"""


def test_two_processes_over_one_cache_keep_a_bound_each(hub, tmp_path):
    code = OTHER.format(repo=REPO, cache=str(tmp_path), url=hub.url)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as other:
        assert other.stdout.readline() == "in use\n"  # step 0, which it has fetched
        with (
            Prefetch(opened(hub, tmp_path), [0]) as prefetch,
            prefetch.use(0) as checkpoint,
        ):
            other.stdin.write("\n")
            other.stdin.flush()
            # Step 1: it has let go of step 0.
            assert other.stdout.readline() == "in use\n"
            assert len(snapshots(tmp_path)) == 2
            assert same(checkpoint.model(), linear(0))
        assert len(snapshots(tmp_path)) == 1
        other.communicate("\n")
    assert other.returncode == 0
    assert contents(tmp_path) == {} and left(tmp_path) == []


def test_a_file_that_is_deleted_from_the_cache_while_it_is_fetched_is_said(
    hub, tmp_path
):
    source = opened(hub, tmp_path)[1].source
    download = type(source)._download

    def deleted(revision, name):
        download(revision, name)
        (revision.path / name).unlink()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(source), "_download", deleted)
        with pytest.raises(
            CheckpointError, match="deleted from the cache while it was fetched"
        ):
            source.download()
    source.download()
    assert source.is_downloaded()
