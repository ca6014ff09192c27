"""Files that are written whole or not at all, and what a writer that was killed leaves."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .machine import has_ended, writer
from .renames import rename

_TEMPORARY = re.compile(r"\..+?\.(?:(?P<writer>[0-9a-f]{8}-\d+)\.)?[0-9a-f]{8}\.tmp")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, whole or not at all."""
    write_whole(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` whole or not at all: under a temporary name, flushed, renamed.

    Whoever is killed meanwhile leaves the temporary file; see `sweep`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "page.html"
    >>> write_whole(path, b"<p>")
    >>> [p.name for p in path.parent.iterdir()]
    ['page.html']
    """
    with writing_whole(path) as half:
        half.write_bytes(content)


@contextmanager
def writing_whole(path: Path) -> Iterator[Path]:
    """Give the temporary path to write to, which is flushed and renamed to `path` afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = temporary(path)
    try:
        with naming(path):
            yield half
            with half.open("rb+") as file:
                os.fsync(file.fileno())
            rename(half, path)
    finally:
        half.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in the system's errors: of a full disk, writes name no file."""
    try:
        yield
    except Exception as error:  # safetensors has an error of its own
        number = getattr(error, "errno", None) or re.search(
            r"os error (\d+)\)", str(error)
        )
        if not number:
            raise
        code = number if isinstance(number, int) else int(number[1])
        raise OSError(code, os.strerror(code), str(path)) from error


def temporary(path: Path) -> Path:
    """Return a new name beside `path` for what is on its way there; see `sweep`."""
    return path.with_name(f".{path.name}.{writer()}.{uuid.uuid4().hex[:8]}.tmp")


def sweep(folder: Path, *patterns: str) -> list[Path]:
    """Delete temporary files and folders whose writers have surely ended, and return them.

    `patterns` are globs under `folder`; by default the files that lie in it.
    That is so where the writer was a process of this machine that is gone, or the file has not
    changed for a week; a file that a process of another machine may still be writing is kept.

    Examples
    --------
    >>> import tempfile
    >>> sweep(Path(tempfile.mkdtemp()))
    []
    """
    swept = []
    found = map(folder.glob, patterns or (".*.tmp",))
    for path in list(itertools.chain.from_iterable(found)):
        name = _TEMPORARY.fullmatch(path.name)
        try:
            if name is not None and has_ended(path, name["writer"]):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                swept.append(path)
        except OSError:  # its writer has just finished, or it is not ours to delete
            continue
    return swept
