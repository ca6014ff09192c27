"""The merged result as the many small files of a Zarr store, put in place whole."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import xarray as xr
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

from ...store import naming, temporary
from ..cells.merge import LARGE
from ..folder.claims import held
from ..folder.layout import result_path
from .checksums import write_checksums
from .foreign import METADATA, metadata_files


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


def write_tree(tree: xr.DataTree, folder: Path, large: int = LARGE) -> dict[str, bytes]:
    """Write a tree into a folder that is not there yet; return files that were laid out in memory.

    Zarr hands every file to another thread, and writes the metadata of a variable again with each
    thing that it learns of it, which costs more than the few bytes of most variables. So a result
    is laid out in memory first, unless it has `large` bytes or more. The files are the same. Their
    metadata are put together once: xarray has them read and put together anew for every node.

    Examples
    --------
    >>> import tempfile
    >>> tree = xr.DataTree.from_dict({"loss": xr.Dataset({"loss": 4.2})})
    >>> folder = Path(tempfile.mkdtemp())
    >>> files = write_tree(tree, folder / "a.zarr"), write_tree(tree, folder / "b.zarr", large=0)
    >>> [float(xr.open_datatree(path, engine="zarr")["loss"].loss) for path in folder.iterdir()]
    [4.2, 4.2]
    """
    laid_out: dict[str, Buffer] = {}
    is_large = sum(node.dataset.nbytes for node in tree.subtree) >= large
    tree.to_zarr(folder if is_large else MemoryStore(laid_out), zarr_format=2, consolidated=False)
    files = {name: content.to_bytes() for name, content in laid_out.items()}
    for parent in {(folder / name).parent for name in files}:
        parent.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    described = [name for name in sorted(files, key=Path) if Path(name).name in METADATA]
    write_metadata(folder, {name: json.loads(files[name]) for name in described})
    return files


def write_metadata(store: Path, metadata: Mapping[str, Any] | None = None) -> None:
    """Write all metadata of a store into the one file that readers open first."""
    content = {"metadata": metadata or metadata_files(store), "zarr_consolidated_format": 1}
    (store / ".zmetadata").write_text(json.dumps(content), encoding="utf-8")
