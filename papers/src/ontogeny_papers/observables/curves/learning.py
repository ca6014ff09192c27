"""Learning dynamics as a map, learning progress, stable and convergent learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError, check_number
from ontogeny.figures import Curves, Section
from ontogeny.observables.catalogued import PresetEntry
from ontogeny.summary import NumberTable
from ontogeny.summary.figures import along
from ontogeny.trees import Nodes

from ...dynamics.progress import LearningProgress, learning_progress
from ...dynamics.recurrence import Recurrence, recurrence
from .base import OfCurve, curve_reference, curves_of, floor_of, short

FEWEST_VALUES = 3  # beside the reference step's


@dataclass(frozen=True)
class LearningDynamics(OfCurve):
    """Definitions 10 to 12 on a node's curves: what was observed up to the last step.

    Parameters
    ----------
    of, variable, select, first, last, label
        Which curves, see `ontogeny.features.curves.OfCurve`; they fall where something is
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

    kind = "learning-dynamics"
    question = "When is a curve learned, stable, forgotten?"
    fewest_steps = 4
    presets = (
        PresetEntry(
            ("everything",),
            {"of": "concepts-ica", "select": {"distance": "procrustes"}},
            220,
        ),
    )
    section = Section(
        title="Learning dynamics ({of})",
        definition="Approach (the report's learning progress): below the first value for good, "
        "from a {checkpoint} T on. Stable: no change exceeds a bound C. Convergent: changes vanish "
        "in the noise. The map: the next value as a linear function of the present one, plus "
        "noise.",
        symbol="m(f_{θ,t+1}) = E(m(f_{θ,t}), Rₜ)",
        null="A value counts as below the first, and a change as one, beyond what refitting or "
        "resampling gives. Nothing here is a test of learning: the distance to the last point of a "
        "random walk falls for good as well. Controls, where there are any, say how often.",
        care="The definitions speak of endless training; only what was seen is stated, and only "
        "at the checkpoints. Every finite series is stable. The map uses the longest evenly "
        "spaced stretch of checkpoints; its slope is too small in short series, and neither a bent "
        "map nor a fixed point says anything about learning: walks have both.",
        source="Bernas 2025, Definitions 10 to 12",
    )
    tables = (
        NumberTable(
            "verdicts",
            "What was observed",
            (
                ("since", "T", "steps", "below the first from T"),
                ("bound", "C", "as curve", "largest change C"),
                (
                    "bound_step",
                    "{checkpoint} of the largest change",
                    "steps",
                    "reached at",
                ),
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
                (
                    "map_every",
                    "{checkpoint}s between checkpoints of the map",
                    "{step}s",
                    "checkpoints apart",
                ),
            ),
            caption="Empty: no fixed point distinguishable from none; unevenly spaced "
            "{checkpoint}s.",
        ),
    )
    variables = {
        "change": ("change since the checkpoint before", "as curve"),
        "progressed": ("whether it fell below the first value for good", "1"),
        "converged": ("whether changes came to stay within the noise", "1"),
    }
    charts = (
        Curves(
            "changes",
            "Change since the checkpoint before",
            value="change",
            y_scale="log",
            caption="Absolute change; checkpoints further apart have more time to change.",
        ),
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        if self.noise is not None:
            check_number("noise", self.noise)

    def examined(self, data: xr.Dataset, nodes: Nodes) -> tuple[xr.Dataset, list[str]]:
        """Add verdicts and the fitted map of each layer."""
        enough = np.isfinite(self.tabulated(data)).sum(axis=0) > FEWEST_VALUES
        if not enough.any():
            raise ArgumentError(
                f"no layer of {self.of!r} has more than {FEWEST_VALUES} values."
            )
        data = data.isel(layer=np.flatnonzero(enough))
        curves = self.tabulated(data)
        steps = data.step.values
        reference = curve_reference(data, curves)
        layers = data.layer.values.tolist()
        noise = (
            floor_of(nodes[self.of], self.variable, self.select, layers)
            if self.noise is None
            else np.full(len(layers), self.noise)
        )
        verdicts = _judged(steps, curves, noise, reference)
        controls = self._controls(nodes[self.of], data, noise)
        maps = [
            recurrence(column, steps, reference_index=reference) for column in curves.T
        ]
        usable = curves.copy()
        if reference is not None:
            usable[reference] = np.nan
        rows = [_row(*pair) for pair in zip(verdicts, maps, strict=True)]
        data = data.assign(along("layer", rows)).assign(
            change=(("step", "layer"), np.abs(np.diff(usable, axis=0, prepend=np.nan))),
            noise=("layer", noise),
        )
        of = f"{self.of} ({self.variable.replace('_', ' ')})"
        return data, [*_words(of, verdicts), *_beside(verdicts, controls)]

    def _controls(
        self, node: xr.Dataset, data: xr.Dataset, noise: np.ndarray
    ) -> list[list[LearningProgress | None]]:
        """Return the same verdicts of each control, at the steps at which it was read."""
        name = f"{self.variable}_control"
        if name not in node:
            return []
        verdicts = []
        reference = curve_reference(data, self.tabulated(data))
        for run in node[name].run.values:
            of_run = node.assign({self.variable: node[name].sel(run=run, drop=True)})
            curve = curves_of(of_run, self.of, self.variable, self.select)
            curve = curve.reindex(step=data.step.values, layer=data.layer.values)
            table = self.tabulated(data.assign(curve=curve))
            enough = np.isfinite(table).sum(axis=0) > FEWEST_VALUES
            usable = np.where(enough, noise, np.nan)
            verdicts.append(_judged(data.step.values, table, usable, reference))
        return verdicts


_VERDICT = (
    "progressed",
    "since",
    "bound",
    "bound_step",
    "late_bound",
    "converged",
    "quiet_since",
)
_MAP = (
    "slope",
    "slope_stderr",
    "intercept",
    "intercept_stderr",
    "fixed_point",
    "linear_p",
)


def _judged(
    steps: np.ndarray, curves: np.ndarray, noise: np.ndarray, reference: int | None
) -> list[LearningProgress | None]:
    return [
        learning_progress(steps, column, floor, reference_index=reference)
        if np.isfinite(floor)
        else None
        for column, floor in zip(curves.T, noise, strict=True)
    ]


def _row(verdict: LearningProgress | None, fit: Recurrence) -> dict[str, Any]:
    return {
        **{
            name: np.nan if verdict is None else float(getattr(verdict, name))
            for name in _VERDICT
        },
        **{name: getattr(fit, name) for name in _MAP},
        "map_noise": fit.noise,
        "map_every": fit.every[1] if fit.even else np.nan,
    }


def _words(of: str, verdicts: list[LearningProgress | None]) -> list[str]:
    judged = [verdict for verdict in verdicts if verdict is not None]
    words = _progress(of, judged) if judged else []
    if len(judged) < len(verdicts):
        words.append(
            f"The noise of {of} was not measured in {len(verdicts) - len(judged)} of "
            f"{len(verdicts)} layers, of which nothing is said; give noise= to judge them."
        )
    return words


def _beside(
    verdicts: list[LearningProgress | None],
    controls: list[list[LearningProgress | None]],
) -> list[str]:
    """Return what runs that learned nothing show of the same, or that there are none."""
    judged = [v for run in controls for v in run if v is not None]
    if not any(v is not None for v in verdicts):
        return []
    if not judged:
        return ["A run that moved as far and learned nothing may look the same."]
    fell = sum(v.progressed for v in judged)
    quiet = sum(v.converged for v in judged)
    return [
        (
            f"Of {len(controls)} controls, which moved as far and learned nothing, {fell} of "
            f"{len(judged)} curves fell below their first value for good as well, and {quiet} came "
            "to stay within the noise."
        )
    ]


def _progress(of: str, verdicts: list[LearningProgress]) -> list[str]:
    count = len(verdicts)
    last = max(v.last_step for v in verdicts)
    progressed = [v for v in verdicts if v.progressed]
    converged = [v for v in verdicts if v.converged]
    text = (
        f"{of[:1].upper()}{of[1:]} fell for good in {len(progressed)} of {count} layers, as seen "
        f"up to {{step}} {short(last)}"
    )
    if progressed:
        since = sorted(v.since for v in progressed)
        ends = list(dict.fromkeys(short(step) for step in (since[0], since[-1])))
        plural = "s" if len(ends) > 1 else ""
        text += f": below the first value from {{step}}{plural} {' to '.join(ends)} on"
    words = [f"{text}."]
    largest = max(verdicts, key=lambda v: v.bound)
    words.append(
        f"No change between neighbouring checkpoints exceeded {largest.bound:.3g} "
        f"({{step}} {short(largest.bound_step)}); any finite series has such a bound."
    )
    still = sum(v.never_moved for v in verdicts)
    if still:
        words.append(
            f"In {still} of {count} layers no change exceeded the noise: nothing moved."
        )
    if still < count:
        words.append(
            f"Changes came to stay within the noise to the end in {len(converged)} of "
            f"{count - still} {'other ' if still else ''}layers; a learning rate that falls to "
            "zero does that by itself."
        )
    return words
