"""Losses that the run wrote down itself, beside the measured one: whether both agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Subject
from ...errors import ArgumentError

# Of the recorded loss, and in nats per token: a training loss of single batches with dropout, and
# a validation loss of other texts, lie closer.
FAR = 0.2
_LEAST = 0.1


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

    Control runs and noise decide nothing: the run's number and the measured one should be of one
    model, and far is more than a fifth of it.
    """
    if "loss_recorded" not in data or data["loss"].dims != ("step",):
        return
    both = data[["loss", "loss_recorded"]].dropna("step")
    if not both.sizes["step"]:
        return
    measured = both["loss"].values.astype(float)
    written = both["loss_recorded"].values
    is_far = abs(measured - written) > np.maximum(FAR * written, _LEAST)
    if not is_far[-1] or is_far.mean() <= 0.5:
        return
    label = str(data["loss_recorded"].attrs.get("of", ""))
    yield Claim(
        Kind.FAR_FROM_RECORD,
        Subject(name, "loss", label=label, step=float(both.step[-1])),
        Certainty.SURE,
        value=float(measured[-1] - written[-1]),
        last=float(measured[-1]),
        units="nats per token",
        beside=(Beside("reference", "recorded", float(written[-1])),),
        evidence=(f"{name}/loss", f"{name}/loss_recorded"),
        figure=f"{name}/loss",
    )
