"""Why the loss of a run that begins trained moved, where that is not learning or forgetting.

It reads what the node of the loss holds: the gain as it is, at the best temperature, and whatever
words the model prefers.
"""

from __future__ import annotations

import xarray as xr

from .vocabulary import Reason

# Of what a model knows of places: a smaller change of the loss is not named.
LEAST = 0.01
_LEVEL = 0.05  # of what is shown, as of the verdicts
_MOST = 0.1  # of a change: what is left where one kind makes it


def moved_by(data: xr.Dataset) -> Reason | None:
    """Return what alone moved a loss since a trained start; None where that is not known.

    Examples
    --------
    >>> parts = {
    ...     "gain": 0.0,
    ...     "gain_noise": 0.01,
    ...     "matched_gain": 0.0,
    ...     "matched_gain_noise": 0.01,
    ... }
    >>> node = xr.Dataset({f"loss_{name}": value for name, value in parts.items()})
    >>> node = node.assign(loss_inverse_temperature=("step", [2.0, 1.0]))
    >>> moved_by(node.assign(loss=("step", [3.5, 3.4]))).name
    'SURER'
    """
    # Of several runs.
    if "loss_matched_gain" not in data or data["loss_matched_gain"].ndim:
        return None
    ends = data[["loss", "loss_inverse_temperature"]].dropna("step").isel(step=[0, -1])
    if any(float(data.get(f"loss_p_{n}", 1.0)) <= _LEVEL for n in ("learned", "lost")):
        return None
    fall = abs(float(ends["loss"].diff("step")[0]))
    calibrated = abs(float(data["loss_gain"]))
    if calibrated <= _MOST * fall:
        first, last = ends["loss_inverse_temperature"].values
        if first == last:
            return None
        return Reason.SURER if first > last else Reason.LESS_SURE
    noise = max(_MOST * calibrated, float(data["loss_matched_gain_noise"]))
    beyond_words = abs(float(data["loss_matched_gain"]))
    return Reason.PREFERENCES if beyond_words <= noise else None


def least(data: xr.Dataset) -> float:
    """Return by how much a loss moves at least where something was learned or forgotten.

    Examples
    --------
    >>> least(
    ...     xr.Dataset(
    ...         {"loss_matched_blind": 4.0, "loss_matched": ("step", [3.0, 2.0])}
    ...     )
    ... )
    0.02
    """
    return LEAST * float((data["loss_matched_blind"] - data["loss_matched"]).max())
