"""The merged result as the many small files of a Zarr store, put in place whole."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import xarray as xr
from numcodecs import get_codec
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

from ...store import naming, plain, temporary
from ..folder.claims import held
from ..folder.layout import result_path
from .checksums import write_checksums
from .foreign import METADATA, metadata_files

_OPTIONS: Any = {"zarr_format": 2, "consolidated": False}
_SMALL = 2**16  # bytes of a variable; up to twice as many Zarr makes one chunk of it


def write_result(folder: Path, tree: xr.DataTree) -> Path:
    """Write a result beside the old one of its folder, and swap it in whole."""
    path = result_path(folder)
    with held(folder, "result"):
        new = temporary(path)
        try:
            with naming(path):
                write_checksums(new, write_tree(tree, new))
                _swap(new, path)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return path


def _swap(new: Path, path: Path) -> None:
    """Put the folder `new` at `path`, also where other runs do the same at this moment."""
    while True:
        old = temporary(path)
        with suppress(FileNotFoundError):  # there is none, or another run has just moved it away
            path.rename(old)
        try:
            new.rename(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another run was faster
                raise
        finally:
            shutil.rmtree(old, ignore_errors=True)


def write_tree(tree: xr.DataTree, folder: Path, small: int = _SMALL) -> dict[str, bytes]:
    """Write a tree into a folder that is not there yet, and return the files written here.

    Zarr hands every file to another thread, and writes the metadata of a variable again with each
    thing that it learns of it: that took ten times as long as all else of the few bytes of most
    variables. So files of what has at most `small` bytes are made here, the same that Zarr makes.

    Examples
    --------
    >>> import tempfile
    >>> tree = xr.DataTree.from_dict({"loss": xr.Dataset({"loss": 4.2})})
    >>> folder = Path(tempfile.mkdtemp())
    >>> files = write_tree(tree, folder / "a.zarr"), write_tree(tree, folder / "b.zarr", small=0)
    >>> [float(xr.open_datatree(path, engine="zarr")["loss"].loss) for path in folder.iterdir()]
    [4.2, 4.2]
    """
    files: dict[PurePosixPath, bytes] = {}
    all_small = True
    for node in tree.subtree:
        where = PurePosixPath(node.path.strip("/"))
        variables, attrs = xr.conventions.encode_dataset_coordinates(node.to_dataset(inherit=False))
        files |= {where / ".zgroup": _json({"zarr_format": 2}), where / ".zattrs": _json(attrs)}
        others = {name: v for name, v in variables.items() if not _is_small(v, small)}
        if others:
            all_small, group = False, node.path
            xr.Dataset(others).to_zarr(folder, mode="a", group=group, **_OPTIONS)
        for name, variable in variables.items():
            if name not in others:
                files |= {where / str(name) / file: x for file, x in _files(variable).items()}
    for parent in {name.parent for name in files}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    metadata = {str(n): json.loads(files[n]) for n in sorted(files) if n.name in METADATA}
    write_metadata(folder, metadata if all_small else None)
    return {str(name): content for name, content in files.items()}


def _is_small(variable: xr.Variable, small: int) -> bool:
    """Return whether a variable is numbers or texts of so few bytes that they are one chunk."""
    kind = variable.dtype.kind
    texts = kind == "O" and all(isinstance(value, str) for value in variable.values.flat)
    coded = {"dtype", "_FillValue"} & {*variable.attrs, *variable.encoding}
    return (texts or kind in "fiubU") and variable.nbytes <= small and not coded


def _files(variable: xr.Variable) -> dict[str, bytes]:
    """Return the files of a variable by their names."""
    values = np.ascontiguousarray(variable.values).reshape(variable.shape)
    shapes = {"shape": values.shape, "chunks": [max(size, 1) for size in values.shape]}
    array = _array_of(values.dtype) | shapes
    attrs = {**variable.attrs, "_ARRAY_DIMENSIONS": variable.dims}
    files = {".zarray": _json(array), ".zattrs": _json(attrs)}
    kind, chunk = values.dtype.kind, values
    filled = np.isnan(values) if kind == "f" else values == ("" if kind in "OU" else 0)
    if not filled.all():
        for codec in (*(array["filters"] or ()), array["compressor"]):
            chunk = get_codec(codec).encode(chunk)
        files[".".join("0" * values.ndim) or "0"] = bytes(chunk)
    return files


@cache
def _array_of(dtype: np.dtype) -> dict[str, Any]:
    """Return how Zarr describes an array of numbers or texts: its coders and fill value."""
    files: dict[str, Buffer] = {}
    one = xr.Variable((), np.full((), "" if dtype.kind == "O" else 0, dtype))
    xr.Dataset({"x": one}).to_zarr(MemoryStore(files), **_OPTIONS)
    return dict(json.loads(files["x/.zarray"].to_bytes()))


def _json(content: Any) -> bytes:
    return json.dumps(plain(content), indent=2).encode()


def write_metadata(store: Path, metadata: Mapping[str, Any] | None = None) -> None:
    """Write all metadata of a store into the one file that readers open first."""
    content = {"metadata": metadata or metadata_files(store), "zarr_consolidated_format": 1}
    (store / ".zmetadata").write_text(json.dumps(content), encoding="utf-8")
