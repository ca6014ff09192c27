"""A list of the files that this process fetches into a Hub cache, kept beside the cache's locks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
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
    it dies. A ledger whose lock is free belongs to a dead process: its files are deleted. What
    several living processes list is deleted by the last of them.

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
        self._changing = FileLock(self._folder.with_suffix(".lock"))
        self._guard = RLock()
        self._entries: dict[Path, dict[str, str]] = {}

    def __enter__(self) -> Ledger:
        """Take the lock, and delete what dead processes left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        for path in self._other_ledgers():
            self._clear(path)
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
        """List a file that is about to be fetched, after what another process may be deleting."""
        with self._changing, self._guard:
            folder.mkdir(parents=True, exist_ok=True)  # so its repository is not deleted as empty
            self._entries.setdefault(folder, {})[name] = digest
            self._write()

    def share(self, folder: Path) -> None:
        """List what other living processes have fetched of a snapshot that is now used here."""
        with self._changing, self._guard:
            found = [entries[folder] for entries in self._others() if folder in entries]
            if found:
                mine = self._entries.setdefault(folder, {})
                for files in found:
                    mine.update({name: d for name, d in files.items() if (folder / name).exists()})
                self._write()

    def delete(self, folder: Path) -> None:
        """Delete the files listed of a snapshot folder, but those that others list too."""
        with self._changing, self._guard:
            files = self._entries.pop(folder, None)
            if files:
                self._delete(folder, files)
                self._write()

    def _delete(self, folder: Path, files: Mapping[str, str], dead: Path | None = None) -> None:
        """Delete files that no other living process lists; `dead` is a ledger of none."""
        theirs = {name for entries in self._others(dead) for name in entries.get(folder, ())}
        left = {name: digest for name, digest in files.items() if name not in theirs}
        if left:
            delete_files(self.cache, folder, left)

    def _other_ledgers(self) -> list[Path]:
        return [p for p in sorted(self._folder.glob("*.json")) if p != self._path]

    def _others(self, dead: Path | None = None) -> list[dict[Path, dict[str, str]]]:
        """Return what the ledgers of other living processes list."""
        found = []
        for path in self._other_ledgers():
            if path == dead:
                continue
            lock = FileLock(path.with_suffix(".lock"))
            try:
                lock.acquire(timeout=0)
                lock.release()
            except Timeout:
                found.append(_read(path))
        return found

    def _clear(self, path: Path) -> None:
        """Delete what the ledger at `path` lists if the process that wrote it is dead."""
        lock = FileLock(path.with_suffix(".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return
        try:
            with self._changing:
                for folder, files in _read(path).items():
                    if folder.is_relative_to(self.cache):
                        self._delete(folder, files, path)
                path.unlink(missing_ok=True)
        finally:
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)

    def _write(self) -> None:
        content = {str(folder): files for folder, files in self._entries.items()}
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(self._path)


def _read(path: Path) -> dict[Path, dict[str, str]]:
    """Return the entries of a ledger; a damaged one, or one that has just gone, says nothing."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {Path(folder): dict(files) for folder, files in content.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
