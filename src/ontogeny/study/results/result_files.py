"""The merged result as the many small files of a Zarr store, put in place whole."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import xarray as xr
import zarr
from xarray.backends.zarr import encode_zarr_variable
from xarray.conventions import encode_dataset_coordinates
from zarr.api.asynchronous import open_group
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

from ...renames import rename
from ...store import plain
from ...trees import Nodes
from ...whole_files import naming, temporary
from ..cells.merge import LARGE
from ..folder.claims import held
from ..folder.layout import result_path
from .checksums import write_checksums

_METADATA = (".zarray", ".zattrs", ".zgroup")
_settings = threading.Lock()  # those of Zarr are the process's


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

    A result of fewer than `large` bytes is laid out in memory first, see `_lay_out`; the files are
    the same. Their metadata are put together once: xarray has them read and put together anew for
    every node.

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
    # Python writes JSON with indents ten times more slowly.
    with _settings, zarr.config.set({"json_indent": None}):
        if sum(node.dataset.nbytes for node in tree.subtree) >= large:
            tree.to_zarr(folder, zarr_format=2, consolidated=False)
        else:
            _write_small(tree, folder)
    write_metadata(folder)


def _write_small(tree: xr.DataTree, folder: Path) -> None:
    laid_out: dict[str, Buffer] = {}
    nodes = {node.path: node.to_dataset(inherit=False).load() for node in tree.subtree}
    # In a thread, as a notebook has a loop of events in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_run, _lay_out(nodes, MemoryStore(laid_out))).result()
    files = {name: content.to_bytes() for name, content in laid_out.items()}
    for parent in {(folder / name).parent for name in files}:
        parent.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing in a loop of events that hands nothing on to threads."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_AtOnce())
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()


class _AtOnce(ThreadPoolExecutor):
    """Zarr has a thread encode each chunk, which takes longer than encoding a small one."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


async def _lay_out(nodes: Nodes, store: MemoryStore) -> None:
    """Write a tree as xarray does, which visits Zarr's thread three times a variable instead."""
    for path, node in nodes.items():
        variables, attributes = encode_dataset_coordinates(node)
        group = await open_group(
            store, path=path, zarr_format=2, attributes=plain(attributes)
        )
        for name, variable in variables.items():
            encoded = encode_zarr_variable(variable, name=name)
            dtype = str if encoded.dtype.kind == "O" else encoded.dtype
            fill = encoded.attrs.pop("_FillValue", None)
            attrs = plain(encoded.attrs) | {"_ARRAY_DIMENSIONS": list(encoded.dims)}
            array = await group.create_array(
                str(name),
                shape=encoded.shape,
                dtype=dtype,
                fill_value=fill,
                attributes=attrs,
            )
            if encoded.size:
                await array.setitem(..., encoded.values)


def write_metadata(store: Path) -> None:
    """Write all metadata of a store into the one file that readers open first."""
    files = sorted(path for path in store.rglob(".z*") if path.name in _METADATA)
    metadata = {
        p.relative_to(store).as_posix(): json.loads(p.read_bytes()) for p in files
    }
    content = {"metadata": metadata, "zarr_consolidated_format": 1}
    (store / ".zmetadata").write_text(json.dumps(content), encoding="utf-8")
