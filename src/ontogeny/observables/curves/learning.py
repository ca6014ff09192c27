"""Learning dynamics as a map, learning progress, stable and convergent learning (row A6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...dynamics import LearningProgress, Recurrence, learning_progress, recurrence
from ...errors import ArgumentError, check_number
from ...figures import Curves, Figure, Section
from ...summary import Names, NumberTable, along
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
    section: ClassVar[Section] = Section(
        title="Learning dynamics ({of})",
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
    tables: ClassVar[Sequence[NumberTable]] = (
        NumberTable(
            "verdicts",
            "What was observed",
            (
                ("since", "T", "steps", "progress from T"),
                ("bound", "C", "as curve", "largest change C"),
                ("bound_step", "step of the largest change", "steps", "reached at"),
                (
                    "late_bound",
                    "largest change in the later half",
                    "as curve",
                    "C in the later half",
                ),
                ("quiet_since", "quiet since", "steps", "within noise from"),
                ("noise", "noise of a difference", "as curve", "noise"),
            ),
            caption="Empty where it was not observed.",
        ),
        NumberTable(
            "map",
            "The map to the next checkpoint",
            (
                ("slope", "slope of the map to the next checkpoint", "1", "slope"),
                ("intercept", "intercept of the map", "as curve", "intercept"),
                ("map_noise", "noise around the map", "as curve", "noise"),
                ("fixed_point", "fixed point of the map", "as curve", "fixed point"),
                ("linear_p", "p-value that the map is a line", "1", "p of a line"),
                ("map_every", "steps between checkpoints of the map", "steps", "checkpoints apart"),
            ),
            caption="Empty: no fixed point distinguishable from none; unevenly spaced steps.",
        ),
    )
    variables: ClassVar[Names] = {
        "change": ("change since the checkpoint before", "as curve"),
        "progressed": ("whether learning progress was observed", "1"),
        "converged": ("whether changes came to stay within the noise", "1"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        if self.noise is not None:
            check_number("noise", self.noise)

    def examined(
        self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]
    ) -> tuple[xr.Dataset, list[str]]:
        """Add verdicts and the fitted map of each layer."""
        enough = np.isfinite(self.tabulated(data)).sum(axis=0) > FEWEST_VALUES
        if not enough.any():
            raise ArgumentError(f"no layer of {self.of!r} has more than {FEWEST_VALUES} values.")
        data = data.isel(layer=np.flatnonzero(enough))
        curves, steps = self.tabulated(data), data.step.values
        reference = curve_reference(data, curves)
        noise = self._noise(nodes[self.of], data.layer.values)
        verdicts = [
            learning_progress(steps, column, floor, reference_index=reference)
            if np.isfinite(floor)
            else None
            for column, floor in zip(curves.T, noise, strict=True)
        ]
        maps = [recurrence(column, steps, reference_index=reference) for column in curves.T]
        usable = curves.copy()
        if reference is not None:
            usable[reference] = np.nan
        rows = [_row(*pair) for pair in zip(verdicts, maps, strict=True)]
        data = data.assign(along("layer", rows)).assign(
            change=(("step", "layer"), np.abs(np.diff(usable, axis=0, prepend=np.nan))),
            noise=("layer", noise),
        )
        return data, _words(f"{self.of} ({self.variable.replace('_', ' ')})", verdicts, maps)

    def _noise(self, node: xr.Dataset, layers: np.ndarray) -> np.ndarray:
        if self.noise is not None:
            return np.full(len(layers), self.noise)
        return floor_of(node, self.variable, self.select, layers.tolist())

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return the changes between checkpoints."""
        return [
            Curves(
                "changes",
                "Change since the checkpoint before",
                value="change",
                y_scale="log",
                caption="Absolute change; checkpoints further apart have more time to change.",
            )
        ]


_VERDICT = ("progressed", "since", "bound", "bound_step", "late_bound", "converged", "quiet_since")
_MAP = ("slope", "slope_stderr", "intercept", "intercept_stderr", "fixed_point", "linear_p")


def _row(verdict: LearningProgress | None, found: Recurrence) -> dict[str, Any]:
    return {
        **{name: np.nan if verdict is None else float(getattr(verdict, name)) for name in _VERDICT},
        **{name: getattr(found, name) for name in _MAP},
        "map_noise": found.noise,
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
