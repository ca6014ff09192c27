"""Since when a run has memorised its training texts, generalises to others, and overfits.

Where answers are scored, a set is known from the step on from which 95 % of its texts are right,
at every later checkpoint. Elsewhere it is known from the step on from which the loss has 95 % of
what it gains over word frequencies in the end. A run overfits from the step on from which the loss
of held-out texts stays above its own minimum, in 99 % of draws of these texts and by at least 1 %
of what they gain over frequencies, while that of training texts fell. Intervals are over texts:
those of each set are drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ...observables.crossing import crossing

KNOWN = 0.95  # share of right answers, or of the final gain
_ROUNDING = 1e-4  # so that exactly 95 % are enough
_RESAMPLED = 1000
_SURE = 0.99  # of the draws, of a run that overfits: the place of the minimum is found in them
# Of what held-out texts gain over frequencies: a smaller rise is not named.
_LEAST = 0.01


def claims_of_sets(name: str, data: xr.Dataset) -> Sequence[Claim]:
    """Return what the losses and answers of two sets say.

    Parameters
    ----------
    name
        Of the node.
    data
        The node, see `ontogeny.features.predictions.training_texts`.
    """
    if (
        "set_loss" not in data
        or "step" not in data.set_loss.dims
        or "run" in data.set_loss.dims
    ):
        return []
    data = data.dropna("step", subset=["gap"])
    if data.sizes["step"] < 2:
        return []
    known = [
        _known(Kind.MEMORISED, name, data, "training"),
        _known(Kind.GENERALISES, name, data, "held"),
    ]
    return [*known, *_overfits(name, data)]


def _known(kind: Kind, node: str, data: xr.Dataset, which: str) -> Claim:
    """Return since when the texts of a set are known."""
    costs = _over_units(data, f"{which}_cost")
    if bool(data.answers_scored):
        shares = _over_units(data, f"{which}_right")
        values = -shares
        line = _ROUNDING - KNOWN
        weights = np.ones(shares.shape[1])
        quantity = "set_accuracy"
        units = "1"
        ends = shares.mean(axis=1)
    else:
        weights = data[f"{which}_count"].values.astype(float)
        frequencies = data[f"{which}_line"].values
        gain = frequencies - costs[-1]
        values = costs - frequencies
        line = -KNOWN * gain + _ROUNDING
        quantity = "set_loss"
        units = "nats per token"
        ends = np.average(costs, weights=weights, axis=1)
    cross = crossing(
        data.step.values, values, np.broadcast_to(line, values.shape[1]), weights
    )
    is_gained = bool(data.answers_scored) or _gained(values[-1], weights)
    label = "training" if which == "training" else "held-out"
    fields: dict[str, Any] = {
        "subject": Subject(node, quantity, label=label),
        "value": float(ends[-1] - ends[0]),
        "first": float(ends[0]),
        "last": float(ends[-1]),
        "units": units,
        "evidence": (f"{node}/{quantity}",),
        "figure": f"{node}/{quantity}",
        "beside": _other(data, quantity, label),
    }
    if not is_gained or not math.isfinite(cross.step):
        return Claim(
            kind, certainty=Certainty.OPEN, reason=Reason.WITHIN_NOISE, **fields
        )
    since: dict[str, Any] = {"since": cross.step, "since_low": cross.low}
    if not cross.certain:
        return Claim(
            kind, certainty=Certainty.OPEN, reason=Reason.FEW_TEXTS, **since, **fields
        )
    return Claim(
        kind, certainty=Certainty.SURE, **since, since_high=cross.high, **fields
    )


def _other(data: xr.Dataset, quantity: str, label: str) -> tuple[Beside, ...]:
    """Return the last value of the other set."""
    (other,) = (str(of) for of in data["set"].values if str(of) != label)
    return (Beside("reference", other, float(data[quantity].sel(set=other)[-1])),)


def _gained(excess: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether the last loss is surely below that of word frequencies."""
    return crossing(np.zeros(1), excess[None], np.zeros(len(excess)), weights).certain


def _over_units(data: xr.Dataset, name: str) -> np.ndarray:
    dim = f"{name.partition('_')[0]}_text"
    return np.asarray(data[name].transpose("step", dim).values)


def _overfits(node: str, data: xr.Dataset) -> list[Claim]:
    """Return since when the loss of held-out texts is above its minimum, where it is."""
    weights = data.held_count.values.astype(float)
    costs = _over_units(data, "held_cost")
    mean = np.average(costs, weights=weights, axis=1)
    lowest = int(mean.argmin())
    gain = float(np.average(data.held_line.values, weights=weights) - mean[lowest])
    rise = float(mean[-1] - mean[lowest])
    if lowest == len(mean) - 1 or rise < _LEAST * max(gain, 0.0) or rise <= _ROUNDING:
        return []
    if not _still_falls(data, lowest):
        return []
    step = data.step.values.astype(float)
    begins = _begins(costs, weights)
    shown = np.isfinite(begins).mean()
    since = step[_stays_above(mean)]
    low = _quantile(step, begins, 0.025)
    fields: dict[str, Any] = {
        "subject": Subject(node, "set_loss", label="held-out"),
        "value": rise,
        "first": float(mean[lowest]),
        "last": float(mean[-1]),
        "units": "nats per token",
        "since": float(since),
        "since_low": low,
        "evidence": (f"{node}/set_loss",),
        "figure": f"{node}/set_loss",
        "beside": _other(data, "set_loss", "held-out"),
    }
    if shown < _SURE:
        return [
            Claim(
                Kind.OVERFITS,
                certainty=Certainty.OPEN,
                reason=Reason.FEW_TEXTS,
                **fields,
            )
        ]
    high = _quantile(step, begins, 0.975)
    return [Claim(Kind.OVERFITS, certainty=Certainty.SURE, since_high=high, **fields)]


def _still_falls(data: xr.Dataset, lowest: int) -> bool:
    """Return whether the loss of training texts surely fell after a step."""
    costs = _over_units(data, "training_cost")
    weights = data.training_count.values.astype(float)
    return crossing(np.zeros(1), costs[-1:], costs[lowest], weights).certain


def _stays_above(mean: np.ndarray) -> int:
    """Return the first place after the minimum from which on a curve stays above it."""
    return int(mean.argmin()) + 1


def _begins(
    costs: np.ndarray, weights: np.ndarray, random_state: int = 0
) -> np.ndarray:
    """Return for draws of texts the place after their minimum; infinite where the end is no higher.

    The end is compared with the place that is lowest for all texts: each draw's own minimum is
    below its end by construction.
    """
    count = len(weights)
    rng = np.random.default_rng(random_state)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLED) * weights
    means = drawn @ costs.T / drawn.sum(axis=1, keepdims=True)
    lowest = means.argmin(axis=1)
    whole = int(np.average(costs, weights=weights, axis=1).argmin())
    # At the minimum of all texts, which no draw chose.
    rises = means[:, -1] > means[:, whole]
    return np.where(
        rises, np.minimum(lowest + 1, means.shape[1] - 1).astype(float), np.inf
    )


def _quantile(step: np.ndarray, places: np.ndarray, share: float) -> float:
    """Return the step at a quantile of places, the draws without one left out."""
    there = places[np.isfinite(places)]
    if not len(there):
        return math.nan
    return float(step[int(np.quantile(there, share, method="inverted_cdf"))])
