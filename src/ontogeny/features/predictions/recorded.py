"""Losses that the run wrote down itself, beside the measured one: whether both agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Subject
from ...errors import ArgumentError

# Shares of the recorded loss, see docs/guides/error-rates.md: 3 % of runs with another sample of the
# validation texts, dropout or shorter texts differ by more. Of training losses it is more, as held-out
# texts cost more than those that a run has seen.
FAR = {"validation": 0.05, "training": 0.2}
_LEAST = 0.05  # nats per token
_LUCK = 3.6  # standard errors of the measured loss: 2.6 of the difference of two such samples


def check_recorded(recorded: tuple[tuple[float, float], ...]) -> None:
    """Check pairs of a step and a loss.

    Raises
    ------
    ArgumentError
        If a loss is below 0, or a step stands twice.
    """
    is_wrong = any(loss < 0 for _, loss in recorded)
    if is_wrong or len({step for step, _ in recorded}) < len(recorded):
        raise ArgumentError(
            "recorded must hold pairs of a step and a loss of at least 0, each step once, such as "
            f"[[0, 3.1], [100, 2.7]]; got {[list(pair) for pair in recorded]!r}."
        )


def with_recorded(
    data: xr.Dataset, recorded: tuple[tuple[float, float], ...], of: str
) -> xr.Dataset:
    """Return data with ``loss_recorded`` at its steps, NaN where nothing was written down."""
    by_step = {float(step): loss for step, loss in recorded}
    losses = [by_step.get(float(step), np.nan) for step in data.step.values]
    if not np.isfinite(losses).any():
        return data
    return data.assign(loss_recorded=("step", losses, {"of": of}))


def far_from_record(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give that the loss is far from what the run wrote down, at most checkpoints and the last.

    Control runs decide nothing: the run's number and the measured one should be of one model. Far is
    more than a share of it, and more than the luck of both samples of texts explains.
    """
    if "loss_recorded" not in data or data["loss"].dims != ("step",):
        return
    names = [n for n in ("loss", "loss_recorded", "loss_stderr") if n in data]
    both = data[names].dropna("step")
    if not both.sizes["step"]:
        return
    measured = both["loss"].values.astype(float)
    written = both["loss_recorded"].values
    label = str(data["loss_recorded"].attrs.get("of", ""))
    luck = _LUCK * both["loss_stderr"].values if "loss_stderr" in both else 0.0
    least = np.maximum(FAR.get(label, FAR["training"]) * written, _LEAST)
    is_far = abs(measured - written) > np.maximum(least, luck)
    if not is_far[-1] or is_far.mean() <= 0.5:
        return
    yield Claim(
        Kind.FAR_FROM_RECORD,
        Subject(name, "loss", label=label, step=float(both.step[-1])),
        Certainty.SURE,
        value=float(measured[-1] - written[-1]),
        last=float(measured[-1]),
        units="nats per {token}",
        beside=(Beside("reference", "recorded", float(written[-1])),),
        evidence=(f"{name}/loss", f"{name}/loss_recorded"),
        figure=f"{name}/loss",
    )
