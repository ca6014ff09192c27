"""What a run that begins trained learned or forgot, beside mirrored control runs.

A loss gains by being surer, and by liking words that are frequent in these texts, on all texts at
once: neither the noise over texts nor the luck of motion is as large. So what was learned is judged
by the cost of telling which word stands where, which neither moves (`ontogeny.capture.matching`),
beside the luck of motion. What was forgotten is measured at the best temperature, beside the luck and
the harm of motion: control runs come to prefer other words as well. A tuning on other texts that
lost .07 nats so lost .006 to .02 of them on which word stands where. Each question has one side and
half the level.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from ...claims.since_base import least
from ...control_kinds import kind_of
from ...summary.learning import MIRRORED, luck_of_pairs, p_by_luck, p_lost_by_motion
from ...summary.noise import Z, stretched_stderr

_ROUNDING = 1e-4  # nats: the best temperature of the cost is found to 1e-5
# Of the least change at the best temperature, some is no preference of words.
_OF_LEAST = 0.1

VARIABLES = {
    "loss_calibrated": ("loss at the model's best temperature", "nats per {token}"),
    "loss_inverse_temperature": (
        "what logits are multiplied by at the best temperature",
        "1",
    ),
    "loss_matched": ("cost of telling which word stands where", "nats per {token}"),
    "loss_matched_blind": ("the same where places say nothing", "nats per {token}"),
    "loss_gain": ("gain at the best temperature", "nats per {token}"),
    "loss_gain_noise": (
        "1.96 standard errors of that gain over texts",
        "nats per {token}",
    ),
    "loss_matched_gain": ("gain whatever words are preferred", "nats per {token}"),
    "loss_matched_gain_noise": (
        "1.96 standard errors of that gain over texts",
        "nats per {token}",
    ),
    "loss_p_lost": ("p-value of what was forgotten of the words", "1"),
    "loss_judged_at": (
        "last {checkpoint} that run and control runs share, where it is judged",
        "{step}s",
    ),
}


def judged_by_pairs(data: xr.Dataset) -> dict[str, float]:
    """Return what was gained and how likely that is by texts and motion; nothing without pairs.

    It is asked at the last step that is finite in the run and in all mirrored control runs: one
    diverged checkpoint at the end must not make what came before unknown.
    """
    controls = [_mirrored(data, name) for name in ("loss_matched", "loss_calibrated")]
    if not all(of_runs.sizes["run"] for of_runs in controls):
        return {}
    finite = np.isfinite(data["loss_matched"].values)
    for of_runs in controls:
        finite &= np.isfinite(of_runs.values).all(axis=0)
    shared = data.step.values[finite]
    if len(shared) < 2:
        return {}
    ends = shared[[0, -1]]
    matched, calibrated = (
        -of_runs.sel(step=ends).diff("step").values.T for of_runs in controls
    )
    gain, error = _gain(data, "loss_matched", ends)
    at_best, its_error = _gain(data, "loss_calibrated", ends)
    smallest = least(data.sel(step=ends))
    learned = p_by_luck(np.array([gain]), np.array([error**2]), luck_of_pairs(matched))
    lost = p_lost_by_motion(np.array([-at_best]), np.array([its_error**2]), calibrated)
    may_have_learned = at_best > smallest and gain > max(
        _OF_LEAST * smallest, _ROUNDING
    )
    return {
        "loss_p_learned": _of_two(learned) if may_have_learned else 1.0,
        "loss_p_lost": _of_two(lost) if -at_best > smallest else 1.0,
        "loss_judged_at": float(ends[1]),
        "loss_gain": at_best,
        "loss_gain_noise": Z * its_error,
        "loss_matched_gain": gain,
        "loss_matched_gain_noise": Z * error,
    }


def _mirrored(data: xr.Dataset, name: str) -> xr.DataArray:
    """Return what mirrored control runs give of a variable (run, step)."""
    nothing = xr.DataArray(
        np.empty((0, data.sizes["step"])), {"step": data.step}, ["run", "step"]
    )
    beside = data.get(f"{name}_control", nothing).transpose("run", "step")
    kinds = [kind_of(str(run)) for run in beside["run"].values]
    return beside.isel(run=np.array(kinds) == MIRRORED) if kinds else beside


def _of_two(p: np.ndarray) -> float:
    return float(np.minimum(2 * p, 1.0)[0])


def _gain(data: xr.Dataset, name: str, ends: np.ndarray) -> tuple[float, float]:
    """Return the gain between two steps and its standard error, paired over texts."""
    of_step = data.get(f"{name}_weights", data["loss_weights"]).transpose(
        "step", "text"
    )
    weights = of_step.max("step").fillna(0.0).values
    first, last = (
        data[f"{name}_of_text"].sel(step=ends).transpose("step", "text").values
    )
    error = float(np.atleast_1d(stretched_stderr(first - last, weights))[0])
    return -float(data[name].sel(step=ends).diff("step")[0]), error
