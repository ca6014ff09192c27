"""What there is to name on the command line, kept in a file: without it, torch would be loaded.

A shell asks for it at every press of the tab key. The file is made anew where a file of this
library, or of a package that adds observables to it, has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from .._version import __version__

Catalogue = Mapping[str, Mapping[str, tuple[str, str]]]
"""``{what: {name: (line, help)}}``: the line of a list, and what help says."""
PACKAGES = {"observables": "observables", "extractors": "concepts", "distances": "distances"}


@cache
def catalogue() -> Catalogue:
    """Return observables, extractors, distances and presets."""
    path, stamp = place(), _stamp()
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        groups = json.loads(path.read_text(encoding="utf-8"))
        if groups["stamp"] == stamp:
            return groups["content"]
    from ..store import write_whole
    from .descriptions import described

    content = described(PACKAGES)
    with contextlib.suppress(OSError):  # a machine without a place to write is slow, no more
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"stamp": stamp, "content": content}).encode())
    return content


def place() -> Path:
    """Return the file."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(folder).expanduser() / "ontogeny" / "catalogue.json"


def _stamp() -> str:
    """Return what changes with whatever the catalogue is made of."""
    entries = entry_points(group="ontogeny.observables")
    packages = {__package__.partition(".")[0], *(e.module.partition(".")[0] for e in entries)}
    files = sorted(file for name in packages for file in _files(name))
    digest = hashlib.sha256(repr(files).encode()).hexdigest()
    return json.dumps([__version__, sorted((e.name, e.value) for e in entries), digest])


def _files(package: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of the modules of a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return
    roots = spec.submodule_search_locations or ()
    files = [file for root in roots for file in Path(root).rglob("*.py")]
    if not files and spec.has_location and spec.origin:  # a module of one file
        files = [Path(spec.origin)]
    for file in files:
        stat = file.stat()
        yield str(file), stat.st_size, stat.st_mtime_ns
