"""Since when a run has memorised its training texts, generalises to others, and overfits.

Where answers are scored, a set is known from the step on from which 95 % of its texts are right,
at every later checkpoint; the interval is that of Clopper and Pearson at each checkpoint. Elsewhere
it is known from the step on from which the loss has 95 % of what it gains over word frequencies in
the end; texts are drawn again.

A run overfits from the step on from which the loss of held-out texts stays above its own minimum,
in 99 % of draws of these texts, by at least 1 % of what they gain over frequencies, and by more
than checkpoints jitter, while that of training texts fell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ...claims.places import OF_TOKENS
from ...observables.crossing import Crossing, crossing, drawn_texts
from ...summary.noise import p_below
from .rises import rise_p_value

KNOWN = 0.95  # share of right answers, or of the final gain
_ROUNDING = 1e-4  # so that exactly 95 % are enough
# Of the share at a checkpoint, below and above: together an interval of 95 %. Whether a set is known
# rests on the lower limit alone, which is given most of the error.
_TAIL_BELOW = 0.04
_TAIL_ABOVE = 0.01
_POWER = 0.95  # with which as many texts as a claim asks for would show it
_MOST_TEXTS = 20_000  # that a claim asks for
_GAINED = 0.01  # level at which a loss is below word frequencies
_SURE = 0.99  # of the draws, of a run that overfits: the place of the minimum is found in them
# Of what held-out texts gain over frequencies: a smaller rise is not named.
_LEAST = 0.01
_JITTER = 0.05  # level of a rise beyond the jitter of checkpoints
# Of the gain: what no checkpoint jitters by, where too few are there to tell by how much they do.
_NO_JITTER = 0.1
_MANY = 6  # checkpoints since 90 % of the gain: enough to tell


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
    is_asked = bool(data.answers_scored)
    steps = data.step.values.astype(float)
    if is_asked:
        shares = _over_units(data, f"{which}_right")
        cross = _exact_crossing(steps, shares)
        ends = shares.mean(axis=1)
        quantity = "set_accuracy"
        units = "1"
    else:
        weights = data[f"{which}_count"].values.astype(float)
        excess = costs - data[f"{which}_line"].values
        cross = crossing(steps, excess, KNOWN * excess[-1] + _ROUNDING, weights)
        ends = np.average(costs, weights=weights, axis=1)
        quantity = "set_loss"
        units = "nats per {token}"
    is_gained = is_asked or p_below(excess[-1], weights) <= _GAINED
    label = "training" if which == "training" else "held-out"
    fields: dict[str, Any] = {
        "subject": Subject(node, quantity, label=label),
        "value": float(ends[-1] - ends[0]),
        "first": float(ends[0]),
        "last": float(ends[-1]),
        "units": units,
        "evidence": (f"{node}/{quantity}",),
        "figure": f"{node}/{quantity}",
        "beside": (*_other(data, quantity, label), *_tokens(data, label)),
    }
    if not is_gained or not math.isfinite(cross.step):
        reason = Reason.BELOW_SHARE if is_gained else Reason.WITHIN_NOISE
        return Claim(kind, certainty=Certainty.OPEN, reason=reason, **fields)
    since: dict[str, Any] = {"since": cross.step, "since_low": cross.low}
    if not cross.certain:
        if is_asked:
            since["needed"] = _texts_needed(float(ends[-1]))
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


def _tokens(data: xr.Dataset, label: str) -> tuple[Beside, ...]:
    """Return how many tokens of the answers are right in the end, where they have several."""
    if "token_accuracy" not in data:
        return ()
    share = float(data.token_accuracy.sel(set=label)[-1])
    return (Beside("reference", OF_TOKENS, share),)


def _exact_crossing(steps: np.ndarray, shares: np.ndarray) -> Crossing:
    """Return from when on enough texts (step, text) are right, by exact limits at each step.

    Draws of texts that are all right are all right, which shows nothing of others. Of several texts
    that stand together the share that is right counts, so that numbers need not be whole.
    """
    from scipy.stats import beta  # takes a while to import

    texts = shares.shape[1]
    right = shares.sum(axis=1)
    low = np.where(right > 0, beta.ppf(_TAIL_BELOW, right, texts - right + 1), 0.0)
    high = np.where(
        right < texts, beta.ppf(1 - _TAIL_ABOVE, right + 1, texts - right), 1.0
    )
    least = KNOWN - _ROUNDING
    place = _for_good(shares.mean(axis=1) >= least)
    earliest = max(_for_good(high >= least) - 1, 0)
    after = np.append(steps, np.inf)
    latest = _for_good(low >= least)
    return Crossing(float(after[place]), float(after[earliest]), float(after[latest]))


@lru_cache(maxsize=64)
def _texts_needed(share: float) -> float:
    """Return how many texts would show it in 95 % of draws, if so many are right; NaN of too many.

    No test finds it with fewer at this level: of right answers the exact one is the most powerful.
    """
    from scipy.stats import binom  # takes a while to import

    texts = np.arange(1, _MOST_TEXTS + 1)
    right = binom.isf(_TAIL_BELOW, texts, KNOWN) + 1  # the fewest that show it
    place = _for_good(binom.sf(right - 1, texts, share) >= _POWER)
    return float(texts[place]) if place < len(texts) else math.nan


def _for_good(is_reached: np.ndarray) -> int:
    """Return the first place from which on all are reached, or their number."""
    missed = np.flatnonzero(~is_reached)
    return int(missed[-1]) + 1 if len(missed) else 0


def _over_units(data: xr.Dataset, name: str) -> np.ndarray:
    dim = f"{name.partition('_')[0]}_text"
    return np.asarray(data[name].transpose("step", dim).values)


def _overfits(node: str, data: xr.Dataset) -> list[Claim]:
    """Return since when the loss of held-out texts is above its minimum, where it is."""
    weights = data.held_count.values.astype(float)
    costs = _over_units(data, "held_cost")
    mean = np.average(costs, weights=weights, axis=1)
    lowest = int(mean.argmin())
    line = float(np.average(data.held_line.values, weights=weights))
    gain = line - float(mean[lowest])
    rise = float(mean[-1] - mean[lowest])
    if lowest == len(mean) - 1 or rise < _LEAST * max(gain, 0.0) or rise <= _ROUNDING:
        return []
    if not _still_falls(data, lowest):
        return []
    step = data.step.values.astype(float)
    begins = _begins(costs, weights)
    shown = np.isfinite(begins).mean()
    since = step[lowest + 1]
    low = _quantile(step, begins, 0.025)
    fields: dict[str, Any] = {
        "subject": Subject(node, "set_loss", label="held-out"),
        "value": rise,
        "first": float(mean[lowest]),
        "last": float(mean[-1]),
        "units": "nats per {token}",
        "since": float(since),
        "since_low": low,
        "evidence": (f"{node}/set_loss",),
        "figure": f"{node}/set_loss",
        "beside": _other(data, "set_loss", "held-out"),
    }
    reason = Reason.FEW_TEXTS if shown < _SURE else None
    if reason is None and not _is_beyond_jitter(mean, gain if gain > 0 else line):
        reason = Reason.SHORT_MEMORY
    if reason is not None:
        return [Claim(Kind.OVERFITS, certainty=Certainty.OPEN, reason=reason, **fields)]
    high = _quantile(step, begins, 0.975)
    return [Claim(Kind.OVERFITS, certainty=Certainty.SURE, since_high=high, **fields)]


def _still_falls(data: xr.Dataset, lowest: int) -> bool:
    """Return whether the loss of training texts surely fell after a step."""
    costs = _over_units(data, "training_cost")
    weights = data.training_count.values.astype(float)
    return crossing(np.zeros(1), costs[-1:], costs[lowest], weights).certain


def _is_beyond_jitter(mean: np.ndarray, gain: float) -> bool:
    """Return whether a course ends above its minimum by more than checkpoints jitter.

    All checkpoints since 90 % of the gain are asked. Where they are few, a rise by more than any
    checkpoint jitters shows it as well.
    """
    lowest = float(mean.min())
    late = mean[int((mean <= lowest + _NO_JITTER * gain).argmax()) :]
    is_large = float(mean[-1]) - lowest > _NO_JITTER * gain
    return rise_p_value(late) <= _JITTER or (len(late) < _MANY and is_large)


def _begins(costs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return for draws of texts the place after their minimum; infinite where the end is no higher.

    The end is compared with the place that is lowest for all texts: each draw's own minimum is
    below its end by construction.
    """
    drawn = drawn_texts(len(weights)) * weights
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
