"""A Hub cache that belongs to another user: what is there is used, what cannot be is said."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from torch import nn

from helpers.hub_models import REPO, linear_files
from helpers.hub_server import StandIn
from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory import Prefetch
from ontogeny.trajectory.hub import listings

FIRST, SECOND = linear_files(0), linear_files(1)
REVISIONS = {"step0": FIRST, "step1": SECOND, "step2": SECOND}


@pytest.fixture
def hub():
    with StandIn({REPO: REVISIONS}) as server:
        yield server


@pytest.fixture
def cache():
    """A folder that a user who is not root may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def without_rights(*paths):
    """Take the right to write to paths away, also from root, which has it everywhere."""
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0)
    is_root = os.geteuid() == 0
    listings._listing.cache_clear()  # as in another process
    try:
        if is_root:
            os.seteuid(65534)
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


def opened(hub, cache):
    options = {"cache_dir": cache, "endpoint": hub.url, "token": False}
    return Trajectory.from_hub(REPO, model=nn.Linear(3, 2), **options)


def test_what_another_user_has_fetched_is_read_also_by_a_name_that_was_not(hub, cache):
    trajectory = opened(hub, cache)
    for step in (0, 1):
        trajectory[step].model()
    with without_rights(
        *(path for path in [cache, *cache.rglob("*")] if path.is_dir())
    ):
        again = opened(hub, cache)
        weights = [again[step].model().weight for step in (1, 2)]
    assert weights[0].equal(weights[1])


def test_what_another_user_has_not_fetched_is_said_with_its_place(hub, cache):
    opened(hub, cache)[0].model()
    with without_rights(
        *(path for path in [cache, *cache.rglob("*")] if path.is_dir())
    ):
        again = opened(hub, cache)
        with pytest.raises(
            CheckpointError, match=rf"step1 .*[Pp]ermission denied.*{cache}"
        ):
            again[1].model()
        said = r"cannot be written to \(Perm.*HF_HUB_CACHE"
        with (
            pytest.raises(CheckpointError, match=said),
            Prefetch(again, max_revisions=2),
        ):
            pass


def test_the_bounded_revisions_of_another_user_are_left_alone(hub, cache):
    parent = cache / ".locks" / "ontogeny"
    killed = parent / ("a" * 32)
    killed.mkdir(parents=True)
    for folder in (parent, parent.parent):
        folder.chmod(0o777)
    lock = killed.with_suffix(".lock")
    lock.touch()
    with (
        without_rights(lock),
        Prefetch(opened(hub, cache), max_revisions=2) as prefetch,
        prefetch.use(1) as checkpoint,
    ):
        assert checkpoint.model().weight.shape == (2, 3)
    assert killed.exists()
    with FileLock(lock), Prefetch(opened(hub, cache), []):
        assert killed.exists(), "it is in use"
    with Prefetch(opened(hub, cache), []):
        assert not killed.exists()
