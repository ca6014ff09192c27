"""The merged result as the many small files of a Zarr store, put in place whole."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import xarray as xr
from zarr import consolidate_metadata

from ...renames import rename
from ...whole_files import naming, temporary
from ..folder.claims import held
from ..folder.layout import result_path
from .checksums import write_checksums
from .small_stores import SHORT, files_of, is_small


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


def write_tree(tree: xr.DataTree, folder: Path, short: int = SHORT) -> None:
    """Write a tree into a folder that is not there yet.

    A node whose variables are plain and have fewer than `short` bytes, as nearly all are, is not
    written by xarray, which takes many times as long. The files are the same.

    Examples
    --------
    >>> import tempfile
    >>> tree = xr.DataTree.from_dict({"loss": xr.Dataset({"loss": 4.2})})
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_tree(tree, folder / "a.zarr")
    >>> write_tree(tree, folder / "b.zarr", short=0)
    >>> [
    ...     float(xr.open_datatree(path, engine="zarr")["loss"].loss)
    ...     for path in folder.iterdir()
    ... ]
    [4.2, 4.2]
    """
    nodes = {
        node.path: _as_new(node.to_dataset(inherit=False)) for node in tree.subtree
    }
    small = {path: node for path, node in nodes.items() if is_small(node, short)}
    rest = {path: node for path, node in nodes.items() if path not in small}
    if rest:
        # The metadata are put together once, and not anew for every node.
        made = xr.DataTree.from_dict(rest)
        made.to_zarr(folder, zarr_format=2, consolidated=False)
    for name, content in files_of(small):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
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
