"""From cells to one labelled result: stacked, summarised, put in place whole."""

from __future__ import annotations

import datetime
import json
import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..._version import __version__
from ...claims import Claim, to_dataset
from ...observables import Observable
from ...own_code import reason
from ...problems.problem import NO_CELL
from ...scratch import scratch_array
from ...store import Cell
from ...summary import verdicts
from ...trees import Nodes, found_in
from ...words.page_claims import claims_of
from ...words.voice import Voice
from ..folder.layout import summary_path
from .cache import read_verified
from .environment import PACKAGES, versions

# Bytes of a variable over all cells, from which on it is stacked in a file.
LARGE = 64 * 2**20


def large_variables(pieces: Sequence[xr.Dataset], large: int = LARGE) -> list[str]:
    """Return the names of numeric variables that are alike in all pieces and large together.

    Those with other lengths or labels in some pieces have to be aligned, which takes memory.
    """
    first = pieces[0]
    names = [
        str(name)
        for name, v in first.data_vars.items()
        if v.dtype.kind == "f" and v.nbytes * len(pieces) >= large
    ]
    return [
        name for name in names if all(_alike(first, piece, name) for piece in pieces)
    ]


def _alike(first: xr.Dataset, other: xr.Dataset, name: str) -> bool:
    if name not in other:
        return False
    a = first[name]
    b = other[name]
    same = (a.dims, a.shape, a.dtype, a.attrs) == (b.dims, b.shape, b.dtype, b.attrs)
    labelled = same and a.indexes.keys() == b.indexes.keys()
    return labelled and all(
        index.equals(b.indexes[dim]) for dim, index in a.indexes.items()
    )


def stacked_in_file(rows: Sequence[np.ndarray | None], folder: Path) -> np.ndarray:
    """Return rows of floats as one array that lies in a file of `folder`; None is a row of NaN.

    Examples
    --------
    >>> import tempfile
    >>> stacked_in_file([np.array([1.0, 2.0]), None], Path(tempfile.gettempdir()))
    array([[ 1.,  2.],
           [nan, nan]])
    """
    first = next(row for row in rows if row is not None)
    stacked = scratch_array((len(rows), *first.shape), first.dtype, folder)
    for i, row in enumerate(rows):
        stacked[i] = np.nan if row is None else row
    return stacked


log = logging.getLogger("ontogeny.study")


def merge(
    folder: Path,
    observables: Sequence[Observable],
    attributes: Mapping[str, Any],
    units: Mapping[str, int] | None = None,
) -> xr.DataTree:
    """Return the tree of all summaries, with verdicts over all of their rows.

    `units` become an attribute of the nodes: how many texts or documents their noise is over.
    """
    log.debug("phase=merging")
    data = {
        o.name: summary_data(read_verified(summary_path(folder, o.name)))
        for o in observables
    }
    for name, count in (units or {}).items():
        data[name] = data[name].assign_attrs(units=count)
    quantities = {o.name: o.quantities for o in observables}
    data = verdicts.with_verdicts(data)
    voice = Voice.of(
        attributes.get("clock"), json.loads(attributes.get("inputs", "[]"))
    )
    data = {name: voice.filled_node(node) for name, node in data.items()}
    findings = json.loads(attributes.get("findings", "[]"))
    claimed = {o.name: _claimed(o, data[o.name]) for o in observables}
    data = {name: node for name, (node, _) in claimed.items()}
    made = {name: claims for name, (_, claims) in claimed.items()}
    claims = [
        replace(claim, units=voice.fill(claim.units))
        for claim in claims_of(data, made, findings, quantities)
    ]
    root = {**attributes, **verdicts.LEVELS.attributes(), **provenance()}
    return xr.DataTree.from_dict({"/": to_dataset(claims).assign_attrs(root), **data})


def _claimed(
    observable: Observable, data: xr.Dataset
) -> tuple[xr.Dataset, list[Claim]]:
    """Return what an observable claims of its node; ``failed`` of the node holds why it cannot."""
    if "failed" in data.attrs:
        return data, []
    try:
        return data, list(observable.claims(observable.name, data))
    except Exception as error:
        log.warning("%s could not say what it found: %s", observable.name, error)
        log.debug("claiming failed", exc_info=error)
        return data.assign_attrs(failed=reason(error)), []


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
    observable: Observable,
    cells: Mapping[int | str, Cell | str],
    folder: Path | None = None,
) -> xr.Dataset:
    """Return an observable's cells along ``step`` (or ``block``); gaps are NaN with a reason.

    `cells` are given by their step, block or layer, with a status in the place of one that cannot
    be used. With a `folder`, large variables lie in files of it and not in memory.
    """
    keys = list(cells)
    dim = "step"
    if observable.over_blocks:
        dim = "block"
    elif observable.source:
        dim = "layer"
    done: dict[int | str, xr.Dataset] = {}
    outcomes: dict[int | str, tuple[str, xr.DataArray | None]] = {}
    for key, cell in cells.items():
        if isinstance(cell, str):
            outcomes[key] = (cell, None)
            continue
        outcomes[key] = (cell.status, found_in(cell.data, "status"))
        if cell.status == "done":
            done[key] = cell.data.drop_vars("status", errors="ignore")
    if not done:
        empty = xr.Dataset(coords={dim: keys})
        return empty.assign(status=(dim, _strings([outcomes[k][0] for k in keys])))
    pieces = list(done.values())
    apart = [] if folder is None else large_variables(pieces)
    data = xr.concat(
        [part.drop_vars(apart).expand_dims({dim: [key]}) for key, part in done.items()],
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
        dims = pieces[0][name].dims
        attrs = pieces[0][name].attrs
        data[name] = ((dim, *dims), stacked_in_file(rows, folder), attrs)
    return data.assign(status=_status(dim, outcomes, data))


def summarised(observable: Observable, data: xr.Dataset, others: Nodes) -> xr.Dataset:
    """Return the stacked cells with their summary; ``failed`` holds why it could not be made."""
    if observable.needs() and not set(data.data_vars) - {"status"}:
        return data.assign_attrs(failed=NO_CELL)
    try:
        return observable.summarise(data, others)
    except Exception as error:
        # What was computed is kept, and the page says what failed.
        log.warning("%s could not be summarised: %s", observable.name, error)
        log.debug("summarising failed", exc_info=error)
        return data.assign_attrs(failed=reason(error))


def _status(
    dim: str,
    outcomes: Mapping[int | str, tuple[str, xr.DataArray | None]],
    data: xr.Dataset,
) -> xr.DataArray:
    """Return the status of each cell, or of each layer (or step of a block) in each cell."""
    keys = list(data[dim].values)
    within = "step" if dim == "block" else "layer"
    by_key = {
        key: dict(zip(outcome[within].values.tolist(), outcome.values, strict=True))
        for key, (_, outcome) in outcomes.items()
        if outcome is not None and within in outcome.dims and within != dim
    }
    if not by_key:
        return xr.DataArray(_strings([outcomes[k][0] for k in keys]), dims=dim)
    labels = (
        data[within].values.tolist()
        if within in data.coords
        else list(next(iter(by_key.values())))
    )
    rows = [
        [by_key.get(key, {}).get(label, outcomes[key][0]) for label in labels]
        for key in keys
    ]
    return xr.DataArray(_strings(rows), {within: labels}, (dim, within))


def _strings(values: Sequence[Any]) -> np.ndarray:
    return np.array(values, dtype=object)


def provenance() -> dict[str, str]:
    """Return when, with which versions and on which machine a result is made."""
    packages = {"python": platform.python_version(), **versions((*PACKAGES, "xarray"))}
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "provenance": json.dumps(
            {"versions": packages, "machine": platform.platform()}
        ),
    }
