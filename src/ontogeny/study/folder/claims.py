"""Claims on tasks: which of the processes that share a study folder does what.

A claim is a small file that is made only if it is not there yet. Shared file systems do that as one
step, also where their locks hold within one machine only. Its holder touches it while it works; the
claim of a process that has ended, or one that was not touched for two minutes, is taken over. Only
work depends on it: two processes that compute the same cell write the same bits.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import StoreError
from ...machine import is_gone, writer
from ...whole_files import temporary
from .layout import claim_path

_BEAT = 20.0  # seconds between two touches
_STALE = 120.0  # seconds without a touch; more than clocks of one cluster differ
_AHEAD = -3600.0  # a touch so far in the future was made before a clock was set back
_UNWRITTEN = 10.0  # seconds in which a claim that has been made is written
_POLL = 0.2  # seconds
_NOBODY = {"process": "?", "machine": "another machine"}


@contextmanager
def claimed(
    folder: Path, task: str, notes: Mapping[str, Any] | None = None
) -> Iterator[bool]:
    """Hold the claim on a task of a study; give False at once where another one holds it.

    `notes` are written into it for others to read (see `claims_of`).

    Raises
    ------
    StoreError
        If the folder of the study is not there (any more).

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with claimed(folder, "step 8") as ours, claimed(folder, "step 8") as again:
    ...     ours, again
    (True, False)
    """
    path = claim_path(folder, task)
    token = uuid.uuid4().hex[:8]
    if not _take(path, {**(notes or {}), **_claim(token)}):
        yield False
        return
    done = threading.Event()
    pulse = threading.Thread(
        target=_touch, args=(path, done), name="claim", daemon=True
    )
    pulse.start()
    try:
        yield True
    finally:
        done.set()
        pulse.join()
        if _read(path).get("token") == token:  # else it was taken over meanwhile
            path.unlink(missing_ok=True)


@contextmanager
def held(folder: Path, task: str) -> Iterator[None]:
    """Hold the claim on what takes moments; wait while another one holds it."""
    while True:
        with claimed(folder, task) as ours:
            if ours:
                yield
                return
        time.sleep(_POLL)


def holder(folder: Path, task: str) -> str:
    """Return who holds the claim on a task; empty where no running process does."""
    path = claim_path(folder, task)
    claim = _read(path)
    return (
        f"process {claim['process']} on {claim['machine']}"
        if claim and _alive(claim)
        else ""
    )


def is_abandoned(folder: Path, task: str) -> bool:
    """Return whether a process of this machine died while it held the claim on a task."""
    claim = _read(claim_path(folder, task))
    return "writer" in claim and is_gone(claim["writer"])


def claims_of(folder: Path, prefix: str) -> list[dict[str, Any]]:
    """Return the claims that running processes hold on tasks whose names begin with `prefix`."""
    paths = claim_path(folder, "").parent.glob(f"{prefix}*.json")
    claims = [_read(path) for path in paths]
    return [claim for claim in claims if claim and _alive(claim)]


def sweep_claims(folder: Path) -> None:
    """Remove the claims of processes that have ended."""
    for path in claim_path(folder, "").parent.glob("*.json"):
        claim = _read(path)
        if claim and not _alive(claim):
            _remove_stale(path)


def _take(path: Path, claim_of_ours: Mapping[str, Any]) -> bool:
    for _ in range(3):
        try:
            path.parent.mkdir(exist_ok=True)
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileNotFoundError:
            raise StoreError(gone(path.parents[1])) from None
        except FileExistsError:
            claim = _read(path)
            if _alive(claim):
                return False
            if claim:  # else its holder has just released it
                _remove_stale(path)
            continue
        with os.fdopen(file, "w") as writing:
            writing.write(json.dumps(claim_of_ours))
        return True
    return False


def gone(folder: Path) -> str:
    """Return what is said of a folder that was moved while a run was using it."""
    return (
        f"{folder} is gone: it was moved or deleted while a run was using it. Finished cells are "
        "in it; run the study again with the path that it has now."
    )


def _claim(token: str) -> dict[str, Any]:
    return {
        "token": token,
        "writer": writer(),
        "process": os.getpid(),
        "machine": socket.gethostname(),
    }


def _read(path: Path) -> dict[str, Any]:
    """Return a claim with the seconds since it was touched; empty where there is none."""
    try:
        with path.open() as file:  # opened, as network file systems then look again
            text = file.read()
            age = time.time() - os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return {}
    try:
        claim = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        # Just made, or its maker has ended meanwhile.
        claim = {}
    whole = isinstance(claim.get("writer"), str) and isinstance(
        claim.get("identity", {}), dict
    )
    return {**_NOBODY, **(claim if whole else {}), "age": age}


def _alive(claim: dict[str, Any]) -> bool:
    if "writer" not in claim:
        return bool(claim) and _AHEAD < claim["age"] < _UNWRITTEN
    return _AHEAD < claim["age"] < _STALE and not is_gone(claim["writer"])


def _remove_stale(path: Path) -> None:
    """Delete the claim of a process that has ended, unless another one has just taken it."""
    aside = temporary(path)
    try:
        path.rename(aside)
        if _alive(_read(aside)):
            aside.rename(path)
        else:
            aside.unlink()
    except FileNotFoundError:
        return


def _touch(path: Path, done: threading.Event) -> None:
    while not done.wait(_BEAT):
        try:
            os.utime(path)
        except FileNotFoundError:  # taken over: this process was thought to have ended
            return
        except OSError:  # a file system that does not answer may do so again
            continue
