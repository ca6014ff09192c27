"""Claims of a loss beside those of its row: what it passes and gains from, and if it rose again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Reference, Subject
from ...tails import t_limit
from ...trees import found_in
from .renamed_words import surely_below_blind

# What the loss may pass, by the ends of its variables' names; the last two are means of the
# model's own predictions, below which it uses more than that.
REFERENCES = {
    "uniform": Reference.UNIFORM,
    "unigram": Reference.FREQUENCIES,
    "bigram": Reference.BIGRAMS,
    "own_unigram": Reference.OWN_FREQUENCIES,
    "own_bigram": Reference.OWN_BIGRAMS,
}
GAINS = ("frequencies", "before", "context")
KNOWN = 0.01  # share of renamings that cost as little: below, the words are known
# Of the lowest loss, and of the fall to it: less is not said to rise again.
LEAST_RISE = 0.02
LEAST_OF_FALL = 0.01


def claims_of_loss(name: str, data: xr.Dataset) -> list[Claim]:
    """Return the claims of the node of a loss.

    Parameters
    ----------
    name
        Of the node.
    data
        With ``loss`` over steps, and what `ontogeny.features.predictions.loss` derives of it.
    """
    known = data["loss"].dropna("step")
    if known.ndim > 1 or not known.size:
        return []
    claims = [
        _passes(name, data, known, ending, label.value)
        for ending, label in REFERENCES.items()
        if _is_line(data, ending)
    ]
    claims += _renamed(name, data, known)
    if known.size > 1:
        claims += _gains(name, data)
        claims += _rises_again(name, data, known)
    return claims


def _is_line(data: xr.Dataset, ending: str) -> bool:
    value = found_in(data, f"loss_{ending}")
    if value is None or not set(value.dims) <= {"step"}:
        return False
    return ending == "uniform" or f"loss_below_{ending}" in data


def _passes(
    name: str, data: xr.Dataset, known: xr.DataArray, ending: str, label: str
) -> Claim:
    """Return whether, and since when, the loss is below what a guess costs."""
    line = data[f"loss_{ending}"].broadcast_like(data["loss"]).sel(step=known.step)
    level = float(line[-1])
    since, low, high = _ends(data, f"loss_below_{ending}")
    if ending == "uniform":
        since = low = high = _surely_below_blind_from(data)
    fields: dict[str, Any] = {
        "first": float(known[0]),
        "last": float(known[-1]),
        "units": str(data["loss"].attrs.get("units", "")),
        "beside": (Beside("reference", label, level),),
        "evidence": (f"{name}/loss", f"{name}/loss_{ending}"),
    }
    subject = Subject(name, "loss", label=label)
    if math.isfinite(high):
        dates: dict[str, Any] = {"since": since, "since_low": low, "since_high": high}
        if known.size == 1:  # one model is below it, and nobody knows since when
            dates = {}
        return Claim(Kind.PASSES, subject, Certainty.SURE, **fields, **dates)
    if not bool((known < line).any()):
        reason = Reason.NOT_REACHED
    elif known[-1] >= line[-1]:
        reason = Reason.NOT_HELD
    else:  # on these texts, or without texts of its own
        reason = Reason.FEW_TEXTS
    return Claim(Kind.PASSES, subject, Certainty.OPEN, reason, **fields)


def _surely_below_blind_from(data: xr.Dataset) -> float:
    """Return the step from which on the loss is below a uniform guess with any such texts, or NaN."""
    if "loss_of_text" not in data or "loss_weights" not in data:
        return math.nan
    below = surely_below_blind(data, "loss")
    measured = data["loss"].notnull().values
    since = math.nan
    for step, is_below, is_known in zip(data.step.values, below, measured, strict=True):
        if is_known and not is_below:
            since = math.nan
        elif is_known and math.isnan(since):
            since = float(step)
    return since


def _gains(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give when half of each gain was there that is sure with any choice of texts."""
    for kind in GAINS:
        since, low, high = _ends(data, f"loss_half_{kind}")
        is_of_base = (
            since == data.step[0] and found_in(data, "loss_trained_start", 0.0) > 0
        )
        if math.isfinite(high) and data.sizes["step"] > 2 and not is_of_base:
            dates: dict[str, Any] = {
                "since": since,
                "since_low": low,
                "since_high": high,
            }
            evidence = (f"{name}/loss_half_{kind}",)
            subject = Subject(name, "loss", label=kind)
            yield Claim(
                Kind.GAINS_FROM, subject, Certainty.SURE, **dates, evidence=evidence
            )


def _renamed(name: str, data: xr.Dataset, known: xr.DataArray) -> Iterator[Claim]:
    """Give that the texts cost more with their words consistently renamed, where all of them do."""
    if "loss_p_known" not in data or "step" not in data["loss_p_known"].dims:
        return
    last = data.dropna("step", subset=["loss_p_known"])
    if not last.sizes["step"]:
        return
    last = last.isel(step=-1)
    if float(last["loss_p_known"]) > KNOWN:
        return
    low, high = np.quantile(last["loss_renamed"].values[1:], [0.01, 0.99])
    yield Claim(
        Kind.DIFFERS,
        Subject(name, "loss", label=Reference.RENAMED.value),
        Certainty.SURE,
        last=float(known[-1]),
        units=str(data["loss"].attrs.get("units", "")),
        beside=tuple(
            Beside("null", Reference.RENAMED.value, float(end)) for end in (low, high)
        ),
        p_value=float(last["loss_p_known"]),
        evidence=(f"{name}/loss_renamed",),
    )


def _ends(data: xr.Dataset, name: str) -> list[float]:
    """Return a step with both ends of its interval, NaN where it is not known."""
    return [
        float(found_in(data, f"{name}{end}", math.nan)) for end in ("", "_low", "_high")
    ]


def _rises_again(name: str, data: xr.Dataset, known: xr.DataArray) -> Iterator[Claim]:
    """Give that the last loss is surely above the lowest, and when that was.

    Steps of the interval have a loss that is not surely above the lowest: paired over texts where
    each has one of its own, at a level that allows for the choice among all steps.
    """
    losses = known.values.astype(float)
    steps = known.step.values
    at = int(losses.argmin())
    above = losses - losses[at] > _noise_of_choice(data, steps, at)
    rise = float(losses[-1] - losses[at])
    # The lowest may be next to nothing, as of sums that are all right.
    fall = losses[0] - losses[at]
    least = max(LEAST_RISE * abs(losses[at]), LEAST_OF_FALL * fall)
    if not above[-1] or rise <= least:
        return
    before = steps[: at + 1][~above[: at + 1]]
    after = steps[at:][~above[at:]]
    yield Claim(
        Kind.RISES_AGAIN,
        Subject(name, "loss"),
        Certainty.SURE,
        value=rise,
        first=float(losses[at]),
        last=float(losses[-1]),
        units=str(data["loss"].attrs.get("units", "")),
        since=float(steps[at]),
        since_low=float(before[0]),
        since_high=float(after[-1]),
        evidence=(f"{name}/loss",),
    )


def _noise_of_choice(data: xr.Dataset, steps: Sequence[int], at: int) -> np.ndarray:
    """Return the noise of each loss against the lowest, which was chosen among all (T,)."""
    of_text = found_in(data, "loss_of_text")
    if of_text is None or set(of_text.dims) != {"step", "text"}:
        error = found_in(data, "loss_stderr")
        if error is None or error.dims != ("step",) or not error.notnull().any():
            return np.zeros(len(steps))
        return np.full(
            len(steps), 1.96 * math.sqrt(2) * float(error.dropna("step")[-1])
        )
    values = of_text.transpose("step", "text").sel(step=steps)
    weights = found_in(data, "loss_weights", xr.ones_like(of_text)).sel(step=steps)
    share = (weights / weights.sum("text")).transpose("step", "text").values
    change = values.values - values.values[at]
    spread = share * (change - np.nansum(share * change, axis=1, keepdims=True))
    count = int((np.nan_to_num(share) > 0).any(axis=0).sum())
    if count < 2:
        return np.full(len(steps), math.inf)
    errors = np.sqrt(np.nansum(spread**2, axis=1) * count / (count - 1))
    return np.asarray(t_limit(0.025 / len(steps), count - 1) * errors)
