"""Learning dynamics as a map, learning progress, stable and convergent learning (row A6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...dynamics import LearningProgress, Recurrence, learning_progress, recurrence
from ...errors import ArgumentError, check_number
from ...figures import Column, Curves, Section, Table, attach
from ...summary import Names
from .base import OfCurve, curve_reference, floor_of, short

FEWEST_VALUES = 3  # beside the reference step's


@dataclass(frozen=True)
class LearningDynamics(OfCurve):
    """Definitions 10 to 12 on a node's curves: what was observed up to the last step.

    Parameters
    ----------
    of, variable, select, first, last, label
        Which curves, see `ontogeny.observables.curves.OfCurve`; they fall where something is
        learned.
    noise
        Noise of a difference of two values; default: what refitting or resampling gives, as the
        other node measured it for this variable. Where it did not, nothing is said of progress.

    Examples
    --------
    >>> LearningDynamics("concepts-ica").name
    'concepts-ica-learning-dynamics'
    """

    noise: float | None = None

    kind: ClassVar[str] = "learning-dynamics"
    variables: ClassVar[Names] = {
        "change": ("change since the checkpoint before", "as curve"),
        "bound": ("C", "as curve"),
        "noise": ("noise of a difference", "as curve"),
        "since": ("T", "steps"),
        "quiet_since": ("quiet since", "steps"),
        "progressed": ("whether learning progress was observed", "1"),
        "bound_step": ("step of the largest change", "steps"),
        "late_bound": ("largest change in the later half", "as curve"),
        "converged": ("whether changes came to stay within the noise", "1"),
        "slope": ("slope of the map to the next checkpoint", "1"),
        "intercept": ("intercept of the map", "as curve"),
        "map_noise": ("noise around the map", "as curve"),
        "fixed_point": ("fixed point of the map", "as curve"),
        "linear_p": ("p-value that the map is a line", "1"),
        "map_every": ("steps between checkpoints of the map", "steps"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        if self.noise is not None:
            check_number("noise", self.noise)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add verdicts and the fitted map of each layer, figures and sentences."""
        data = self.curves(data, nodes)
        enough = (np.isfinite(self.tabulated(data)).sum(axis=0)) > FEWEST_VALUES
        if not enough.any():
            raise ArgumentError(f"no layer of {self.of!r} has more than {FEWEST_VALUES} values.")
        data = data.isel(layer=np.flatnonzero(enough))
        curves = self.tabulated(data)
        steps = data.step.values
        reference = curve_reference(data, curves)
        if self.noise is None:
            noise = floor_of(nodes[self.of], self.variable, self.select, self.labels(data))
        else:
            noise = np.full(curves.shape[1], self.noise)
        verdicts = [
            learning_progress(steps, column, floor, reference_index=reference)
            if np.isfinite(floor)
            else None
            for column, floor in zip(curves.T, noise, strict=True)
        ]
        maps = [recurrence(column, steps, reference_index=reference) for column in curves.T]
        rows = [_row(*pair) for pair in zip(verdicts, maps, strict=True)]
        changes = np.full(curves.shape, np.nan)
        usable = curves.copy()
        if reference is not None:
            usable[reference] = np.nan
        changes[1:] = np.abs(np.diff(usable, axis=0))
        columns = {name: ("layer", np.array([row[name] for row in rows])) for name in rows[0]}
        data = data.assign(columns).assign(
            change=(("step", "layer"), changes),
            noise=("layer", noise),
        )
        words = _words(f"{self.of} ({self.variable.replace('_', ' ')})", verdicts, maps)
        return attach(data, _section(self.of), _FIGURES, words)


_VERDICT = ("progressed", "since", "bound", "bound_step", "late_bound", "converged", "quiet_since")


def _row(verdict: LearningProgress | None, found: Recurrence) -> dict[str, Any]:
    return {
        **{name: np.nan if verdict is None else float(getattr(verdict, name)) for name in _VERDICT},
        "slope": found.slope,
        "slope_stderr": found.slope_stderr,
        "intercept": found.intercept,
        "intercept_stderr": found.intercept_stderr,
        "map_noise": found.noise,
        "fixed_point": found.fixed_point,
        "linear_p": found.linear_p,
        "map_every": found.every[1] if found.even else np.nan,
    }


def _words(of: str, verdicts: list[LearningProgress | None], maps: list[Recurrence]) -> list[str]:
    known = [verdict for verdict in verdicts if verdict is not None]
    words = _progress(of, known) if known else []
    if len(known) < len(verdicts):
        words.append(
            f"The noise of {of} was not measured in {len(verdicts) - len(known)} of "
            f"{len(verdicts)} layers, of which nothing is said; give noise= to judge them."
        )
    bent = sum(found.linear_p < 0.05 for found in maps)
    if bent:
        words.append(f"In {bent} of {len(maps)} layers the map to the next checkpoint is no line.")
    return words


def _progress(of: str, verdicts: list[LearningProgress]) -> list[str]:
    count, last = len(verdicts), max(v.last_step for v in verdicts)
    progressed = [v for v in verdicts if v.progressed]
    converged = [v for v in verdicts if v.converged]
    text = (
        f"Learning progress in {of} was observed up to step {short(last)} in {len(progressed)} "
        f"of {count} layers"
    )
    if progressed:
        since = sorted(v.since for v in progressed)
        ends = list(dict.fromkeys(short(each) for each in (since[0], since[-1])))
        plural = "s" if len(ends) > 1 else ""
        text += f", below their first value from step{plural} {' to '.join(ends)} on"
    words = [f"{text}."]
    largest = max(verdicts, key=lambda v: v.bound)
    words.append(
        f"No change between neighbouring checkpoints exceeded {largest.bound:.3g} "
        f"(step {short(largest.bound_step)}); any finite series has such a bound."
    )
    still = sum(v.never_moved for v in verdicts)
    if still:
        words.append(f"In {still} of {count} layers no change exceeded the noise: nothing moved.")
    if still < count:
        words.append(
            f"Changes came to stay within the noise to the end in {len(converged)} of "
            f"{count - still} {'other ' if still else ''}layers; that alone does not prove "
            "convergence."
        )
    return words


def _section(of: str) -> Section:
    return Section(
        title=f"Learning dynamics ({of})",
        definition="Learning progress: below the first value for good, from a step T on. Stable "
        "learning: no change exceeds a bound C. Convergent learning: changes vanish in the noise. "
        "The map: the next value as a linear function of the present one, plus noise.",
        symbol="m(f_{θ,t+1}) = E(m(f_{θ,t}), Rₜ)",
        null="A value counts as below the first, and a change as one, beyond what refitting or "
        "resampling gives.",
        care="The definitions speak of endless training; only what was seen is stated, and only "
        "at the checkpoints. Every finite series is stable. The map uses the longest evenly "
        "spaced stretch of checkpoints; its slope is too small in short series.",
        source="Bernas 2025, Definitions 10 to 12",
    )


_FIGURES = [
    Curves(
        "changes",
        "Change since the checkpoint before",
        value="change",
        y_scale="log",
        caption="Absolute change; checkpoints further apart have more time to change.",
    ),
    Table(
        "verdicts",
        "What was observed",
        columns=[
            Column("since", "progress from T"),
            Column("bound", "largest change C"),
            Column("bound_step", "reached at"),
            Column("late_bound", "C in the later half"),
            Column("quiet_since", "within noise from"),
            Column("noise", "noise"),
        ],
        caption="Empty where it was not observed.",
    ),
    Table(
        "map",
        "The map to the next checkpoint",
        columns=[
            Column("slope", "slope", sd="slope_stderr"),
            Column("intercept", "intercept", sd="intercept_stderr"),
            Column("map_noise", "noise"),
            Column("fixed_point", "fixed point"),
            Column("linear_p", "p of a line"),
            Column("map_every", "checkpoints apart"),
        ],
        caption="Empty: no fixed point that could be told from none; unevenly spaced steps.",
    ),
]
