"""Whether something can be read from a layer, since when, and whether it can be from others too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ..control_kinds import is_null
from ..multiple_tests import holm
from .crossing import Crossing, crossing

LEVEL = 0.05
UNTRAINED = "an untrained model"


@dataclass(frozen=True)
class Course:
    """What was read of one thing from one layer, at the steps at which it was.

    Parameters
    ----------
    data
        With ``x``, ``x_of_text`` and ``x_weights`` of the quantity over the steps, and perhaps
        ``x_untrained`` and ``x_control``.
    quantity
        Its name.
    """

    data: xr.Dataset
    quantity: str

    @classmethod
    def of(cls, data: xr.Dataset, quantity: str, **labels: Any) -> Course | None:
        """Return what was read at some labels; None if nothing was."""
        there = data.sel(labels).dropna("step", subset=[quantity])
        return cls(there, quantity) if there.sizes["step"] else None

    @property
    def values(self) -> np.ndarray:
        """(T,) the value at every step."""
        return np.asarray(self.data[self.quantity].values)

    @property
    def of_text(self) -> np.ndarray:
        """(T, n) what every text says."""
        return np.nan_to_num(self._over_texts("of_text"))

    @property
    def weights(self) -> np.ndarray:
        """(T, n) the weight of every text at every step."""
        return np.nan_to_num(self._over_texts("weights"))

    def _over_texts(self, part: str) -> np.ndarray:
        found = self.data[f"{self.quantity}_{part}"]
        return (
            found.broadcast_like(self.data[f"{self.quantity}_of_text"])
            .transpose("step", "text")
            .values
        )

    def since(self, line: np.ndarray) -> Crossing:
        """Return since when the value is above a line (T, 1) or (T, n) for good.

        Each step counts the texts as its own weights say.
        """
        weights = self.weights
        shares = weights / np.maximum(weights.mean(axis=1, keepdims=True), 1e-30)
        excess = (line - self.of_text) * shares
        counted = weights.any(axis=0).astype(float)
        steps = self.data.step.values
        return crossing(steps, excess, np.zeros(len(counted)), counted)

    @property
    def others(self) -> list[Beside]:
        """What an untrained model and the control runs that judge give, where they were asked."""
        found = []
        values = self.data[self.quantity]
        if f"{self.quantity}_untrained" in self.data:
            untrained = float(self.data[f"{self.quantity}_untrained"][-1])
            last = float(values[-1])
            found.append(Beside("reference", UNTRAINED, untrained, last))
        if f"{self.quantity}_control" in self.data:
            controls = self.data[f"{self.quantity}_control"]
            for run in filter(is_null, controls.run.values.astype(str).tolist()):
                # A control run may be one of fewer steps.
                control = (
                    controls.sel(run=run).dropna("step").isel(step=slice(-1, None))
                )
                if control.sizes["step"]:
                    own = float(values.sel(step=control.step)[0])
                    found.append(Beside("control", run, float(control[0]), own))
        return found


@dataclass(frozen=True)
class Case:
    """What the last step says of one thing in one layer, and since when.

    Parameters
    ----------
    layer, label
        Where, and what.
    course
        What was read.
    p_value
        That its last value is above the nulls.
    since
        When it came to be above them for good.
    nulls
        What they give.
    """

    layer: str
    label: str
    course: Course
    p_value: float
    since: Crossing
    nulls: tuple[Beside, ...]


def claims_of_readable(
    node: str, cases: list[Case], null: str, units: str = ""
) -> Iterator[Claim]:
    """Give for each case whether it can be read, corrected over all of them.

    What an untrained model or a control run gives as well is no finding of the run.

    Parameters
    ----------
    node
        Name of the node.
    cases
        One for each layer and thing.
    null
        The null that stands in the evidence, such as ``"random"``.
    units
        Of the values.
    """
    p_values = holm([case.p_value for case in cases])
    for case, p_value in zip(cases, p_values.tolist(), strict=True):
        quantity = case.course.quantity
        others = case.course.others
        last = float(case.course.values[-1])
        yield Claim(
            Kind.READABLE,
            Subject(node, quantity, case.layer, case.label),
            **_sureness(p_value, case.since, others),
            first=float(case.course.values[0]),
            last=last,
            units=units,
            p_value=p_value,
            corrected_over=len(cases),
            beside=[*case.nulls, *others],
            evidence=(f"{node}/{quantity}", f"{node}/{quantity}_{null}"),
            figure=f"{node}/{quantity}",
        )


def _sureness(
    p_value: float, since: Crossing, others: list[Beside]
) -> Mapping[str, Any]:
    """Return how sure a claim is, and its dates where it is."""
    if p_value > LEVEL:
        return {"certainty": Certainty.OPEN, "reason": Reason.WITHIN_CHANCE}
    if not since.certain:
        return {"certainty": Certainty.OPEN, "reason": Reason.NOT_HELD}
    if any(beside.value >= beside.own for beside in others):
        return {"certainty": Certainty.AS_CONTROLS}
    dates = {"since": since.step, "since_low": since.low, "since_high": since.high}
    known = {k: v if math.isfinite(v) else math.nan for k, v in dates.items()}
    return {"certainty": Certainty.SURE, **known}
