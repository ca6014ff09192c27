"""The merged result as the many small files of a Zarr store, put in place whole."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import xarray as xr
from zarr import consolidate_metadata
from zarr.storage import MemoryStore

from ...renames import rename
from ...whole_files import naming, temporary
from ..cells.merge import LARGE
from ..folder.claims import held
from ..folder.layout import result_path
from .checksums import write_checksums


def write_result(folder: Path, tree: xr.DataTree) -> Path:
    """Write a result beside the old one of its folder, and swap it in whole."""
    path = result_path(folder)
    with held(folder, "result"):
        new = temporary(path)
        try:
            with naming(path):
                write_tree(tree, new)
                write_checksums(new)
                _swap(new, path)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return path


def _swap(new: Path, path: Path) -> None:
    """Put the folder `new` at `path`, also where other runs do the same at this moment."""
    while True:
        old = temporary(path)
        # There is none, or another run has just moved it away.
        with suppress(FileNotFoundError):
            path.rename(old)
        try:
            rename(new, path)
            return
        except OSError as error:
            # Another run was faster.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        finally:
            shutil.rmtree(old, ignore_errors=True)


def write_tree(tree: xr.DataTree, folder: Path, large: int = LARGE) -> None:
    """Write a tree into a folder that is not there yet.

    A result of fewer than `large` bytes is laid out in memory first: xarray asks the store many
    times a variable, which takes half as long there. The files are the same.

    Examples
    --------
    >>> import tempfile
    >>> tree = xr.DataTree.from_dict({"loss": xr.Dataset({"loss": 4.2})})
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_tree(tree, folder / "a.zarr")
    >>> write_tree(tree, folder / "b.zarr", large=0)
    >>> [
    ...     float(xr.open_datatree(path, engine="zarr")["loss"].loss)
    ...     for path in folder.iterdir()
    ... ]
    [4.2, 4.2]
    """
    laid_out: dict[str, Any] = {}
    is_large = sum(node.dataset.nbytes for node in tree.subtree) >= large
    store = folder if is_large else MemoryStore(laid_out)
    nodes = {
        node.path: _as_new(node.to_dataset(inherit=False)) for node in tree.subtree
    }
    # The metadata are put together once, and not anew for every node.
    xr.DataTree.from_dict(nodes).to_zarr(store, zarr_format=2, consolidated=False)
    for name, content in laid_out.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.to_bytes())
    consolidate_metadata(folder, zarr_format=2)


def _as_new(data: xr.Dataset) -> xr.Dataset:
    """Return a node with nothing of how its variables were stored where they were read.

    Texts of another length, with the filter that these had, could be written and not read. xarray
    writes texts of any length as such from objects alone, and others as long as the longest.
    """
    texts = {
        n: v.astype(object) for n, v in data.variables.items() if v.dtype.kind == "T"
    }
    return data.drop_encoding().assign(texts)
