"""The rows of the developmental chart, as a result holds them: one schema for all that reads them.

The names of the variables are those of the fields, of the columns in files and of what the page's
scripts read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..control_kinds import NO_NULLS, kind_of
from ..dynamics.reasons import OPEN, Reason
from ..figures import Curves, Figure
from .formats import plain_text
from .labels import short_names
from .voice import OF_STEPS, Voice

# Variables of rows that a row holds as numbers.
NUMBERS = (
    "first_value",
    "last_value",
    "half_step",
    "half_step_low",
    "half_step_high",
    "settled_step",
    "p_value",
    "p_uncorrected",
    "p_order",
    "p_slow",
    "p_control",
    "p_learned",
    "p_lost",
    "controls_needed",
    "change_floor",
)

_OF_CONTROLS = ("control_first", "control_last", "control_half_step", "run_change")
_OF_ROW = "those of the row's quantity"

# Every variable of rows in a result, in words and with its units.
NAMES = {
    "row": ("row of the developmental chart", ""),
    "row_name": ("row of the developmental chart, without its layer", ""),
    "row_kind": ("what all rows of the quantity are called", ""),
    "row_compares": ("distance or similarity of a row", ""),
    "row_to": ("which {checkpoint} a row is relative to", ""),
    "row_layer": ("module path of the row", ""),
    "row_quantity": ("quantity of the row", ""),
    "noise_known": ("whether the noise of the row was measured", ""),
    "progress": ("share of the way from the first to the last value", "1"),
    "distinct": ("changed above the noise floor", ""),
    "half_step": ("half-change {point}", "{step}s"),
    "settled_step": (
        "{checkpoint} from which on it moves less than its noise, half of it over",
        "{step}s",
    ),
    "first_value": ("first value", _OF_ROW),
    "last_value": ("last value", _OF_ROW),
    "moved": ("changed by more than its noise", ""),
    "only_memory": (
        "explained by the memory of the reference {checkpoint} as well",
        "",
    ),
    "own_value": ("a value of its own, no distance to another {checkpoint}", ""),
    "own_change_test": ("whether the row has a test of change on its own examples", ""),
    "p_uncorrected": ("p-value against noise with short memory", "1"),
    "p_order": ("p-value against any order of the {checkpoint}s", "1"),
    "p_slow": ("p-value against slow noise", "1"),
    "smallest_p": ("smallest p-value that so many {checkpoint}s could give", "1"),
    "p_value": (
        "p-value against noise with short memory, corrected over the page",
        "1",
    ),
    "reason": ("which test decided that it did not change", ""),
    "p_control": ("p-value against control runs, corrected over the page", "1"),
    "p_control_change": ("p-value of the change against control runs", "1"),
    "p_control_half": ("p-value of the half-change {point} against control runs", "1"),
    "p_control_share": ("share of a test that it counts as against control runs", "1"),
    "control_first": ("first value in each control run", _OF_ROW),
    "control_last": ("last value in each control run", _OF_ROW),
    "control_half_step": ("half-change {point} in each control run", "{step}s"),
    "run_change": ("change at the {checkpoint}s of each control run", _OF_ROW),
    "run_half_step": (
        "half-change {point} at the {checkpoint}s of each control run",
        "{step}s",
    ),
    "lead": ("last value above the null that it must beat", "standard errors"),
    "change_floor": ("noise of the change from first to last", _OF_ROW),
    "p_learned_uncorrected": ("p-value of the gain where nothing was learned", "1"),
    "p_learned": (
        "p-value of the gain where nothing was learned, corrected over the page",
        "1",
    ),
    "p_lost_uncorrected": ("p-value of the loss where nothing was forgotten", "1"),
    "p_lost": (
        "p-value of the loss where nothing was forgotten, corrected over the page",
        "1",
    ),
    "controls_needed": ("control runs of the same spread that would decide", "runs"),
    "outside": (
        "on one side of all control runs; of performance on the better one",
        "",
    ),
    "not_improved": ("performance surely no better than at first", ""),
    "judgeable": ("whether it changed can be said", ""),
    "can_learn": ("performance on held-out texts or labels", ""),
    "better_sign": ("direction of better performance", "1"),
    "changed": ("changed by more than noise and chance", ""),
    "beyond": ("changed beyond controls", ""),
    "learned": ("performance improved more than it does where nothing is learned", ""),
    "lost": ("performance got worse by more than texts and motion give", ""),
}


@dataclass(frozen=True)
class ControlRow:
    """The same row of a control run; NaN where it is unknown.

    ``run_change`` is the change of the run itself at the steps of this control.
    """

    name: str
    first_value: float
    last_value: float
    half_step: float
    run_change: float = math.nan

    @property
    def change(self) -> float:
        """By how much it changed."""
        return self.last_value - self.first_value


@dataclass(frozen=True)
class RunRow:
    """The row of one of several runs; ``firm`` is whether it counts as shown in that run.

    ``controlled`` is whether the run was studied with control runs.
    """

    name: str
    row: Row
    firm: bool
    controlled: bool


@dataclass(frozen=True)
class Row:
    """One row: how far one quantity in one layer has gone at every step, and how sure that is.

    ``progress`` and ``distinct`` have the shape of ``steps``; steps are in training steps, NaN
    where there is none. ``variable`` names what it follows in the result. ``changed``, ``beyond``,
    ``learned`` and ``lost`` are the verdicts of the result, and ``reason`` is the test by which it
    did not change (`ontogeny.dynamics.reasons.Reason`). ``own_value`` is whether it follows a value
    of its own and no distance to a reference step, and ``within_null`` whether its last value lies
    within a null of the quantity. ``outside`` is whether it lies on one side of all its control
    runs, of performance on the better one, and ``not_improved`` whether performance is surely no
    better than at first. ``own_change_test`` is whether an exact test of the same examples, and no
    order of steps, says that it changed. ``measure`` says what its numbers are: their units, or a
    distance to what. ``kind`` is what of its label all rows of its
    quantity share. In a comparison, ``runs`` holds the same row of every run.
    """

    label: str
    quantity: str
    kind: str
    variable: str
    layer: str
    short_layer: str
    section: str
    role: str
    units: str
    steps: np.ndarray
    progress: np.ndarray
    distinct: np.ndarray
    first_value: float
    last_value: float
    half_step: float
    half_step_low: float
    half_step_high: float
    settled_step: float
    p_value: float
    p_uncorrected: float
    p_order: float
    p_slow: float
    p_control: float
    p_learned: float
    p_lost: float
    controls_needed: float
    change_floor: float
    noise_known: bool
    moved: bool
    reason: str
    judgeable: bool
    changed: bool
    beyond: bool
    learned: bool
    can_learn: bool
    own_value: bool
    outside: bool
    not_improved: bool
    within_null: bool
    controls: tuple[ControlRow, ...]
    runs: tuple[RunRow, ...] = ()
    measure: str = ""
    own_change_test: bool = False
    lost: bool = False

    @property
    def name(self) -> str:
        """What the row is called."""
        return self.label or self.quantity

    @property
    def change(self) -> float:
        """By how much it changed from its first to its last value."""
        return self.last_value - self.first_value

    @property
    def has_half(self) -> bool:
        """Whether a half-change step is known; two checkpoints alone tell none."""
        if self.runs:
            return math.isfinite(self.half_step) and any(
                run.row.has_half for run in self.runs
            )
        return len(self.steps) > 2 and math.isfinite(self.half_step)

    @property
    def controlled(self) -> bool:
        """Whether it was compared with control runs: measured in them, and in enough of them."""
        return bool(self.controls) and (math.isfinite(self.p_control) or self.beyond)

    @property
    def firm(self) -> bool:
        """Whether its change lies within no null: of noise, of chance, or of its control runs."""
        no_more = self.controlled and not (self.beyond or self.learned or self.lost)
        return self.changed and not no_more and not self.within_null

    @property
    def nulls(self) -> list[ControlRow]:
        """The control runs that judge it."""
        return [
            control
            for control in self.controls
            if kind_of(control.name) not in NO_NULLS
        ]


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


def counted_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that count in the verdict: all but weight change."""
    return [row for row in rows if row.role != "motion"]


def half_steps(rows: Sequence[Row]) -> list[float]:
    """Return when rows are half-way: those that changed beyond their motion, else all changed."""
    halved = [
        row
        for row in counted_rows(rows)
        if row.changed and math.isfinite(row.half_step)
    ]
    return [
        row.half_step for row in [r for r in halved if r.learned or r.beyond] or halved
    ]
