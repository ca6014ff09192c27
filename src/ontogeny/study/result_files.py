"""A result as the many small files of a Zarr store."""

from __future__ import annotations

from pathlib import Path

import xarray as xr
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

from .mapped import LARGE


def write_tree(tree: xr.DataTree, folder: Path, large: int = LARGE) -> None:
    """Write a tree into a folder that is not there yet.

    Zarr hands every file to another thread, and writes the metadata of a variable again with each
    thing that it learns of it, which costs more than the few bytes of most variables. So a result
    is laid out in memory first, unless it has `large` bytes or more. The files are the same.

    Examples
    --------
    >>> import tempfile
    >>> tree = xr.DataTree.from_dict({"loss": xr.Dataset({"loss": 4.2})})
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_tree(tree, folder / "a.zarr"), write_tree(tree, folder / "b.zarr", large=0)
    (None, None)
    >>> [float(xr.open_datatree(path, engine="zarr")["loss"].loss) for path in folder.iterdir()]
    [4.2, 4.2]
    """
    if sum(node.dataset.nbytes for node in tree.subtree) >= large:
        tree.to_zarr(folder, zarr_format=2, consolidated=True)
        return
    files: dict[str, Buffer] = {}
    tree.to_zarr(MemoryStore(files), zarr_format=2, consolidated=True)
    for parent in {(folder / name).parent for name in files}:
        parent.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.to_bytes())
