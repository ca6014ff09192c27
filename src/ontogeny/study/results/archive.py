"""A merged result as one file and back: one download instead of thousands.

The archive holds the files of ``result.zarr`` as they are. None is compressed again, so Zarr reads
it in place, and an archive cannot unpack to more than its own size.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path, PureWindowsPath

from ...errors import StoreError

ARCHIVE = "result.zarr.zip"
# One date for all files, the first that ZIP knows, so that equal results are equal archives.
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_MOST_FILES = 200_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def pack(store: Path, archive: Path) -> None:
    """Write the files of `store` into one archive; equal files give equal archives.

    Raises
    ------
    StoreError
        If a file is named in a way that `unpack` refuses.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "store").mkdir()
    >>> _ = (folder / "store" / "0").write_bytes(b"chunk")
    >>> pack(folder / "store", folder / "a.zip")
    >>> unpack(folder / "a.zip", folder / "copy")
    >>> (folder / "copy" / "0").read_bytes()
    b'chunk'
    """
    files = {p.relative_to(store).as_posix(): p for p in store.rglob("*") if p.is_file()}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name in sorted(files):
            _check_name(archive, name)
            file.writestr(zipfile.ZipInfo(name, _EARLIEST), files[name].read_bytes())


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive that anybody may have made into a new folder.

    Raises
    ------
    StoreError
        If it is no archive of this kind, is damaged, names a file outside of the folder or one
        file twice, or claims to hold more than its own size.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            entries = file.infolist()
            _check_entries(archive, entries)
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(entry) as source, target.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
    except StoreError:
        raise
    # Of an unknown compression zipfile raises a NotImplementedError, of an encrypted entry a
    # RuntimeError: both are a RuntimeError.
    except (zipfile.BadZipFile, RuntimeError, EOFError, OSError, ValueError) as error:
        raise StoreError(f"{archive.name} is damaged or no archive: {error}") from error


def _check_entries(archive: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > _MOST_FILES:
        raise StoreError(
            f"{archive.name} holds {len(entries):,} files; at most {_MOST_FILES:,} are unpacked."
        )
    seen: set[str] = set()
    for entry in entries:
        _check_name(archive, entry.filename)
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise StoreError(f"{archive.name}: {entry.filename!r} is compressed or encrypted.")
        if entry.filename.casefold() in seen:
            raise StoreError(f"{archive.name} names {entry.filename!r} twice.")
        seen.add(entry.filename.casefold())
    if sum(entry.file_size for entry in entries) > archive.stat().st_size:
        raise StoreError(f"{archive.name} claims to hold more than its own size.")


def _check_name(archive: Path, name: str) -> None:
    """Check that a name stays in its folder, on every system."""
    for part in name.split("/"):
        outside = part in ("", ".", "..") or "\\" in part or PureWindowsPath(part).drive
        if outside or _CONTROL.search(part) or len(part.encode()) > 255:
            raise StoreError(f"{archive.name} names a file {name!r}, which is not allowed.")
