"""From cells to one labelled result: stacked, summarised, put in place whole."""

from __future__ import annotations

import datetime
import errno
import hashlib
import json
import logging
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .._version import __version__
from ..observables import Observable
from ..problems import NO_CELL
from ..store import Cell, plain, temporary
from ..summary import verdicts
from .checksums import identity, is_written, same_content, write_checksums
from .claims import held
from .environment import PACKAGES, versions
from .layout import result_path, summary_path
from .mapped import large_variables, stacked_in_file
from .result_files import write_tree

log = logging.getLogger("ontogeny.study")


def merge(
    folder: Path,
    observables: Sequence[Observable],
    attributes: Mapping[str, Any],
    read: Callable[[Path], Cell],
    units: Mapping[str, int] | None = None,
) -> xr.DataTree:
    """Return the tree of all summaries, with verdicts over all of their rows.

    `units` become an attribute of the nodes: how many texts or documents their noise is over.
    """
    log.debug("phase=merging")
    data = {o.name: summary_data(read(summary_path(folder, o.name))) for o in observables}
    for name, count in (units or {}).items():
        data[name] = data[name].assign_attrs(units=count)
    data = verdicts.with_verdicts(data, {o.name: o.quantities for o in observables})
    root = {**attributes, **verdicts.LEVELS.attributes(), **provenance()}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=root), **data})


def summary_data(cell: Cell) -> xr.Dataset:
    """Return what a summary holds, with NumPy's own strings where it had them.

    ``failed`` holds why there is nothing, where its cells could not even be stacked.
    """
    data = cell.data
    for name in cell.provenance.get("texts", ()):
        data[name] = data[name].astype(str)
    if cell.status != "done" and "failed" not in data.attrs:
        data = data.assign_attrs(failed=cell.status.removeprefix("failed: "))
    return data


def stack(
    observable: Observable, cells: Mapping[int | str, Cell | str], folder: Path | None = None
) -> xr.Dataset:
    """Return an observable's cells along ``step`` (or ``block``); gaps are NaN with a reason.

    `cells` are given by their step, block or layer, with a status in the place of one that cannot
    be used. With a `folder`, large variables lie in files of it and not in memory.
    """
    keys = list(cells)
    dim = "block" if observable.over_blocks else "layer" if observable.source else "step"
    done: dict[int | str, xr.Dataset] = {}
    outcomes: dict[int | str, tuple[str, xr.DataArray | None]] = {}
    for key, cell in cells.items():
        if isinstance(cell, str):
            outcomes[key] = (cell, None)
            continue
        outcomes[key] = (cell.status, cell.data.get("status"))
        if cell.status == "done":
            done[key] = cell.data.drop_vars("status", errors="ignore")
    if not done:
        empty = xr.Dataset(coords={dim: keys})
        return empty.assign(status=(dim, _strings([outcomes[k][0] for k in keys])))
    pieces = list(done.values())
    apart = [] if folder is None else large_variables(pieces)
    data = xr.concat(
        [each.drop_vars(apart).expand_dims({dim: [key]}) for key, each in done.items()],
        dim=dim,
        join="outer",
        data_vars="all",
        coords="minimal",  # some cells have dimensions that others lack, such as refits
        combine_attrs="override",
    )
    if len(pieces) < len(keys):
        data = data.reindex({dim: keys})
    for name in apart:
        assert folder is not None
        rows = [done[key][name].values if key in done else None for key in keys]
        dims, attrs = pieces[0][name].dims, pieces[0][name].attrs
        data[name] = ((dim, *dims), stacked_in_file(rows, folder), attrs)
    return data.assign(status=_status(dim, outcomes, data))


def write_once(folder: Path, tree: xr.DataTree) -> Path:
    """Write the result of a study, unless another process has just written the same.

    Of the tasks of a job array, which all end with this, the first one writes.
    """
    path, content = result_path(folder), content_digest(tree)
    seen = identity(path)
    with held(folder, "result"):
        written_meanwhile = identity(path) != seen
        if is_written(path, content, chunks=not written_meanwhile):
            return path
        return write_result(folder, tree, content)


def content_digest(tree: xr.DataTree) -> str:
    """Return a digest of a tree, but for when and on which machine it was made.

    Examples
    --------
    >>> trees = [xr.DataTree(xr.Dataset({"x": 1.0}, attrs={"created": day})) for day in "ab"]
    >>> len({content_digest(tree) for tree in trees})
    1
    """
    digest = hashlib.blake2b(digest_size=16)
    for node in tree.subtree:
        attrs = plain(node.attrs)
        if node is tree:
            made = json.loads(attrs.pop("provenance", "{}"))
            made.pop("machine", None)
            attrs = {**attrs, "made": made, "created": None}
        digest.update(json.dumps([node.path, attrs], sort_keys=True, default=str).encode())
        for name, variable in sorted(node.variables.items(), key=lambda item: str(item[0])):
            values = np.asarray(variable.values)
            described = [name, variable.dims, plain(variable.attrs), str(values.dtype)]
            digest.update(json.dumps([*described, values.shape], default=str).encode())
            if values.dtype.kind in "OTU":
                digest.update(json.dumps(values.tolist(), default=str).encode())
            else:
                digest.update(np.ascontiguousarray(values).view(np.uint8).data)
    return digest.hexdigest()


def write_result(folder: Path, tree: xr.DataTree, content: str = "") -> Path:
    """Write the tree beside the old result, then swap it in whole.

    One that says the same as the old result is not swapped in: that may be open somewhere.
    `content` is a digest of it that is kept.
    """
    path = result_path(folder)
    new = temporary(path)
    try:
        write_tree(tree, new)
        write_checksums(new, content)
        if not same_content(new, path):
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


def summarised(
    observable: Observable, data: xr.Dataset, others: Mapping[str, xr.Dataset]
) -> xr.Dataset:
    """Return the stacked cells with their summary; ``failed`` holds why it could not be made."""
    if observable.needs() and not set(data.data_vars) - {"status"}:
        return data.assign_attrs(failed=NO_CELL)
    try:
        return observable.summarise(data, others)
    except Exception as error:  # what was computed is kept, and the page says what failed
        log.warning("%s could not be summarised: %s", observable.name, error)
        log.debug("summarising failed", exc_info=error)
        return data.assign_attrs(failed=f"{type(error).__name__}: {error}")


def _status(
    dim: str, outcomes: Mapping[int | str, tuple[str, xr.DataArray | None]], data: xr.Dataset
) -> xr.DataArray:
    """Return the status of each cell, or of each layer (or step of a block) in each cell."""
    keys = list(data[dim].values)
    within = "step" if dim == "block" else "layer"
    own = {
        key: dict(zip(each[within].values.tolist(), each.values, strict=True))
        for key, (_, each) in outcomes.items()
        if each is not None and within in each.dims and within != dim
    }
    if not own:
        return xr.DataArray(_strings([outcomes[k][0] for k in keys]), dims=dim)
    labels = (
        data[within].values.tolist() if within in data.coords else list(next(iter(own.values())))
    )
    rows = [[own.get(key, {}).get(label, outcomes[key][0]) for label in labels] for key in keys]
    return xr.DataArray(_strings(rows), {within: labels}, (dim, within))


def _strings(values: Sequence[Any]) -> np.ndarray:
    return np.array(values, dtype=object)


def provenance() -> dict[str, str]:
    """Return when, with which versions and on which machine a result is made."""
    known = {"python": platform.python_version(), **versions((*PACKAGES, "xarray"))}
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "provenance": json.dumps({"versions": known, "machine": platform.platform()}),
    }
