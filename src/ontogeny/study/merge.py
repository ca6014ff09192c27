"""From cells to one labelled result: stacked, summarised, put in place whole."""

from __future__ import annotations

import datetime
import errno
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
from ..store import Cell, temporary
from ..summary import said
from .checksums import same_content, write_checksums
from .environment import PACKAGES, versions
from .layout import result_path, summary_path
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
    data = said(data, {o.name: o.quantities for o in observables})
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={**attributes, **provenance()}), **data})


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


def stack(observable: Observable, cells: Mapping[int | str, Cell | str]) -> xr.Dataset:
    """Return an observable's cells along ``step`` (or ``block``); gaps are NaN with a reason.

    `cells` are given by their step, block or layer, with a status in the place of one that cannot
    be used.
    """
    keys = list(cells)
    dim = "block" if observable.over_blocks else "layer" if observable.source else "step"
    pieces: list[xr.Dataset] = []
    outcomes: dict[int | str, tuple[str, xr.DataArray | None]] = {}
    for key, cell in cells.items():
        if isinstance(cell, str):
            outcomes[key] = (cell, None)
            continue
        outcomes[key] = (cell.status, cell.data.get("status"))
        if cell.status == "done":
            pieces.append(cell.data.drop_vars("status", errors="ignore").expand_dims({dim: [key]}))
    if not pieces:
        empty = xr.Dataset(coords={dim: keys})
        return empty.assign(status=(dim, _strings([outcomes[k][0] for k in keys])))
    data = xr.concat(
        pieces,
        dim=dim,
        join="outer",
        data_vars="all",
        coords="minimal",  # some cells have dimensions that others lack, such as refits
        combine_attrs="override",
    )
    if len(pieces) < len(keys):
        data = data.reindex({dim: keys})
    return data.assign(status=_status(dim, outcomes, data))


def write_result(folder: Path, tree: xr.DataTree) -> Path:
    """Write the tree beside the old result, then swap it in whole.

    One that says the same as the old result is not swapped in: that may be open somewhere.
    """
    path = result_path(folder)
    new = temporary(path)
    try:
        write_tree(tree, new)
        write_checksums(new)
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
