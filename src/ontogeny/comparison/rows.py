"""Rows of the runs matched to one another: one row for each quantity and layer, over ``run``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import xarray as xr

from ..summary.runs import stack_runs
from ..trees import Nodes
from ..words.levels import VERDICTS
from ..words.row_reading import ends_of
from .clock import Clock, LossClock
from .sources import Run

# Variables of rows that hold training steps.
TIMES = (
    "half_step",
    "half_step_low",
    "half_step_high",
    "settled_step",
    "control_half_step",
    "run_half_step",
)

_NAMES = {"half_step": "half-change {point}", "half_loss": "loss at half of the change"}
_KEY = "\x1f"
# What is said of a row beside its label, the same in every run.
_TEXTS = ("row_quantity", "row_layer", "row_name", "row_kind", "row_compares", "row_to")


def rows_of_runs(nodes: Nodes, runs: list[Run], clock: Clock) -> xr.Dataset:
    """Return the rows of one node of several runs, as each study judged them.

    Parameters
    ----------
    nodes
        By the name of the run, with layers that bear the same names.
    runs, clock
        The runs, and along what they are compared.

    Returns
    -------
    xarray.Dataset
        ``row``, ``row_layer`` and ``row_quantity``; over (row, run) the verdicts `VERDICTS`,
        ``judgeable``, ``marked``, the half-change steps with their intervals on the clock (NaN
        where a row did not move), and what else each study says of its rows; ``progress``
        over (row, run, step). Empty without rows.
    """
    pieces = {}
    for run in runs:
        node = nodes[run.name]
        if node.sizes.get("row", 0):
            pieces[run.name] = _keyed(
                _verdicts(_own_rows(node, run, clock), run.controlled)
            )
    if not pieces:
        return xr.Dataset()
    for run in runs:
        pieces.setdefault(run.name, next(iter(pieces.values())).isel(row=[]))
    data = stack_runs({run.name: pieces[run.name] for run in runs})
    *texts, labels, _ = zip(
        *(str(key).split(_KEY) for key in data.row.values), strict=True
    )
    data = data.assign(
        {
            name: ("row", _as_texts(values))
            for name, values in zip(_TEXTS, texts, strict=True)
        }
    )
    for name, words in _NAMES.items():
        if name in data:
            data[name].attrs.update(long_name=clock.axis.fill(words))
    for name in TIMES:
        if name in data:
            data[name].attrs.update(units=f"{clock.axis.unit}s")
    return data.assign_coords(row=("row", _as_texts(_distinct(labels))))


def _own_rows(node: xr.Dataset, run: Run, clock: Clock) -> xr.Dataset:
    """Return what a study says of its rows, with their times on the clock."""
    rows = node[
        [name for name, values in node.data_vars.items() if "row" in values.dims]
    ]
    if "row_to" in rows:  # in runs that end at different steps
        rows = rows.assign(row_to=rows["row_to"].copy(data=ends_of(node)))
    for name in TIMES:
        if name not in rows:
            continue
        at = rows[name].copy(data=clock.at(rows[name].values.astype(float), run))
        by_loss = isinstance(clock, LossClock)
        rows = rows.assign({name.replace("_step", "_loss") if by_loss else name: at})
    if "half_loss_low" in rows:  # the loss falls: the later end is the lower one
        ends = {
            "half_loss_low": rows.half_loss_high,
            "half_loss_high": rows.half_loss_low,
        }
        rows = rows.assign({name: values.rename(name) for name, values in ends.items()})
    return clock.place(rows, run)


def _verdicts(rows: xr.Dataset, controlled: bool) -> xr.Dataset:
    """Return rows with all verdicts, and with what counts as shown."""
    nothing = xr.zeros_like(rows.row, dtype=bool).drop_attrs()
    learned, beyond, changed = (
        rows.get(name, nothing).astype(bool) for name in VERDICTS
    )
    if not controlled:
        beyond = learned  # by a test of its own, which needs no control run
    judgeable = rows.get("judgeable")
    if judgeable is None:
        judgeable = rows.get("noise_known", nothing | True).astype(bool)
        judgeable = (
            judgeable & np.isfinite(rows.p_value) if "p_value" in rows else judgeable
        )
    return rows.assign(
        changed=changed,
        beyond=beyond,
        learned=learned,
        judgeable=judgeable.astype(bool),
        marked=(beyond | learned) if controlled else changed,
        present=nothing | True,
    )


def _keyed(rows: xr.Dataset) -> xr.Dataset:
    """Return rows by what tells them apart in every run: quantity, layer, label, and number."""
    nothing = np.full(rows.sizes["row"], "")
    columns = [rows[n].values if n in rows else nothing for n in (*_TEXTS, "row")]
    parts = [map(str, column) for column in columns]
    joined = map(_KEY.join, zip(*parts, strict=True))
    keys = [f"{key}{_KEY}{number}" for key, number in numbered(joined)]
    rows = rows.drop_vars(_TEXTS, errors="ignore")
    return rows.assign_coords(row=_as_texts(keys))


def numbered(labels: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Give each label with how often it has come until then."""
    seen: Counter[str] = Counter()
    for label in labels:
        seen[label] += 1
        yield label, seen[label]


def _distinct(labels: tuple[str, ...]) -> list[str]:
    """Return labels, numbered where several rows share one."""
    count = Counter(labels)
    return [n if count[n] == 1 else f"{n} ({number})" for n, number in numbered(labels)]


def _as_texts(values: object) -> np.ndarray:
    return np.array(list(values), dtype=object)  # type: ignore[call-overload]
