"""Rows read of the nodes of a result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..dynamics.reasons import OPEN, Reason
from ..figures import Curves, Figure
from .formats import plain_text
from .labels import short_names
from .row_variables import NUMBERS
from .rows import ControlRow, Row
from .voice import OF_STEPS, Voice

_OF_CONTROLS = ("control_first", "control_last", "control_half_step", "run_change")

Bands = Mapping[str, Sequence[tuple[str, str]]]
"""Lower and upper ends of the nulls of a variable, as its figures draw them."""


def bands_of(figures: Iterable[Figure]) -> dict[str, list[tuple[str, str]]]:
    """Return the ends of the nulls that are drawn over steps, by variable; not of controls."""
    bands: dict[str, list[tuple[str, str]]] = {}
    for figure in figures:
        if isinstance(figure, Curves):
            ends = [
                (band.lower, band.upper) for band in figure.bands if not band.control
            ]
            bands.setdefault(figure.value, []).extend(ends)
    return bands


def ends_of(data: xr.Dataset) -> list[str]:
    """Return to which checkpoint each row is relative: ``"last"`` where the reference is the last.

    Examples
    --------
    >>> rows = xr.Dataset({"row_to": ("row", ["reference"])}, {"step": [0, 700]})
    >>> ends_of(rows), ends_of(rows.assign_attrs(reference_step=700))
    (['reference'], ['last'])
    """
    if "row_to" not in data.variables:
        return [""] * data.sizes["row"]
    ends = list(map(plain_text, data["row_to"].values))
    steps = data["step"].values.tolist() if "step" in data.variables else []
    if not steps or data.attrs.get("reference_step") != steps[-1]:
        return ends
    return ["last" if end == "reference" else end for end in ends]


def end_given(node: xr.Dataset) -> set[str]:
    """Return the variables of a node whose rows are relative to the last checkpoint."""
    if "row_quantity" not in node.variables:
        return set()
    names = map(plain_text, node["row_quantity"].values)
    return {
        name for name, end in zip(names, ends_of(node), strict=True) if end == "last"
    }


def read_rows(
    dataset: xr.Dataset,
    title: str,
    section: str,
    role: str,
    bands: Bands | None = None,
    reference: int | None = None,
    voice: Voice = OF_STEPS,
) -> list[Row]:
    """Return the rows of one node, or none where it has no ``progress``."""
    if "progress" not in dataset or set(dataset["progress"].dims) != {"row", "step"}:
        return []
    data = dataset.transpose("row", "step", ...)
    count = data.sizes["row"]

    def column(name: str, missing: Any = math.nan) -> list[Any]:
        return list(data[name].values) if name in data.variables else [missing] * count

    labels, layers, kinds, compares, ends = (
        list(map(plain_text, column(name, "")))
        for name in ("row", "row_layer", "row_kind", "row_compares", "row_to")
    )
    # Results of earlier versions name rows by their labels alone.
    called = list(map(plain_text, column("row_name"))) if "row_name" in data else labels
    paths = [layer for layer in layers if layer]
    short = dict(zip(paths, short_names(paths), strict=True))
    numbers = {name: np.asarray(column(name), dtype=float) for name in NUMBERS}
    fields: dict[str, Any] = {**numbers, **_verdicts(data, count)}
    progress = data["progress"].values.astype(float)
    distinct = data["distinct"].values if "distinct" in data else np.isfinite(progress)
    names = column("row_quantity", "")
    controls = _controls(data, count)
    to_last = [end == "last" for end in ends_of(data)]
    return [
        Row(
            label=labels[i],
            quantity=called[i] or title,
            kind=kinds[i] or called[i] or title,
            variable=plain_text(names[i]),
            layer=layers[i],
            short_layer=short.get(layers[i], ""),
            section=section,
            role=role,
            units=_units(data, names[i]),
            measure=_measure(compares[i], ends[i], reference, voice)
            if compares[i]
            else _units(data, names[i]),
            steps=data["step"].values.astype(int),
            progress=progress[i],
            distinct=distinct[i].astype(bool),
            within_null=_within_null(data, str(names[i]), layers[i], bands or {}),
            controls=controls[i],
            to_last=to_last[i],
            **{name: _plain(values[i]) for name, values in fields.items()},
        )
        for i in range(count)
    ]


def _verdicts(data: xr.Dataset, count: int) -> dict[str, np.ndarray]:
    """Return what is said of every row as truth values."""

    def flags(name: str, missing: Any = False) -> np.ndarray:
        # "moved" may be a measure, too.
        if name in data.variables and data[name].dims == ("row",):
            return np.nan_to_num(data[name].values.astype(float)) > 0
        return np.broadcast_to(np.asarray(missing, dtype=bool), count)

    changed = flags("changed")
    learned = flags("learned")
    noise_known = flags("noise_known", True)
    tested = (
        np.isfinite(data["p_value"].values)
        if "p_value" in data
        else np.ones(count, bool)
    )
    verdicts = {
        "changed": changed,
        "beyond": flags("beyond", learned),
        "learned": learned,
        "lost": flags("lost"),
        "can_learn": flags("can_learn", learned),
        "noise_known": noise_known,
        "moved": flags("moved", changed),
        "own_change_test": flags("own_change_test"),
        "judgeable": flags("judgeable", changed | (noise_known & tested)),
        "own_value": flags("own_value"),
        "outside": flags("outside"),
        "not_improved": flags("not_improved"),
    }
    reason = _reasons(data, verdicts, flags("only_memory"))
    return {**verdicts, "reason": reason}


def _reasons(
    data: xr.Dataset, flags: Mapping[str, np.ndarray], only_memory: np.ndarray
) -> np.ndarray:
    """Return why rows did not change; where a result does not say so, from what else it says."""
    is_open = ~flags["judgeable"]
    decided = {
        Reason.UNMEASURED: is_open & ~flags["noise_known"],
        Reason.REFERENCE: is_open & only_memory,
        Reason.FEW: is_open,
        Reason.NONE: flags["changed"],
        Reason.SHORT: flags["moved"],
    }
    found = np.select(
        list(decided.values()), list(map(str, decided)), str(Reason.WITHIN)
    )
    stated = data["reason"].values if "reason" in data.variables else found
    known = np.isin(stated, list(Reason)) & (np.isin(stated, OPEN) == is_open)
    known &= (stated == Reason.UNMEASURED) == decided[Reason.UNMEASURED]
    agrees = known & ((stated == Reason.NONE) == flags["changed"])
    return np.where(agrees, stated, found).astype(object)


def _controls(data: xr.Dataset, count: int) -> list[tuple[ControlRow, ...]]:
    """Return what control runs gave for every row; nothing of those in which it was not read."""
    parts = [name for name in _OF_CONTROLS if name in data]
    if not set(parts) - {"run_change"}:
        return [()] * count
    first = data[parts[0]]
    names = first["run"].values if "run" in first.coords else range(first.sizes["run"])
    unknown = np.full((count, len(names)), np.nan)
    tables = [
        data[name].transpose("row", "run").values.astype(float)
        if name in parts
        else unknown
        for name in _OF_CONTROLS
    ]
    rows = []
    for i in range(count):
        of_runs = zip(names, *(table[i].tolist() for table in tables), strict=True)
        some = [one for one in of_runs if any(map(math.isfinite, one[1:-1]))]
        rows.append(tuple(ControlRow(plain_text(name), *v) for name, *v in some))
    return rows


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _units(data: xr.Dataset, name: Any) -> str:
    """Return the units of the variable that a row follows, empty where it has none."""
    units = (
        plain_text(data[name].attrs.get("units", "")) if name in data.variables else ""
    )
    return "" if units == "1" else units


def _measure(compares: str, to: str, reference: int | None, voice: Voice) -> str:
    """Return to what a row is a distance, or a similarity."""
    end = f"the reference {voice.checkpoint}"
    if reference is not None:
        end = f"{voice.unit} {reference:,}"
    if to == "last":
        end = f"the last {voice.checkpoint}"
    return f"{compares} to {end}"


def _within_null(data: xr.Dataset, name: str, layer: str, bands: Bands) -> bool:
    """Return whether the last value lies within a null, where a row is a layer of the variable."""
    value = _last(data, name, layer)
    return any(
        _last(data, low, layer) <= value <= _last(data, high, layer)
        for low, high in bands.get(name, ())
    )


def _last(data: xr.Dataset, name: str, layer: str) -> float:
    """Return the last known value of a variable over layers and steps, NaN of any other."""
    if name not in data or not set(data[name].dims) <= {"layer", "step"}:
        return math.nan
    array = data[name]
    if "layer" in array.dims:
        array = array.isel(layer=[str(path) == layer for path in array["layer"].values])
    values = np.asarray(array.values, dtype=float).ravel()
    values = values[np.isfinite(values)]
    return float(values[-1]) if len(values) else math.nan
