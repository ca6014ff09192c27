"""Controls of Hub revisions: nothing is fetched early, and bounded disk stays bounded."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn

from helpers import hub_readers
from helpers.control_runs import same, tensors
from helpers.hub_models import (
    REPO,
    linear,
    linear_files,
    model_files,
    neox,
    tokenizer_files,
)
from helpers.hub_server import StandIn
from helpers.warm_process import warm_context
from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.study.cells.cache import DigestCache
from ontogeny.trajectory import Prefetch, download
from ontogeny.trajectory.control import sources
from ontogeny.trajectory.control.kinds import KINDS
from ontogeny.trajectory.downloading import missing_bytes

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 3, 4, 5)


@pytest.fixture
def hub():
    revisions = {f"step{s}": linear_files(s, **tokenizer_files()) for s in STEPS}
    with StandIn({REPO: revisions}) as server:
        yield server


@pytest.fixture
def fresh(monkeypatch):
    """No increments are known from earlier tests."""
    monkeypatch.setattr(sources, "_lengths", type(sources._lengths)())


def opened(hub, cache, **options):
    return Trajectory.from_hub(
        REPO, cache_dir=cache, endpoint=hub.url, **{"model": nn.Linear(3, 2), **options}
    )


def expected(kind):
    """Return the tensors of the control of the same models in memory."""
    run = Trajectory.from_models({s: linear(s).state_dict() for s in STEPS})
    return {c.step: tensors(c) for c in run.control(kind)}


def snapshots(cache):
    """Return the revisions on disk; another thread deletes some meanwhile, as `os.walk` allows."""
    return {
        f
        for f, _, files in os.walk(cache)
        if files and Path(f).parent.name == "snapshots"
    }


def test_fingerprints_are_there_without_a_download_and_stay_after_it(hub, tmp_path):
    run = opened(hub, tmp_path)
    before = {kind: run.control(kind).fingerprints() for kind in KINDS}
    assert (
        len({f for found in before.values() for f in found.values()})
        == 1 + len(KINDS) * 5
    )
    cache = DigestCache(None)
    assert cache(run[4]) != cache(run.control()[4]) == run.control()[4].fingerprint
    assert all(found[0] == run[0].fingerprint for found in before.values())
    assert hub.calls["get"] == 0 and list(tmp_path.glob("models--*")) == []
    list(download(run))
    assert {kind: run.control(kind).fingerprints() for kind in KINDS} == before
    offline = opened(hub, tmp_path, local_files_only=True)
    assert {kind: offline.control(kind).fingerprints() for kind in KINDS} == before


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_are_those_of_the_same_models_in_memory(hub, tmp_path, kind):
    control = opened(hub, tmp_path).control(kind)
    there = expected(kind)
    for step in (3, 0, 5):
        assert same(tensors(pickle.loads(pickle.dumps(control))[step]), there[step])
        assert same(dict(control[step].model().state_dict()), there[step])
        assert same(dict(control.skeleton().load(step).state_dict()), there[step])
    with control[4].present() as checkpoint:
        assert same(tensors(checkpoint), there[4]) and checkpoint.revision == "step4"


def test_a_download_fetches_all_that_the_selected_steps_are_made_of(hub, tmp_path):
    run = opened(hub, tmp_path)
    one = missing_bytes(run.select(steps=[5]))
    control = run.control().select(steps=[3, 5])
    assert missing_bytes(control) == 3 * one
    assert list(download(control)) == [3, 5] and missing_bytes(control) == 0
    calls = hub.calls.copy()
    offline = opened(hub, tmp_path, local_files_only=True)
    assert offline.steps.tolist() == [0, 3, 5]
    assert same(tensors(offline.control()[5]), expected("turned")[5])
    assert offline.control().tokenizer() is not None and hub.calls == calls
    assert control.provenance()["of"]["revisions"]["5"]["revision"] == "step5"


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("kind", ["turned", "walk"])
def test_bounded_revisions_stay_bounded(hub, tmp_path, kind, most):
    control, there = opened(hub, tmp_path).control(kind), expected(kind)
    with Prefetch(control, max_revisions=most) as prefetch:
        for step in prefetch.steps:
            with prefetch.use(step) as checkpoint:
                assert same(dict(checkpoint.model().state_dict()), there[step])
                assert len(snapshots(tmp_path)) <= max(most, 2)
        skeleton = prefetch.trajectory.skeleton()
        for step in (4, 0, 5):
            assert same(dict(skeleton.load(step).state_dict()), there[step])
            assert len(snapshots(tmp_path)) <= max(most, 2)
    assert snapshots(tmp_path) == set()


@pytest.mark.usefixtures("fresh")
def test_the_first_revision_is_fetched_once_beside_the_others(hub, tmp_path):
    with Prefetch(
        opened(hub, tmp_path).control(), STEPS[1:], max_revisions=1
    ) as prefetch:
        for step in prefetch.steps:
            with prefetch.use(step) as checkpoint:
                checkpoint.model()
    assert hub.calls["get"] == len(STEPS)


@pytest.mark.parametrize("kind", ["line", "shuffled"])
def test_kinds_that_read_everything_need_it_on_disk(hub, tmp_path, kind):
    control = opened(hub, tmp_path).control(kind)
    with (
        Prefetch(control, max_revisions=2) as prefetch,
        prefetch.use(3) as checkpoint,
        pytest.raises(
            CheckpointError, match=r"would be fetched again .* download all first"
        ),
    ):
        checkpoint.model()
    list(download(control))
    with Prefetch(control, max_revisions=2) as prefetch, prefetch.use(3) as checkpoint:
        assert same(tensors(checkpoint), expected(kind)[3])


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", ["turned", "walk"])
def test_threads_that_read_at_once_wait_for_one_another(hub, tmp_path, kind):
    control, there = opened(hub, tmp_path).control(kind), expected(kind)
    with Prefetch(control, [], max_revisions=2) as prefetch:
        trajectory = prefetch.trajectory
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda step: tensors(trajectory[step]), STEPS * 2))
        assert all(
            same(t, there[step]) for t, step in zip(found, STEPS * 2, strict=True)
        )
    assert snapshots(tmp_path) == set()


@pytest.mark.usefixtures("fresh")
def test_processes_that_read_at_once_keep_to_the_bound(hub, tmp_path):
    control = opened(hub, tmp_path).control()
    pool = warm_context().Pool(2)
    with Prefetch(control, [], max_revisions=2) as prefetch, pool:
        tasks = [(prefetch.trajectory, tmp_path, step) for step in STEPS]
        assert max(pool.starmap(hub_readers.read, tasks)) <= 2
    assert snapshots(tmp_path) == set()


def test_a_transformers_model_in_shards_has_the_tensors_of_the_control(tmp_path):
    revisions = {
        f"step{s}": model_files(neox(s), tmp_path / str(s), shard="20KB")
        for s in (0, 1, 2)
    }
    with StandIn({REPO: revisions}) as hub:
        control = opened(hub, tmp_path / "cache", model=None).control()
        module = control[2].model()
        there = tensors(control[2])
        assert torch.equal(module.lm_head.weight, there["embed_out.weight"])
        assert not torch.equal(module.lm_head.weight, neox(2).lm_head.weight)
        assert control[2].configuration() == control[0].configuration()
