"""A merged result as one file, as it is shared."""

from __future__ import annotations

import zipfile
from pathlib import Path

from ...errors import StoreError

ARCHIVE = "result.zarr.zip"
# One date for all files, the first that ZIP knows, so that equal results are equal archives.
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def pack(store: Path, archive: Path) -> None:
    """Write the files of `store` into one archive; equal files give equal archives.

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
            file.writestr(zipfile.ZipInfo(name, _EARLIEST), files[name].read_bytes())


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive into a folder; zipfile keeps them in it whatever their names.

    Raises
    ------
    StoreError
        If it is damaged or no archive.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
    except (zipfile.BadZipFile, RuntimeError, EOFError, ValueError) as error:
        raise StoreError(f"{archive.name} is damaged or no archive: {error}") from error
