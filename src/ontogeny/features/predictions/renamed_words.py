"""Whether a model knows the words of its texts, and whether it learned them in this run.

Its loss, or what it gained since the first checkpoint, stands beside what it is on the same texts
with all words consistently renamed (`ontogeny.capture.renaming`). No control run is needed, so the
verdict does not depend on how many there are, nor on how much worse they get.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...observables.crossing import crossing
from ...summary.learning import MIRRORED, luck_of_pairs, p_by_luck
from ...summary.noise import Z, mean_stderr
from ...words.control_kinds import kind_of
from ...words.controls import PAIRS
from ...words.formats import p_words, plus_minus

LEVEL = 0.01  # by which steps are dated; the verdict of the row is corrected over the page

_BEGAN_TRAINED = (
    "The first checkpoint knows these words: it is no initialisation. Motion mostly harms it, so "
    "that no change is compared with motion"
)
_JUDGED = (
    "the gain at the best temperature of each checkpoint, over texts and against what mirrored "
    "control runs gain by luck"
)

VARIABLES = {
    "loss_renamed": ("loss with the words as they are, and consistently renamed", "nats per token"),
    "loss_calibrated": ("loss at the model's best temperature", "nats per token"),
    "loss_p_gain": ("share of renamings with as large a gain since the first step", "1"),
    "loss_p_known": ("share of renamings that cost as little", "1"),
    "loss_p_learned": ("p-value of what was learned of the words", "1"),
    "loss_trained_start": ("1 where the first step knows the words already", "1"),
    "loss_gain": ("gain at the best temperature, which is judged", "nats per token"),
    "loss_gain_noise": ("1.96 standard errors of that gain over texts", "nats per token"),
    "loss_judged_at": ("last step that run and control runs share, where it is judged", "steps"),
    "loss_learned_from": ("step from which on more was learned than renamings gain", "steps"),
}


def with_renamed_words(data: xr.Dataset) -> xr.Dataset:
    """Return the cells of the loss with what its renamings say.

    Added are ``loss_p_known`` and ``loss_p_gain`` over steps, ``loss_learned_from`` and
    ``loss_trained_start``. ``loss_p_learned``, which the verdict of the row reads, is the p-value
    of the gain at the last step, or 1 unless the loss fell and surely ends below a blind guess. Of
    a run whose first step knows the words renamings are no fair comparison, as a flatter model
    would gain on all of them: it is that of the gain at the best temperatures, over texts and
    against the luck of pairs of mirrored control runs, and left out where there are none.
    """
    losses = data["loss_renamed"].transpose("step", "renaming").values.astype(np.float64)
    complete = np.flatnonzero(np.isfinite(losses).all(axis=1))
    if not len(complete):
        return data
    gains = losses[complete[0]] - losses
    p_known, p_gain = _share(-losses), _share(gains)
    below = _surely_below_blind(data)
    began_trained = bool(p_known[complete[0]] <= 1 / losses.shape[1] and below[complete[0]])
    variables: dict[str, Any] = {
        "loss_p_known": ("step", p_known),
        "loss_p_gain": ("step", p_gain),
        "loss_trained_start": float(began_trained),
    }
    if began_trained:
        variables |= _judged_by_pairs(data)
    elif len(complete) > 1 and not began_trained:
        learned = (p_gain <= LEVEL) & (gains[:, 0] > 0) & below
        last = complete[-1]
        counts = bool(gains[last, 0] > 0 and below[last])
        variables["loss_p_learned"] = float(p_gain[last]) if counts else 1.0
        not_yet = complete[~learned[complete]]
        after = complete if not len(not_yet) else complete[complete > not_yet[-1]]
        variables["loss_learned_from"] = float(data.step.values[after[0]]) if len(after) else np.nan
    return data.assign(variables)


def _judged_by_pairs(data: xr.Dataset) -> dict[str, float]:
    """Return how likely the gain is by the choice of texts and the luck of motion, as one p.

    It is asked at the last step that is finite in the run and in all mirrored control runs: one
    diverged checkpoint at the end must not make what came before unknown.
    """
    beside = data.get("loss_calibrated_control")
    kinds = [] if beside is None else [kind_of(str(run)) for run in beside["run"].values]
    if beside is None or MIRRORED not in kinds:
        return {}
    controls = beside.isel(run=np.array(kinds) == MIRRORED).transpose("run", "step")
    finite = np.isfinite(data["loss_calibrated"].values) & np.isfinite(controls.values).all(axis=0)
    shared = data.step.values[finite]
    if len(shared) < 2:
        return {}
    ends = shared[[0, -1]]
    luck = luck_of_pairs(-controls.sel(step=ends).diff("step").values.T)
    gain, of_text = (data[f"loss_calibrated{end}"].sel(step=ends) for end in ("", "_of_text"))
    change = of_text.transpose("step", "text").values
    weights = data["loss_weights"].transpose("step", "text").max("step").fillna(0.0).values
    error = np.atleast_1d(mean_stderr(change[0] - change[1], weights))
    gains = -gain.diff("step").values
    p = float(p_by_luck(gains, error**2, luck)[0])
    judged = {"loss_gain": float(gains[0]), "loss_gain_noise": Z * float(error[0])}
    return {"loss_p_learned": p, "loss_judged_at": float(ends[1]), **judged}


def _share(values: np.ndarray) -> np.ndarray:
    """Return for each row the share of its values that reach the first; NaN where unknown."""
    share = (values >= values[:, :1]).mean(axis=1)
    return np.where(np.isfinite(values).all(axis=1), share, np.nan)


def _surely_below_blind(data: xr.Dataset) -> np.ndarray:
    """Return at which steps the loss is below a blind guess with any such choice of texts (T,)."""
    of_text = data["loss_of_text"].transpose("step", "text").values
    weights = data["loss_weights"].transpose("step", "text").max("step").fillna(0.0).values
    line = np.full(of_text.shape[1], float(data["loss_uniform"].max()))
    return np.array(
        [
            bool(np.isfinite(row[weights > 0]).all())
            and crossing(np.zeros(1), row[None], line, weights).certain
            for row in of_text
        ]
    )


def _result(data: xr.Dataset) -> str:
    """Say what the gain is and, where that is not the last step, at which one it is judged.

    The loss as it is may fall within its noise all the same, and is not called learned then.
    """
    at, loss, where = float(data["loss_judged_at"]), data["loss"].dropna("step"), ""
    if at < data.step.values[-1]:
        where = f", at step {at:,.0f}, the last one with a finite loss in all of them"
    if not np.isfinite(data["loss_gain_noise"]):
        return f"{where}."
    gain = plus_minus(float(data["loss_gain"]), float(data["loss_gain_noise"]))
    p = p_words(float(data["loss_p_learned"]), "uncorrected p")
    result = f"{where}: {gain} nats over texts, {p}."
    fall, noise = float(loss[0] - loss[-1]), float(data["loss_floor"].sel(step=loss.step[-1]))
    if 0 < fall <= noise:
        result += (
            f" The loss as it is fell by {plus_minus(fall, noise)}: within the noise of texts."
        )
    return result


def sentence(data: xr.Dataset) -> list[str]:
    """Say what the renamings show: that the model knows the words, learned them, or neither."""
    if "loss_p_gain" not in data or "step" not in data["loss_p_gain"].dims:
        return []
    last = data.dropna("step", subset=["loss_p_known"]).isel(step=-1)
    renamed = last["loss_renamed"].values[1:]
    ends = f"{np.quantile(renamed, 0.01):.2f} to {np.quantile(renamed, 0.99):.2f} nats"
    cost = f"With all words consistently renamed, the same texts cost {ends} at the last step"
    if "loss_p_learned" not in data:
        knows = "It knows these words" if float(last["loss_p_known"]) <= LEVEL else ""
        words = [". ".join(filter(None, [knows, cost])) + "."]
        if float(data["loss_trained_start"]) and data.sizes["step"] > 1:
            words.append(f"{_BEGAN_TRAINED}; {PAIRS}.")
        return words
    if float(data["loss_trained_start"]):
        return [f"{_BEGAN_TRAINED}. Whether it learned is judged by {_JUDGED}{_result(data)}"]
    since, p = float(data["loss_learned_from"]), float(last["loss_p_gain"])
    if np.isfinite(since):
        return [f"{cost}; from step {since:,.0f} on the gain is more than renamings have."]
    count = last.sizes["renaming"]  # the words as they are among them
    share = (p * count - 1) / (count - 1)
    return [f"{cost}; {100 * share:.0f} % of renamings gain as much as the words themselves."]
