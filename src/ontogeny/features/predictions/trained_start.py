"""What a run that begins trained learned or forgot, beside mirrored control runs.

Its loss gains by being surer, and by liking words that are frequent in these texts, on all texts at
once: neither the noise over texts nor the luck of motion is as large. So what is judged is the cost
of telling which word stands where, which neither moves (`ontogeny.capture.matching`). Two one-sided
questions are asked, each at half the level: did it gain by more than luck, and did it lose by more
than luck and the harm that motion does?
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from ...summary.learning import MIRRORED, luck_of_pairs, p_by_luck, p_lost_by_motion
from ...summary.noise import Z, mean_stderr
from ...words.control_kinds import kind_of
from ...words.formats import p_words, plus_minus
from ...words.since_base import WHY, least, why

_ROUNDING = 1e-4  # nats: the best temperature of the cost is found to 1e-5

VARIABLES = {
    "loss_calibrated": ("loss at the model's best temperature", "nats per token"),
    "loss_inverse_temperature": ("what logits are multiplied by at the best temperature", "1"),
    "loss_matched": ("cost of telling which word stands where", "nats per token"),
    "loss_matched_blind": ("the same where places say nothing", "nats per token"),
    "loss_gain": ("gain at the best temperature", "nats per token"),
    "loss_gain_noise": ("1.96 standard errors of that gain over texts", "nats per token"),
    "loss_matched_gain": ("gain whatever words are preferred, which is judged", "nats per token"),
    "loss_matched_gain_noise": ("1.96 standard errors of that gain over texts", "nats per token"),
    "loss_p_lost": ("p-value of what was forgotten of the words", "1"),
    "loss_judged_at": ("last step that run and control runs share, where it is judged", "steps"),
}

_JUDGED = (
    "Whether it learned or forgot is judged by what it costs to tell which word stands where, "
    "however sure the model is and whatever words it prefers, over texts and beside the luck and "
    "harm of mirrored control runs"
)


def judged_by_pairs(data: xr.Dataset) -> dict[str, float]:
    """Return what was gained and how likely that is by texts and motion; nothing without pairs.

    It is asked at the last step that is finite in the run and in all mirrored control runs: one
    diverged checkpoint at the end must not make what came before unknown.
    """
    beside = data.get("loss_matched_control")
    kinds = [] if beside is None else [kind_of(str(run)) for run in beside["run"].values]
    if beside is None or MIRRORED not in kinds:
        return {}
    controls = beside.isel(run=np.array(kinds) == MIRRORED).transpose("run", "step")
    finite = np.isfinite(data["loss_matched"].values) & np.isfinite(controls.values).all(axis=0)
    shared = data.step.values[finite]
    if len(shared) < 2:
        return {}
    ends = shared[[0, -1]]
    of_controls = -controls.sel(step=ends).diff("step").values.T
    gain, error = _gain(data, "loss_matched", ends)
    calibrated, of_calibrated = _gain(data, "loss_calibrated", ends)
    counts = abs(gain) > max(least(data.sel(step=ends)), _ROUNDING)
    texts = np.array([error**2])
    p_learned = p_by_luck(np.array([gain]), texts, luck_of_pairs(of_controls))
    p_lost = p_lost_by_motion(np.array([-gain]), texts, of_controls)
    return {
        "loss_p_learned": _of_two(p_learned) if counts else 1.0,
        "loss_p_lost": _of_two(p_lost) if counts else 1.0,
        "loss_judged_at": float(ends[1]),
        "loss_gain": calibrated,
        "loss_gain_noise": Z * of_calibrated,
        "loss_matched_gain": gain,
        "loss_matched_gain_noise": Z * error,
    }


def _of_two(p: np.ndarray) -> float:
    return float(np.minimum(2 * p, 1.0)[0])


def _gain(data: xr.Dataset, name: str, ends: np.ndarray) -> tuple[float, float]:
    """Return the gain between two steps and its standard error, paired over texts."""
    of_step = data.get(f"{name}_weights", data["loss_weights"]).transpose("step", "text")
    weights = of_step.max("step").fillna(0.0).values
    first, last = data[f"{name}_of_text"].sel(step=ends).transpose("step", "text").values
    error = float(np.atleast_1d(mean_stderr(first - last, weights))[0])
    return -float(data[name].sel(step=ends).diff("step")[0]), error


def sentence(data: xr.Dataset) -> str:
    """Say what is judged, the gain and, where that is not the last step, at which one."""
    at, where = float(data["loss_judged_at"]), ""
    if at < data.step.values[-1]:
        where = f", at step {at:,.0f}, the last one with a finite loss in all of them"
    if not np.isfinite(data["loss_matched_gain_noise"]):
        return f"{_JUDGED}{where}."
    which = "loss_p_learned" if data["loss_matched_gain"] > 0 else "loss_p_lost"
    p = p_words(float(data[which]), "uncorrected p")
    return f"{_JUDGED}{where}: it {_gained(data, 'loss_matched_gain')}, {p}.{_beside(data)}"


def _gained(data: xr.Dataset, name: str) -> str:
    gain, noise = float(data[name]), float(data[f"{name}_noise"])
    return f"{'gained' if gain > 0 else 'lost'} {plus_minus(abs(gain), noise)} nats"


def _beside(data: xr.Dataset) -> str:
    """Say what became of the loss at the best temperature, and as it is."""
    result = f" At its best temperature it {_gained(data, 'loss_gain')}."
    loss = data["loss"].dropna("step")
    fall, floor = float(loss[0] - loss[-1]), float(data["loss_floor"].sel(step=loss.step[-1]))
    if 0 < fall <= floor:
        result += (
            f" The loss as it is fell by {plus_minus(fall, floor)}: within the noise of texts."
        )
    elif reason := why(data):
        verb = "fell" if fall > 0 else "rose"
        result += f" The loss {verb} {WHY[reason]}."
    return result
