"""Whether a stored cell is what would be computed today, and the digests that tell it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, StoreError
from ..store import Cell, difference, plain, read_cell, write_json
from ..trajectory import Checkpoint


def check_cache(
    path: Path | None,
    fingerprint: Mapping[str, Any],
    read: Callable[[Path], Cell] = read_cell,
    ignored: Iterable[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return the outcome of what is stored at `path`, and why.

    ``"done"``, ``"new"``, ``"stale"`` (it is of something else, or damaged) or ``"retry"`` (it was
    missing or had failed). `ignored` are arguments that cells of earlier versions may name.
    """
    if path is None or not path.exists():
        return "new", ()
    try:
        stored = read(path)
    except StoreError as error:
        return "stale", (str(error),)
    changed = difference(_without(stored.fingerprint, ignored), plain(fingerprint))
    if changed:
        return "stale", tuple(changed)
    if stored.status != "done" or _failed_layers(stored.data):
        return "retry", (stored.status,)
    return "done", ()


def _without(fingerprint: Mapping[str, Any], ignored: Iterable[str]) -> Mapping[str, Any]:
    observable = fingerprint.get("observable")
    if not ignored or not isinstance(observable, Mapping):
        return fingerprint
    kept = {k: v for k, v in observable.get("arguments", {}).items() if k not in ignored}
    return {**fingerprint, "observable": {**observable, "arguments": kept}}


def _failed_layers(data: Any) -> bool:
    status = data.get("status")
    return status is not None and bool((status != "done").any())


class VerifiedCellCache:
    """Reads cells and computes the checksum of each file once, as long as the file stays.

    A file that has been replaced or written to since is checked again.

    Examples
    --------
    >>> import tempfile, xarray
    >>> from ontogeny.store import write_cell
    >>> path = Path(tempfile.mkdtemp()) / "8.safetensors"
    >>> _ = write_cell(path, Cell(xarray.Dataset({"loss": 4.25})))
    >>> read = VerifiedCellCache()
    >>> read(path).status, read(path).status
    ('done', 'done')
    """

    def __init__(self) -> None:
        self._verified: dict[Path, tuple[int, int, int]] = {}

    def __call__(self, path: Path) -> Cell:
        """Return the cell at `path`.

        Raises
        ------
        StoreError
            If there is none, or it is damaged.
        """
        try:
            stat = path.stat()
        except OSError as error:
            raise StoreError(f"{path} is not a readable cell: {error}") from error
        mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        cell = read_cell(path, verify=self._verified.get(path) != mark)
        self._verified[path] = mark
        return cell


def combine(digests: Mapping[str, str], names: Iterable[str] | None = None) -> str:
    """Return one digest for the tensors `names` (all by default).

    Examples
    --------
    >>> combine({"a": "1", "b": "2"}, ["a"]) == combine({"a": "1", "b": "3"}, ["a"])
    True
    """
    chosen = digests if names is None else {n: digests[n] for n in names if n in digests}
    text = json.dumps(sorted(chosen.items()))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class DigestCache:
    """Tensor digests of checkpoints, remembered in a study folder by file name, size and time."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        self._changed = False
        if path is not None and path.exists():
            try:
                known = json.loads(path.read_text())
                self._known = known if isinstance(known, dict) else {}
            except ValueError:  # a damaged cache costs time, never a result
                self._known = {}

    def __call__(self, checkpoint: Checkpoint, names: Iterable[str] | None = None) -> str:
        """Return one digest of the tensors `names` of a checkpoint, or of all its weights.

        A Hub revision is known by its files' digests, without a download: of all its weights.

        Raises
        ------
        CheckpointError
            If the checkpoint cannot be read.
        """
        if checkpoint.file_digests() is not None:
            return checkpoint.fingerprint
        return combine(self._tensors(checkpoint), names)

    def whole(self, checkpoint: Checkpoint) -> str:
        """Return one digest of all weights of a checkpoint, or ``"unreadable"``.

        What was tried and could not be read is part of what a state depends on, too.
        """
        try:
            return self(checkpoint)
        except CheckpointError:
            return "unreadable"

    def _tensors(self, checkpoint: Checkpoint) -> Mapping[str, str]:
        if checkpoint.derived is not None:
            return checkpoint.derived.digests(self._tensors)
        if checkpoint.path is None:
            return checkpoint.digests()
        try:
            signature = _signature(checkpoint.path)
        except OSError as error:  # deleted since the trajectory was opened
            raise CheckpointError(f"{checkpoint.label} cannot be listed: {error}") from None
        entry = self._known.get(str(checkpoint.path))
        if entry is None or entry["files"] != signature:
            entry = {"files": signature, "tensors": checkpoint.digests()}
            self._known[str(checkpoint.path)] = entry
            self._changed = True
        return entry["tensors"]

    def save(self) -> None:
        """Write the digests that are new."""
        if self._path is not None and self._changed:
            write_json(self._path, self._known)
            self._changed = False


def _signature(folder: Path) -> list[list[Any]]:
    files = sorted(p for p in folder.iterdir() if p.suffix in {".safetensors", ".bin", ".json"})
    return [[p.name, s.st_size, s.st_mtime_ns] for p in files for s in [p.stat()]]
