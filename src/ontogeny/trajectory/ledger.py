"""A list of the files that this process fetches into a Hub cache, kept beside the cache's locks."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from threading import RLock
from types import TracebackType

from filelock import FileLock, Timeout

from .eviction import delete_files

__all__ = ["Ledger"]

_FOLDER = Path(".locks", "ontogeny")  # huggingface_hub passes over .locks when it scans a cache


class Ledger:
    """Which files are ours, on disk before they are fetched.

    While it is open its lock is held; the system frees the lock when the process dies, however
    it dies. A ledger whose lock is free belongs to a dead process: its files are deleted.

    Parameters
    ----------
    cache
        Folder of the Hub cache.
    """

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self._folder = cache / _FOLDER
        self._path = self._folder / f"{uuid.uuid4().hex}.json"
        self._lock = FileLock(self._path.with_suffix(".lock"))
        self._guard = RLock()
        self._entries: dict[Path, dict[str, str]] = {}

    def __enter__(self) -> Ledger:
        """Take the lock, and delete what dead processes left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        for path in sorted(self._folder.glob("*.json")):
            if path != self._path:
                _clear(self.cache, path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the lock back; the file stays if it still lists anything."""
        if not self._entries:
            self._path.unlink(missing_ok=True)
        self._lock.release()
        if not self._entries:
            Path(self._lock.lock_file).unlink(missing_ok=True)

    def entries(self) -> dict[Path, dict[str, str]]:
        """Return ``{snapshot folder: {file name: digest}}``."""
        with self._guard:
            return {folder: dict(files) for folder, files in self._entries.items()}

    def add(self, folder: Path, name: str, digest: str) -> None:
        """List a file."""
        with self._guard:
            self._entries.setdefault(folder, {})[name] = digest
            self._write()

    def remove(self, folder: Path) -> None:
        """Take a snapshot folder off the list."""
        with self._guard:
            self._entries.pop(folder, None)
            self._write()

    def _write(self) -> None:
        content = {str(folder): files for folder, files in self._entries.items()}
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(self._path)


def _clear(cache: Path, path: Path) -> None:
    """Delete what the ledger at `path` lists if the process that wrote it is dead."""
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        for folder, files in entries.items():
            if Path(folder).is_relative_to(cache):
                delete_files(cache, Path(folder), files)
        path.unlink()
    except (OSError, ValueError, AttributeError):
        return  # another process was faster, or the file is damaged and says nothing
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)
