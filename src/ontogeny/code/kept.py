"""What was found of code, kept in a file for other processes: finding it takes seconds."""

from __future__ import annotations

import atexit
import hashlib
import json
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..machine import cache_folder
from ..whole_files import write_whole
from .modules import digest_of
from .source import Source, read_source

_READERS = Path(__file__).parent  # any of its files may change what is found
_SECONDS = 5.0  # between two writes, each of which takes up to half a second
_MOST = 6000  # entries: files, and what was found of classes


class Kept:
    """What was found of files and of classes, by keys that change with what it follows from."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._new: dict[str, str] = {}
        self._saved = time.monotonic()
        atexit.register(self.save)

    def source(self, path: str) -> Source:
        """Return what a file defines; it is read once as long as its content is the same.

        Examples
        --------
        >>> "Kept" in Kept().source(__file__).bases
        True
        """
        key = f"source {digest_of(path)}"
        if key not in self._sources:
            content = self.get(key)
            if content is None:
                source = read_source(Path(path).read_bytes())
                self.put(key, source.as_json())
            self._sources[key] = Source.of_json(content) if content else source
        return self._sources[key]

    def get(self, key: str) -> Any:
        """Return what is kept under a key, as plain data; None if nothing is."""
        text = self._new.get(key) or _kept().get(key)
        return None if text is None else json.loads(text)

    def put(self, key: str, value: Any) -> None:
        """Keep plain data under a key, for other processes too: now and then all is written."""
        self._new[key] = json.dumps(value)
        if time.monotonic() - self._saved > _SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is new."""
        if not self._new:
            return
        _kept.cache_clear()  # another process may have written since
        entries = dict([*{**_kept(), **self._new}.items()][-_MOST:])
        content = {"reader": _reader(), "entries": entries, "seal": _seal(entries)}
        with suppress(OSError):  # a machine without a place to write is slow, no more
            write_whole(_place(), json.dumps(content).encode())
            _kept.cache_clear()
            self._new = {}
        self._saved = time.monotonic()


def _place() -> Path:
    return cache_folder() / "code.json"


@cache
def _kept() -> dict[str, str]:
    """Return what is kept, as JSON by the digest of a file's content; nothing if it is damaged."""
    with suppress(Exception):
        content = json.loads(_place().read_bytes())
        if content["reader"] == _reader() and content["seal"] == _seal(
            content["entries"]
        ):
            return dict(content["entries"])
    return {}


def _seal(entries: dict[str, str]) -> str:
    text = "\n".join(f"{key} {value}" for key, value in entries.items())
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def _reader() -> str:
    """Return what tells this way of reading from another: its code, and Python's syntax."""
    files = [digest_of(str(path)) for path in sorted(_READERS.glob("*.py"))]
    return f"{files} {sys.version_info[:2]}"
