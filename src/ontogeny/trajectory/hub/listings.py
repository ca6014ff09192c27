"""What the commits of a repository hold, asked for once and then kept beside the Hub cache.

A commit never changes, so that a listing is asked for once, whichever process needs it.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from ...errors import CheckpointError

_FOLDER = ".locks/ontogeny-listings"  # huggingface_hub passes over .locks when it scans a cache
_DIGEST = re.compile(r"[0-9a-f]{40,64}")  # it becomes a path in the cache
_locks: dict[tuple[object, ...], threading.Lock] = {}
_guard = threading.Lock()


@dataclass(frozen=True)
class HubFile:
    """Size in bytes and digest of one file: SHA-256 of large files, git's blob id of small ones."""

    size: int
    digest: str


def listed(place: Path, *key: Any) -> dict[str, HubFile]:
    """Return the listing of a commit; threads that ask for the same one wait for one call.

    `place` is where it is kept, `key` the repository, commit, endpoint and token.
    """
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        return _listing(place, *key)


def listing_path(
    cache: Path, repository: str, commit: str, endpoint: str | None
) -> Path:
    """Return where the listing of a commit is kept; each endpoint has listings of its own."""
    from huggingface_hub import constants

    host = (endpoint or constants.ENDPOINT).rstrip("/").rpartition("//")[2]
    safe = "".join(sign if sign.isalnum() or sign in ".-" else "_" for sign in host)
    return cache / _FOLDER / safe / repository / f"{commit}.json"


@contextmanager
def asking(folder: Path) -> Iterator[None]:
    """Let one process after another ask for what `folder` lacks; those that wait find it there."""
    with ExitStack() as stack:
        with suppress(OSError):  # of a cache that cannot be written to
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / ".lock"))
        yield


@functools.lru_cache(maxsize=4096)
def _listing(
    place: Path, repo: str, commit: str, endpoint: str | None, token: str | bool | None
) -> dict[str, HubFile]:
    if (recorded := _cached(place)) is not None:
        return recorded
    listing = _remote(repo, commit, endpoint, token)
    with suppress(OSError):  # of a cache that cannot be written to
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{uuid.uuid4().hex}")
        temporary.write_text(
            json.dumps({name: asdict(file) for name, file in listing.items()})
        )
        temporary.replace(place)
    return listing


def _cached(place: Path) -> dict[str, HubFile] | None:
    """Return a listing that was kept; None where there is none, or it is damaged or forged."""
    try:
        content = json.loads(place.read_bytes())
        files = {
            str(n): HubFile(int(f["size"]), str(f["digest"]))
            for n, f in content.items()
        }
        return _checked(str(place), files)  # a cache may be shared by several users
    except Exception:  # whatever somebody else has written there
        return None


def _remote(
    repo: str, commit: str, endpoint: str | None, token: str | bool | None
) -> dict[str, HubFile]:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    entries: Any = HfApi(endpoint=endpoint, token=token).list_repo_tree(
        repo, revision=commit
    )
    files = [entry for entry in entries if isinstance(entry, RepoFile)]
    listing = {
        f.path: HubFile(f.size, f.lfs.sha256 if f.lfs else f.blob_id) for f in files
    }
    return _checked(repo, listing)


def _checked(repo: str, listing: dict[str, HubFile]) -> dict[str, HubFile]:
    """Return a listing of which nothing leads out of the cache."""
    if outside := [name for name in listing if Path(name).name != name]:
        raise CheckpointError(
            f"{repo} lists a file outside its folder: {outside[0]!r}."
        )
    if odd := [f.digest for f in listing.values() if not _DIGEST.fullmatch(f.digest)]:
        raise CheckpointError(
            f"{repo} lists {odd[0]!r} as the digest of a file, which it is not."
        )
    return listing
