"""What the losses at single places say: which fell, which rose, and where the answer is right.

It is asked where all texts have the same places. A place fell where its loss is lower at the last
step than at the first one by more than Student's distribution of the paired difference explains,
corrected over all places, and by at least 1 % of a uniform guess. It was learned where it also ends
surely below a uniform guess and below the frequencies of tokens at that place, which shows that what
stands before it is used; control runs stand beside it and decide nothing. Where every place was
learned, or none, the mean loss says the same. Of a place that is not scored nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Subject
from ...claims.places import RIGHT
from ...claims.values import of_controls
from ...dynamics import holm
from ...observables.crossing import crossing
from ...summary.noise import mean_stderr
from ...tails import t_above

LEVEL = 0.01  # of what is sure, over all places of a text
LEAST = 0.01  # of a uniform guess: a smaller change is not named
_FEWEST = 5  # units of texts


def claims_of_places(name: str, data: xr.Dataset) -> Sequence[Claim]:
    """Return the sure claims of places, where some were learned and others were not.

    Parameters
    ----------
    name
        Of the node.
    data
        The node, see `ontogeny.features.predictions.place_losses`.
    """
    if not _is_asked(data):
        return []
    steps = data.dropna("step", subset=["place_loss"], how="all").step.values
    if len(steps) < 2:
        return []
    ends = data.sel(step=steps[[0, -1]])
    cost = ends.place_cost.transpose("step", "place", "text").values
    weights = data.place_count.transpose("place", "text").values
    scored = data.place_scored.values > 0
    change, p_values = _tested(cost[1] - cost[0], weights, scored)
    blind = float(data.place_loss_uniform)
    named = (p_values <= LEVEL) & (abs(change) >= LEAST * blind)
    fell = named & (change < 0)
    rose = named & (change > 0)
    line = np.minimum(data.place_loss_frequencies.values, blind)
    below = _tested(cost[1] - line[:, None], weights, scored)
    learned = fell & (below[0] < 0) & (below[1] <= LEVEL)
    if learned.all() or not learned.any():
        return []
    moved = {
        Kind.CHANGED: fell | rose,
        Kind.LEARNED: learned,
        Kind.GAINED: _answered(ends) & scored,
    }
    claims = []
    for kind, places in moved.items():
        for place in np.flatnonzero(places).tolist():
            claim = _claim(kind, name, ends, place, change[place], p_values[place])
            if kind is Kind.LEARNED:
                claim = replace(claim, **_since(data, place, line[place]))
            claims.append(claim)
    return claims


def _since(data: xr.Dataset, place: int, line: float) -> dict[str, Any]:
    """Return from which step on the loss at a place is below what frequencies cost there."""
    there = data.dropna("step", subset=["place_loss"], how="all").isel(place=place)
    cost = there.place_cost.transpose("step", "text").values
    weights = there.place_count.values
    cross = crossing(there.step.values, cost, np.full(cost.shape[1], line), weights)
    ends = {"since": cross.step, "since_low": cross.low, "since_high": cross.high}
    return {
        name: step if math.isfinite(step) else math.nan for name, step in ends.items()
    }


def _is_asked(data: xr.Dataset) -> bool:
    """Return whether all texts have the same places, and enough of them are there."""
    if (
        "place_cost" not in data
        or "step" not in data.place_cost.dims
        or "run" in data.place_loss.dims
    ):
        return False
    return bool(data.place_of_one_form) and data.sizes["text"] >= _FEWEST


def _tested(
    values: np.ndarray, weights: np.ndarray, scored: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of values (place, text) and its two-sided p-value, NaN where none is scored.

    P-values are corrected over the places that are scored.
    """
    mean = (values * weights).sum(axis=1) / weights.sum(axis=1)
    error = mean_stderr(values, weights)
    freedom = np.maximum((weights > 0).sum(axis=1) - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(error > 0, abs(mean) / error, np.where(mean == 0, 0.0, np.inf))
    return mean, holm(np.where(scored, 2 * t_above(score, freedom), np.nan))


def _answered(ends: xr.Dataset) -> np.ndarray:
    """Return which places went from mostly wrong to right in over 90 % of the texts."""
    share = ends.place_accuracy.transpose("step", "place").values
    return np.asarray((share[0] < 1 / 2) & (share[1] >= RIGHT))


def _claim(
    kind: Kind, name: str, ends: xr.Dataset, place: int, change: float, p_value: float
) -> Claim:
    label = f"place {ends.place.values[place]}"
    if kind is Kind.GAINED:
        first, last = (float(v) for v in ends.place_accuracy.isel(place=place).values)
        subject = Subject(name, "place_accuracy", label=label)
        evidence = (f"{name}/place_accuracy",)
        figure = f"{name}/place-loss"
        ends_of: dict[str, Any] = {
            "first": first,
            "last": last,
            "value": last - first,
            "units": "1",
        }
        return Claim(
            kind, subject, Certainty.SURE, **ends_of, evidence=evidence, figure=figure
        )
    first, last = (float(v) for v in ends.place_loss.isel(place=place).values)
    references = {"uniform": float(ends.place_loss_uniform)}
    references["frequencies"] = float(ends.place_loss_frequencies.isel(place=place))
    beside = [Beside("reference", line, value) for line, value in references.items()]
    return Claim(
        kind,
        Subject(name, "place_loss", label=label),
        Certainty.SURE,
        value=change,
        first=first,
        last=last,
        units="nats per {token}",
        p_value=p_value if math.isfinite(p_value) else math.nan,
        corrected_over=int(ends.place_scored.sum()),
        beside=(*beside, *_controls(ends, place)),
        evidence=(f"{name}/place_loss",),
        figure=f"{name}/place-loss",
    )


def _controls(ends: xr.Dataset, place: int) -> list[Beside]:
    beside = ends.get("place_loss_control")
    if beside is None or "run" not in beside.dims:
        return []
    return of_controls(beside.isel(place=place).diff("step").squeeze("step"))
