"""Digests of weights, kept on disk so that a checkpoint's bytes are hashed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..store import write_json
from ..trajectory import Checkpoint

__all__ = ["DigestCache", "combine", "whole_digest"]


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


def whole_digest(checkpoint: Checkpoint, cache: DigestCache | None = None) -> str:
    """Return one digest of all weights of a checkpoint, or ``"unreadable"``.

    What was tried and could not be read is part of what a state depends on, too.
    """
    try:
        return (cache or DigestCache(None))(checkpoint)
    except CheckpointError:
        return "unreadable"


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

    def _tensors(self, checkpoint: Checkpoint) -> Mapping[str, str]:
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
        """Write what was learned."""
        if self._path is not None and self._changed:
            write_json(self._path, self._known)
            self._changed = False


def _signature(folder: Path) -> list[list[Any]]:
    files = sorted(p for p in folder.iterdir() if p.suffix in {".safetensors", ".bin", ".json"})
    return [[p.name, s.st_size, s.st_mtime_ns] for p in files for s in [p.stat()]]
