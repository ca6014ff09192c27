"""A result as the many small files of a Zarr store, each written once."""

from __future__ import annotations

from pathlib import Path

import xarray as xr
import zarr
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore


def write_tree(tree: xr.DataTree, folder: Path) -> None:
    """Write a tree into a folder that is not there yet, one node after the other.

    Zarr writes the metadata of a variable again with each thing that it learns of it, and hands
    every file to another thread, which costs more than most of these files. So a node is laid out
    in memory first; its metadata stay there until all nodes have been written.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "result.zarr"
    >>> write_tree(xr.DataTree.from_dict({"loss": xr.Dataset({"loss": 4.2})}), folder)
    >>> float(xr.open_datatree(folder, engine="zarr")["loss"].loss)
    4.2
    """
    files: dict[str, Buffer] = {}
    store = MemoryStore(files)
    for node in tree.subtree:
        data = node.to_dataset(inherit=False)
        data.to_zarr(store, group=node.path, mode="a", zarr_format=2, consolidated=False)
        chunks = [name for name in files if not Path(name).name.startswith(".z")]
        _write(folder, {name: files.pop(name) for name in chunks})
    zarr.consolidate_metadata(store, zarr_format=2)
    _write(folder, files)


def _write(folder: Path, files: dict[str, Buffer]) -> None:
    for parent in {(folder / name).parent for name in files}:
        parent.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.to_bytes())
