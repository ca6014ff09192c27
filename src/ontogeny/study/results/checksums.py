"""One list of digests of a merged result, so that damage never passes as data.

Zarr reads a missing chunk as fill values, NaN for most variables, and its checksums do not cover
metadata. After a run has merged into the folder again, the same path is that of another result. So
what Zarr reads is compared with the list that the result had when it was opened.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import StoreError
from ...whole_files import write_json

LIST = ".checksums.json"
_METADATA = ".zmetadata"
_TEXTS = [{"id": "vlen-utf8"}]
# By default of one Zarr or another.
_COMPRESSORS = ("blosc", "zstd", "lz4", "zlib", "gzip")


def write_checksums(store: Path) -> None:
    """Write the digests of all files of `store` into it."""
    names = sorted(
        p.relative_to(store).as_posix() for p in store.rglob("*") if p.is_file()
    )
    files = {
        name: {"blake2b": _digest((store / name).read_bytes())}
        for name in names
        if name != LIST
    }
    # A digest of the list itself tells a flipped bit in the list from one in a file.
    write_json(store / LIST, {"files": files, "digest": _digest_of(files)})


def listed(store: Path) -> Mapping[str, str]:
    """Return the digests that a result lists.

    Raises
    ------
    StoreError
        If it has no list, or one that cannot be read.
    """
    try:
        content = json.loads((store / LIST).read_bytes())
        if content["digest"] == _digest_of(content["files"]):
            return {name: entry["blake2b"] for name, entry in content["files"].items()}
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"{store} has no {LIST}, so damage to it cannot be found. {_mend(store)}"
        ) from None
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise StoreError(
        f"{store} is damaged: {LIST} is not as it was written. {_mend(store)}"
    )


def check_files(store: Path) -> None:
    """Compare every file with the list.

    Raises
    ------
    StoreError
        If one is missing, changed or not listed; the message names it and the variable it belongs
        to, and says what to do.

    Examples
    --------
    >>> import tempfile
    >>> store = Path(tempfile.mkdtemp())
    >>> _ = (store / "0").write_bytes(b"chunk")
    >>> write_checksums(store)
    >>> check_files(store)
    """
    digests = listed(store)
    there = {p.relative_to(store).as_posix() for p in store.rglob("*") if p.is_file()}
    for name in sorted({*digests, *there} - {LIST}):
        path = store / name
        check(store, digests, name, path.read_bytes() if path.is_file() else None)


def check(
    store: Path, digests: Mapping[str, str], name: str, content: bytes | None
) -> None:
    """Compare what was read of a file, None if it is missing, with the list of a result.

    Raises
    ------
    StoreError
        If it is not what was written: it was damaged or edited, or a run has merged another result
        into the folder since `digests` were read.
    """
    digest = digests.get(name)
    if digest == (None if content is None else _digest(content)):
        return
    if not is_listed(store, digests):
        raise StoreError(
            f"{store} is no longer the result that was opened: a run has merged into its folder, "
            "or it was deleted. Open it again, or load() it before."
        )
    parts = name.split("/")
    variable = f" (variable {parts[1]!r} of {parts[0]!r})" if len(parts) == 3 else ""
    fault = "is not as it was written" if digest else "was not written with it"
    if content is None:
        fault = "is missing"
    raise StoreError(
        f"{store} is damaged or was edited: {name}{variable} {fault}. {_mend(store)}"
    )


def is_listed(store: Path, digests: Mapping[str, str]) -> bool:
    """Return whether a result still lists these digests."""
    try:
        return listed(store) == digests
    except StoreError:
        return False


def check_data_only(store: Path) -> None:
    """Refuse a result whose chunks need more than decoders of numbers and texts.

    Zarr asks every decoder that the metadata name, also that of pickles, which runs code.

    Raises
    ------
    StoreError
        If there is such an array, or the metadata cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import xarray as xr
    >>> store = Path(tempfile.mkdtemp()) / "result.zarr"
    >>> _ = xr.Dataset({"loss": 4.2}).to_zarr(store, zarr_format=2, consolidated=True)
    >>> write_checksums(store)
    >>> check_data_only(store)
    """
    try:
        content = (
            (store / _METADATA).read_bytes() if (store / _METADATA).is_file() else None
        )
        check(store, listed(store), _METADATA, content)
        metadata = json.loads(content or b"{}")["metadata"]
        for name, array in metadata.items():
            if name.endswith(".zarray") and (why := _refused(array)):
                where = name.removesuffix("/.zarray")
                raise StoreError(f"{store} is not opened: its array {where!r} {why}.")
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise StoreError(
            f"{store} is not opened: its metadata cannot be read: {error}"
        ) from error


def root_attributes(store: Path) -> dict[str, Any]:
    """Return what the root of a result says, after the checks of `check_data_only`.

    Raises
    ------
    StoreError
        As there.
    """
    check_data_only(store)
    try:
        content = json.loads((store / _METADATA).read_bytes())
        return dict(content["metadata"][".zattrs"])
    except (OSError, ValueError, LookupError) as error:
        raise StoreError(
            f"{store} is not opened: its metadata cannot be read: {error}"
        ) from error


def _refused(array: Mapping[str, Any]) -> str:
    """Return why an array is not decoded; empty if it is."""
    dtype = array["dtype"]
    filters = array["filters"]
    compressor = array["compressor"]
    texts = dtype == "|O" and filters == _TEXTS
    numbers = isinstance(dtype, str) and dtype[1:2] in "biufSU" and not filters
    if not texts and not numbers:
        needed = f"; its chunks need {filters!r}" if filters else ""
        return f"holds neither numbers nor texts, but {dtype!r}{needed}"
    if compressor is not None and compressor["id"] not in _COMPRESSORS:
        return f"needs a decoder that is not allowed: {compressor!r}"
    return ""


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _digest_of(files: Mapping[str, Any]) -> str:
    return _digest(json.dumps(files, sort_keys=True).encode())


def _mend(store: Path) -> str:
    """Return what to do; the command alone would write to another folder."""
    return (
        "Run the study into this folder again (`ontogeny run STUDY.toml --output "
        f"{shlex.quote(str(store.parent))}`, or Study.run): it merges the cells that still hold."
    )
