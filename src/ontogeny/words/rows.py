"""The rows of the developmental chart: one schema for all that reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..claims import Claim, Kind
from ..control_kinds import NO_NULLS, kind_of
from .labels import layer_groups

# What rows are called where they are counted.
LAYERS = "layers"
SOME_LAYERS = "layers that were read"
MEASURES = "measures"


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
    order of steps, says that it changed. ``to_last`` is whether it is relative to the last checkpoint,
    so that its end is given. ``measure`` says what its numbers are: their units, or a
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
    to_last: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether it counts in the verdict: what the model does, and not 0 at the end anyway."""
        return self.role != "motion" and not self.to_last

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


def counted_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that count in the verdict."""
    return [row for row in rows if row.is_counted]


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


def layers_of_rows(
    rows: Iterable[tuple[str, Row]], claims: Iterable[Claim]
) -> dict[tuple[str, str], list[str]]:
    """Return the layer of each row of a quantity, by node and variable.

    Parameters
    ----------
    rows
        Rows of the chart, each with the path of its node.
    claims
        Of the page. Values that are held against chance are rows as well, where they are more.
    """
    drawn: dict[tuple[str, str], list[str]] = {}
    for path, row in rows:
        drawn.setdefault((path, row.variable), []).append(row.layer)
    held: dict[tuple[str, str], list[str]] = {}
    for key in dict.fromkeys(c.subject.key for c in claims if c.kind is Kind.DIFFERS):
        node, quantity, layer, *_ = key
        held.setdefault((node, quantity), []).append(layer)
    both = {*drawn, *held}
    return {key: max(drawn.get(key, []), held.get(key, []), key=len) for key in both}


def rows_called(layers: Sequence[str], blocks: int) -> str:
    """Return what rows are called that lie in these layers of a model of so many blocks.

    Examples
    --------
    >>> rows_called(["layers.0.mlp", "layers.1.mlp"], 2)
    'layers'
    >>> rows_called(["layers.0.mlp", "layers.1.mlp"], 30)
    'layers that were read'
    >>> rows_called(["layers.0.mlp", "layers.0.mlp"], 2)
    'measures'
    """
    if not all(layers) or len({*layers}) < len(layers):
        return MEASURES
    depths = [label for label in layer_groups(layers).labels if label.isdigit()]
    return SOME_LAYERS if 0 < len(depths) < blocks else LAYERS
