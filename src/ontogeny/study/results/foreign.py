"""What is checked of a result that somebody else has made, before any of it is read.

Zarr believes what its metadata say: how large an array is, and which code decodes its chunks. Of
every result only decoders are asked that cannot run code, whoever has made it and whatever the
installed numcodecs would do. Of one from the Hub only what ontogeny itself writes is accepted:
numbers and texts in chunks that are stored plainly or with Blosc.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from ...errors import StoreError
from ...machine import memory_of_this_machine

LARGEST = 4 * 2**30  # bytes that all arrays of a foreign result may claim together

_LARGEST_CHUNK = 2**29
METADATA = (".zarray", ".zattrs", ".zgroup")
_NUMBERS = re.compile(r"[<>|](?:b1|[iu][1248]|f[248]|[US]\d{1,6})")
_TEXTS = [{"id": "vlen-utf8"}]
_COMPRESSORS = ("blosc", "zstd", "lz4", "zlib", "gzip")  # by default of one Zarr or another
_BLOSC_HEADER = struct.Struct("<4BIII")  # four flags, bytes unpacked, bytes of a block, all bytes


def check_metadata(store: Path) -> Mapping[str, Any]:
    """Check what a merged result asks for and claims, and return its arrays; nothing is decoded.

    Raises
    ------
    StoreError
        If a decoder is not known to be harmless, the arrays claim more memory than this machine
        has, or the metadata cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import xarray as xr
    >>> store = Path(tempfile.mkdtemp()) / "result.zarr"
    >>> _ = xr.Dataset({"loss": 4.2}).to_zarr(store, zarr_format=2, consolidated=True)
    >>> list(check_metadata(store))
    ['loss']
    """
    memory = memory_of_this_machine() or LARGEST
    try:
        beside, listed = _metadata(store)
        _checked(beside, _COMPRESSORS, memory, "this machine has")
        return _checked(listed, _COMPRESSORS, memory, "this machine has")
    except StoreError as error:
        raise StoreError(f"{store} is not opened: {error}") from error


def check_foreign(store: Path) -> None:
    """Check the metadata and the chunk headers of a merged result that anybody may have made.

    Raises
    ------
    StoreError
        If an array is of another kind, claims more memory than is allowed, or a chunk of it
        unpacks to another size than the array says.

    Examples
    --------
    >>> import tempfile
    >>> import xarray as xr
    >>> store = Path(tempfile.mkdtemp()) / "result.zarr"
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, attrs={"title": "Tiny"})
    >>> _ = data.to_zarr(store, zarr_format=2, consolidated=True)
    >>> check_foreign(store)
    """
    beside, listed = _metadata(store)
    if beside != listed:
        raise StoreError("its metadata contradict each other.")
    arrays = _checked(listed, ("blosc",), LARGEST, "is opened from the Hub")
    for name, array in arrays.items():
        for path in sorted((store / name).iterdir()):
            if path.is_file() and path.name not in METADATA:
                check_chunk(f"{name}/{path.name}", path.read_bytes(), array)


def _checked(
    metadata: Mapping[str, Any], compressors: Sequence[str], largest: int, where: str
) -> Mapping[str, Any]:
    """Return the arrays that metadata describe, once they may be read."""
    arrays = dict(_arrays(metadata))
    total = sum(_check_array(name, array, compressors) for name, array in arrays.items())
    if total > largest:
        raise StoreError(
            f"its arrays claim {total / 1e9:.1f} GB of memory, more than the {largest / 1e9:.1f} "
            f"GB that {where}."
        )
    return arrays


def _metadata(store: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what lies beside the arrays, and the list of it that Zarr reads first."""
    try:
        listed = json.loads((store / ".zmetadata").read_bytes())["metadata"]
        files = metadata_files(store)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise StoreError(f"its metadata cannot be read: {error}") from error
    if not isinstance(listed, dict) or next(store.rglob("zarr.json"), None):
        raise StoreError("its metadata contradict each other.")
    return files, listed


def metadata_files(store: Path) -> dict[str, Any]:
    """Return what the metadata files of a Zarr store hold, by their names in it."""
    files = sorted(path for path in store.rglob(".z*") if path.name in METADATA)
    return {path.relative_to(store).as_posix(): json.loads(path.read_bytes()) for path in files}


def _arrays(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the metadata of each array."""
    for name, content in metadata.items():
        if name.endswith("/.zarray"):
            yield name.removesuffix("/.zarray"), content


def _check_array(name: str, array: Any, compressors: Sequence[str]) -> int:
    """Return how many bytes an array claims."""
    try:
        shape, chunks, dtype = array["shape"], array["chunks"], array["dtype"]
        sizes = [*shape, *chunks]
        plain = all(type(size) is int and 0 <= size < 2**40 for size in sizes)
        plain &= all(size > 0 for size in chunks)
        plain &= len(shape) == len(chunks) and array["zarr_format"] == 2
    except (LookupError, TypeError) as error:
        raise StoreError(f"its array {name!r} is not described: {error}") from error
    if not plain:
        raise StoreError(f"its array {name!r} has no sizes that an array can have.")
    _check_decoders(name, array, compressors)
    if _bytes(chunks, dtype) > _LARGEST_CHUNK:
        raise StoreError(f"its array {name!r} claims chunks of {_bytes(chunks, dtype):,} bytes.")
    return _bytes(shape, dtype)


def _check_decoders(name: str, array: Any, compressors: Sequence[str]) -> None:
    try:
        dtype, filters, compressor = array["dtype"], array["filters"], array["compressor"]
        is_supported = compressor is None or compressor["id"] in compressors
    except (LookupError, TypeError) as error:
        raise StoreError(f"its array {name!r} is not described: {error}") from error
    texts = dtype == "|O" and filters == _TEXTS
    if not texts and (not isinstance(dtype, str) or not _NUMBERS.fullmatch(dtype) or filters):
        needed = f"; its chunks need {filters!r}" if filters else ""
        raise StoreError(
            f"its array {name!r} holds neither numbers nor texts, but {dtype!r}{needed}."
        )
    if not is_supported:
        raise StoreError(f"its array {name!r} needs a decoder that is not allowed: {compressor!r}.")


def _bytes(sizes: list[int], dtype: str) -> int:
    width = 8 if dtype == "|O" else int(dtype[2:]) * (4 if dtype[1] == "U" else 1)
    return math.prod(sizes) * width


def check_chunk(name: str, chunk: bytes, array: Mapping[str, Any]) -> None:
    """Check what a chunk unpacks to, by its header; of texts also how many it claims to hold.

    Raises
    ------
    StoreError
        If that is not what its `array` says.
    """
    expected, texts = _bytes(array["chunks"], array["dtype"]), array["dtype"] == "|O"
    if array["compressor"] is not None and array["compressor"]["id"] != "blosc":
        # What else Zarr writes notes no size that could lie, and is hardly larger than its content.
        if not texts and len(chunk) > expected + expected // 64 + 64:
            raise StoreError(f"its chunk {name!r} has {len(chunk):,} bytes for {expected:,}.")
        return
    if array["compressor"] is not None:
        if len(chunk) < _BLOSC_HEADER.size:
            raise StoreError(f"its chunk {name!r} is cut short.")
        *_, unpacked, _, packed = _BLOSC_HEADER.unpack_from(chunk)
        if packed != len(chunk) or unpacked > _LARGEST_CHUNK:
            raise StoreError(f"its chunk {name!r} claims {unpacked:,} bytes.")
    else:
        unpacked = len(chunk)
    if not texts and unpacked != expected:
        raise StoreError(f"its chunk {name!r} holds {unpacked:,} bytes instead of {expected:,}.")
    if texts and (count := _texts(name, chunk, array)) != math.prod(array["chunks"]):
        raise StoreError(f"its chunk {name!r} claims {count:,} texts.")


def _texts(name: str, chunk: bytes, array: Mapping[str, Any]) -> int:
    from numcodecs import Blosc

    try:
        plain = chunk if array["compressor"] is None else bytes(Blosc().decode(chunk))
    except (RuntimeError, ValueError) as error:
        raise StoreError(f"its chunk {name!r} cannot be unpacked: {error}") from error
    return int.from_bytes(plain[:4], "little")


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
