"""A study of a Hub suite through the stand-in server: bounded disk, a kill in the middle."""

import json
import multiprocessing
import os
import shutil
import signal
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers import warm_process
from helpers.deadly import Deadly, assert_lost
from helpers.hub_counted import CountedHub, snapshots, suite
from helpers.hub_models import REPO, model_files, neox
from helpers.hub_server import StandIn
from helpers.hub_study import study
from helpers.paths import script
from ontogeny import capture
from ontogeny.errors import ArgumentError
from ontogeny.observables import Observable
from ontogeny.study.folder.claims import claimed
from ontogeny.study.progress import Silent
from ontogeny.trajectory.hub.revision import HubRevision

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    with CountedHub(suite(STEPS, folder), folder) as server:
        yield server


@pytest.fixture(scope="module")
def whole(hub, tmp_path_factory):
    """The result with every revision kept in the cache."""
    folder = tmp_path_factory.mktemp("whole")
    study(hub.url, folder / "cache").run(folder / "s")
    return _nodes(folder / "s")


def _nodes(folder):
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    assert tree.attrs["problems"] == "[]"
    return {name: node.to_dataset().load() for name, node in tree.children.items()}


def _assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, data in expected.items():
        xr.testing.assert_identical(found[name], data)


def test_killed_in_the_middle_within_one_revision_gives_the_same_bits(
    hub, whole, tmp_path
):
    cache, out = tmp_path / "cache", tmp_path / "s"
    hub.cache, hub.beside = cache, 0
    killed = warm_process.run([script("hub_study.py"), hub.url, cache, out, 1, 9])
    assert killed.returncode == -signal.SIGKILL
    assert len(snapshots(cache)) <= 1
    study(hub.url, cache).run(out, max_revisions=1)
    assert hub.beside == 0  # nothing lay there whenever another revision was asked for
    assert snapshots(cache) == []
    _assert_same(_nodes(out), whole)


def test_what_was_found_at_the_first_revision_is_kept_for_the_next_process(
    hub, tmp_path
):
    found, loss = [], [og.observables.Loss()]
    (first, *_), counts = (hub.commits(REPO)[f"step{s}"] for s in STEPS), []
    for k, damaged in enumerate([False, False, True]):
        of_hub, out = study(hub.url, tmp_path / str(k)), tmp_path / "s"
        chosen = og.Study(
            of_hub.trajectory.select(steps=STEPS[:2]), of_hub.inputs, loss
        )
        if damaged:
            (out / "probe.safetensors").write_bytes(b"no cell")
        hub.downloads.clear()
        found.append(chosen.run(out, max_revisions=1)["loss"].to_dataset().load())
        counts.append(hub.downloads[first])
        shutil.rmtree(out / "cells")
    assert counts == [2, 1, 2]  # to look at the model, and to read it
    xr.testing.assert_identical(found[0], found[1])
    xr.testing.assert_identical(found[0], found[2])


@pytest.mark.parametrize("times", [9, 1])
def test_a_killed_worker_costs_its_own_step_alone_and_keeps_to_the_bound(
    hub, tmp_path, times
):
    cache, tried = tmp_path / "cache", tmp_path / "tried"
    hub.cache, hub.beside = cache, 0
    hub.downloads.clear()
    of_hub = study(hub.url, cache)
    first, deadly = of_hub.trajectory.select(steps=STEPS[:5]), Deadly(str(tried), times)
    chosen = og.Study(first, of_hub.inputs, [deadly], device="cpu", noise=0)
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("fork"))
    with pool, warnings.catch_warnings():
        # Of forks beside threads, and that a cell has failed.
        warnings.simplefilter("ignore")
        tree = chosen.run(tmp_path / "s", pool, max_revisions=2)
    assert tried.read_text() == ".."
    assert_lost(tree, [deadly.step] if times > 1 else [])
    assert hub.beside <= 1 and snapshots(cache) == []
    assert not list((tmp_path / "s" / ".claims").glob("*"))


def test_workers_hold_their_revisions(hub, whole, tmp_path):
    with ThreadPoolExecutor(2) as executor:
        study(hub.url, tmp_path / "cache").run(
            tmp_path / "s", executor, max_revisions=3
        )
    assert snapshots(tmp_path / "cache") == []
    _assert_same(_nodes(tmp_path / "s"), whole)


@pytest.mark.parametrize("workers", [0, 2])
def test_within_few_revisions_what_another_process_is_at_is_waited_for(
    hub, whole, tmp_path, workers
):
    notes = []
    (tmp_path / "s").mkdir()
    with ExitStack() as other:
        other.enter_context(claimed(tmp_path / "s", "step 4"))

        class Ending(Silent):
            def note(self, text):
                if text.startswith("waiting"):
                    notes.append(text)
                    other.close()

        chosen = study(hub.url, tmp_path / "cache")
        with ThreadPoolExecutor(2) as pool:
            executor = pool if workers else None
            chosen.run(tmp_path / "s", executor, Ending(), max_revisions=3)
    assert notes[0].startswith(f"waiting for step 4, which process {os.getpid()} on ")
    assert snapshots(tmp_path / "cache") == []
    _assert_same(_nodes(tmp_path / "s"), whole)


@dataclass(frozen=True)
class Prepared(Observable):
    """Reads every checkpoint for its state."""

    kind: ClassVar[str] = "prepared"

    def needs(self):
        return [og.needs.Activations("mlp")]

    def prepare(self, run):
        means = [self._mean(run.reading(int(step))) for step in run.steps]
        return xr.Dataset({"mean": ("step", means)})

    def observe(self, reading, state):
        return xr.Dataset({"mean": self._mean(reading), "of_all": state["mean"].mean()})

    def _mean(self, reading):
        return float(
            torch.stack([a.mean() for a in reading[self.needs()[0]].values()]).mean()
        )


def test_a_state_of_all_steps_holds_one_revision_at_a_time(hub, tmp_path, monkeypatch):
    of_hub, read, held = study(hub.url, tmp_path / "cache"), capture.read, []

    def watching(*arguments):
        held.append(len(snapshots(tmp_path / "cache")))
        return read(*arguments)

    monkeypatch.setattr(capture, "read", watching)
    chosen = og.Study(
        of_hub.trajectory.select(steps=STEPS[:4]),
        of_hub.inputs,
        [Prepared()],
        device="cpu",
    )
    tree = chosen.run(tmp_path / "s", max_revisions=1)
    assert tree.attrs["problems"] == "[]"
    # the dry run, then all for the state, the reference first: what cells read is read with it
    assert len(held) == 1 + 4 and max(held) == 1
    assert snapshots(tmp_path / "cache") == []
    free = chosen.run(tmp_path / "free")
    xr.testing.assert_identical(
        tree["prepared"].to_dataset(), free["prepared"].to_dataset()
    )


def test_planning_downloads_the_first_checkpoint_only(hub, tmp_path):
    plan = study(hub.url, tmp_path / "cache").plan(tmp_path / "s")
    assert plan.to_do == 2 * len(STEPS) + 4
    # two fused projections of 48 x 16 and two matrices of 32 x 16, in float32, at every step
    assert plan.retained_bytes == (2 * 48 * 16 + 2 * 32 * 16) * 4 * len(STEPS)
    assert "to keep in the folder" in str(plan)
    assert len(snapshots(tmp_path / "cache")) == 1


def test_a_study_file_and_the_command_read_a_suite(hub, tmp_path, monkeypatch, capsys):
    from ontogeny.cli import main
    from ontogeny.study import read_study

    path = tmp_path / "study.toml"
    path.write_text(
        f'[trajectory]\nhub = "{REPO}"\ncache_dir = "{tmp_path / "cache"}"\n'
        'select = { count = 4 }\n[inputs]\ntexts = ["a b"]\n[[observables]]\nkind = "loss"\n'
    )
    monkeypatch.setattr(
        "ontogeny.trajectory.hub.client.is_offline", lambda: False, raising=True
    )
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(
        huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache")
    )
    with pytest.raises(ArgumentError, match="no tokenizer"):
        read_study(path)
    with pytest.raises(SystemExit) as stop:
        main(["audit", REPO])
    assert not stop.value.code
    assert "10 checkpoints, steps 0 to 256" in capsys.readouterr().out


def test_a_result_says_which_commits_it_is_of(hub, tmp_path):
    of_hub = study(hub.url, tmp_path / "cache")
    chosen = of_hub.over(of_hub.trajectory.select(steps=[0, 256]))
    chosen.run(tmp_path / "s")
    source = json.loads(
        xr.open_datatree(tmp_path / "s" / "result.zarr", engine="zarr").attrs[
            "trajectory"
        ]
    )
    assert (source["source"], source["name"]) == ("hub", REPO)
    known = chosen.trajectory.provenance()["revisions"]
    assert (
        source["revisions"] == known and len({r["commit"] for r in known.values()}) == 2
    )
    assert source["digests"] == {str(c.step): c.fingerprint for c in chosen.trajectory}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_preparation_that_reads_every_step_keeps_to_one_revision(
    hub, tmp_path, monkeypatch, workers
):
    counts = []
    fetch = HubRevision.fetch

    def counted(revision, name):
        path = fetch(revision, name)
        counts.append(len(snapshots(tmp_path)))
        return path

    monkeypatch.setattr(HubRevision, "fetch", counted)
    of_hub = study(hub.url, tmp_path / "cache")
    chain = og.observables.Concepts("svd", n_concepts=2, layers="mlp", init="chain")
    chosen = og.Study(of_hub.trajectory, of_hub.inputs, [chain], device="cpu")
    with ThreadPoolExecutor(2) as pool:
        tree = chosen.run(tmp_path / "s", pool if workers else None, max_revisions=1)
    assert tree.attrs["problems"] == "[]" and max(counts) == 1
    assert snapshots(tmp_path) == []


@pytest.mark.parametrize("workers", [0, 3])
def test_controls_of_a_suite_keep_to_the_bound(hub, tmp_path, monkeypatch, workers):
    of_hub, read, held = study(hub.url, tmp_path / "cache"), capture.read, []

    def watching(*arguments):
        held.append(len(snapshots(tmp_path / "cache")))
        return read(*arguments)

    monkeypatch.setattr(capture, "read", watching)
    chosen = og.Study(
        of_hub.trajectory.select(steps=STEPS[:6]),
        of_hub.inputs,
        [og.observables.Loss()],
        device="cpu",
        controls=1,
        control_steps=6,
        noise=0,
    )
    with ThreadPoolExecutor(workers or 1) as pool:
        tree = chosen.run(
            tmp_path / "s", pool if workers else None, max_revisions=workers + 2
        )
    assert tree.attrs["problems"] == "[]" and max(held) <= workers + 2
    assert snapshots(tmp_path / "cache") == []
    free = chosen.run(tmp_path / "free")
    xr.testing.assert_identical(tree["loss"].to_dataset(), free["loss"].to_dataset())


def test_four_runs_in_one_folder_with_a_cache_each_share_the_downloads(
    hub, whole, tmp_path
):
    hub.cache = tmp_path / "caches"
    hub.downloads.clear()
    studies = [study(hub.url, hub.cache / str(k)) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.run(tmp_path / "s", max_revisions=1), studies))
    first, *others = (hub.commits(REPO)[f"step{s}"] for s in STEPS)
    # One looks at the model first; on a loaded machine, the run that gets to the references may not
    # be the one that has read their step, and downloads it again. Alone, each would download all.
    downloads = [hub.downloads[commit] for commit in others]
    assert (
        hub.downloads[first] == 2
        and set(downloads) <= {1, 2}
        and downloads.count(2) <= 1
    )
    _assert_same(_nodes(tmp_path / "s"), whole)
    assert snapshots(hub.cache) == []


@pytest.mark.parametrize(("workers", "offline"), [(0, False), (4, False), (0, True)])
def test_revisions_of_another_size_are_refused_by_name_for_any_workers(
    tmp_path, monkeypatch, workers, offline
):
    model = neox(0)
    revisions = {}
    for step in (0, 10, 20, 30):
        if step == 20:
            model.resize_token_embeddings(48, mean_resizing=False)
        revisions[f"step{step}"] = model_files(model, tmp_path / str(step))
    inputs = og.Inputs.from_tokens([[1, 2, 3, 4]] * 4)

    def opened(**options):
        where = {"endpoint": server.url, "cache_dir": tmp_path / "cache"}
        return og.Trajectory.from_hub("lab/grown", **where, **options)

    def result(folder, run):
        grown = og.Study(run, inputs, [og.observables.Loss()], controls=0, noise=0)
        pool = ThreadPoolExecutor(workers) if workers else nullcontext()
        with pytest.warns(og.errors.StudyWarning), pool as executor:
            return grown.run(folder, executor, progress=False)

    with StandIn({"lab/grown": revisions}) as server:
        if offline:
            for checkpoint in opened():
                checkpoint.model()
            monkeypatch.setenv("HF_HUB_OFFLINE", "1")
            server.faults = [("GET", 500)] * 100
        there = result(tmp_path / "study", opened(local_files_only=offline))
    status = there["loss"].status.values.tolist()
    assert status[:2] == ["done", "done"]
    expected = "another model than step0: vocab_size 40 -> 48"
    assert [expected in each for each in status[2:]] == [True, True], status
