"""Checksums of a merged result, so that damage never passes as data.

Zarr reads a missing chunk as fill values, NaN for most variables, and its checksums do not cover
metadata; so every file is listed with its size and digest in one more file of the store.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import Any

from ...errors import StoreError
from ...store import write_json

_NAME = ".checksums.json"


def write_checksums(store: Path, written: Mapping[str, bytes] | None = None) -> None:
    """Write the digests of all files of `store` into it; those just `written` are not read."""
    files = sorted(p for p in store.rglob("*") if p.is_file() and p.name != _NAME)
    names = [path.relative_to(store).as_posix() for path in files]
    entries = {name: _entry(store / name, (written or {}).get(name)) for name in names}
    # A digest of the list itself tells a flipped bit in the list from one in a file.
    write_json(store / _NAME, {"files": entries, "digest": _digest_of(entries)})


def identity(store: Path) -> tuple[int, int, int] | None:
    """Return what tells this store from another one at the same path; None without checksums."""
    try:
        stat = (store / _NAME).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def check_files(store: Path, *, chunks: bool) -> Mapping[str, Any]:
    """Check that every file of `store` is there and has its size; return what is known of each.

    The content of metadata is checked as well, that of `chunks` only if asked for: they are most
    of the bytes (see `check_unchanged`).

    Raises
    ------
    StoreError
        If a file is missing or changed, or the list itself is; the message names the file and the
        variable it belongs to, and says what to do.

    Examples
    --------
    >>> import tempfile
    >>> store = Path(tempfile.mkdtemp())
    >>> _ = (store / "0").write_bytes(b"chunk")
    >>> write_checksums(store)
    >>> check_files(store, chunks=True)["0"]["bytes"]
    5
    """
    entries = _entries(store)
    wrong = [
        (name, fault)
        for name, entry in entries.items()
        if (fault := _fault(store / name, entry, chunks or Path(name).name.startswith(".")))
    ]
    if wrong:
        raise _damaged(store, *wrong[0], len(wrong))
    return entries


def check_unchanged(store: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Check the content of one file.

    Raises
    ------
    StoreError
        If it is missing or changed.
    """
    if fault := _fault(store / name, entry, True):
        raise _damaged(store, name, fault, 1)


def check_listed(store: Path) -> None:
    """Check every file by the list of checksums, and that no other file is there.

    Raises
    ------
    StoreError
        If a file is missing, changed, or not in the list.
    """
    listed = check_files(store, chunks=True)
    files = {p.relative_to(store).as_posix() for p in store.rglob("*") if p.is_file()}
    if unlisted := sorted(files - set(listed) - {_NAME}):
        raise StoreError(f"it holds a file that its list does not name: {unlisted[0]!r}.")


def _damaged(store: Path, name: str, fault: str, count: int) -> StoreError:
    others = f" (of {count} files that are not as they were written)" if count > 1 else ""
    return StoreError(
        f"{store} is damaged or was edited: {name}{_variable(name)} {fault}{others}. {_mend(store)}"
    )


def _entries(store: Path) -> Mapping[str, Any]:
    path = store / _NAME
    try:
        content = json.loads(path.read_bytes())
        entries = content["files"]
        whole = content["digest"] == _digest_of(entries)
    except FileNotFoundError:
        raise StoreError(
            f"{store} has no {_NAME}, so damage to it cannot be found. {_mend(store)}"
        ) from None
    except (ValueError, LookupError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise StoreError(f"{store} is damaged: {_NAME} is not as it was written. {_mend(store)}")
    return entries


def _mend(store: Path) -> str:
    """Return what to do; the command alone would write to another folder."""
    return (
        "Run the study into this folder again (`ontogeny run STUDY.toml --output "
        f"{shlex.quote(str(store.parent))}`, or Study.run): it merges the cells that still hold."
    )


def _fault(path: Path, entry: Mapping[str, Any], content: bool) -> str:
    if not path.is_file():
        return "is missing"
    size = path.stat().st_size
    if size != entry["bytes"]:
        return f"has {size} bytes instead of {entry['bytes']}"
    return "" if not content or _entry(path) == entry else "is not as it was written"


def _entry(path: Path, content: bytes | None = None) -> dict[str, Any]:
    with path.open("rb") if content is None else BytesIO(content) as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        return {"bytes": file.seek(0, SEEK_END), "blake2b": digest.hexdigest()}


def _digest_of(entries: Mapping[str, Any]) -> str:
    text = json.dumps(entries, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _variable(name: str) -> str:
    """Return which variable a file of the store belongs to, where it is one of a variable."""
    parts = name.split("/")
    return f" (variable {parts[1]!r} of {parts[0]!r})" if len(parts) == 3 else ""
