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
from . import trained_start

# By which steps are dated; the verdict of the row is corrected over the page.
LEVEL = 0.01


VARIABLES = {
    "loss_renamed": (
        "loss with the {word}s as they are, and consistently renamed",
        "nats per {token}",
    ),
    "loss_p_gain": (
        "share of renamings with as large a gain since the first {checkpoint}",
        "1",
    ),
    "loss_p_known": ("share of renamings that cost as little", "1"),
    "loss_p_learned": ("p-value of what was learned of the words", "1"),
    "loss_trained_start": (
        "1 where the first {checkpoint} knows the {word}s already",
        "1",
    ),
    "loss_learned_from": (
        "{checkpoint} from which on more was learned than renamings gain",
        "{step}s",
    ),
}


def with_renamed_words(data: xr.Dataset) -> xr.Dataset:
    """Return the cells of the loss with what its renamings say.

    Added are ``loss_p_known`` and ``loss_p_gain`` over steps, ``loss_learned_from`` and
    ``loss_trained_start``. ``loss_p_learned``, which the verdict of the row reads, is the p-value
    of the gain at the last step, or 1 unless the loss fell and surely ends below a uniform guess. Of
    a run whose first step knows the words renamings are no fair comparison, as a flatter model
    would gain on all of them: beside pairs of mirrored control runs `trained_start` judges it.
    Without these it is left out; or where the first step is no better than a uniform guess as it is,
    it is that of the gain at the best temperature of each step. It is left out as well where texts
    have so few kinds of words that chance renames none of them: control runs judge it then.
    """
    losses = (
        data["loss_renamed"].transpose("step", "renaming").values.astype(np.float64)
    )
    complete = np.flatnonzero(np.isfinite(losses).all(axis=1))
    if not len(complete):
        return data
    p_known = _share(-losses)
    below = surely_below_blind(data, "loss")
    first = complete[0]
    knows = bool(p_known[first] <= 1 / losses.shape[1])
    at_best = False
    # As on another domain: 8.36 nats, and 7.69 at its best.
    if knows and not below[first]:
        calibrated = surely_below_blind(data, "loss_calibrated")
        at_best = bool(calibrated[first])
    if at_best:  # a temperature adds the same to all renamings
        below = calibrated
        losses = losses * data["loss_inverse_temperature"].values[:, None]
    began_trained = knows and bool(below[first])
    p_gain = _share(losses[first] - losses)
    variables: dict[str, Any] = {
        "loss_p_known": ("step", p_known),
        "loss_p_gain": ("step", p_gain),
        "loss_trained_start": float(began_trained),
    }
    judged = trained_start.judged_by_pairs(data) if began_trained else {}
    renamed_none = (losses[complete] == losses[complete, :1]).all(axis=0)
    can_tell = renamed_none.mean() <= LEVEL
    by_renaming = can_tell and not judged and (at_best or not began_trained)
    if len(complete) > 1 and by_renaming:
        fell = _fall(data, at_best) > 0
        learned = (p_gain <= LEVEL) & fell & below
        last = complete[-1]
        counts = bool(fell[last] and below[last])
        variables["loss_p_learned"] = float(p_gain[last]) if counts else 1.0
        not_yet = complete[~learned[complete]]
        after = complete if not len(not_yet) else complete[complete > not_yet[-1]]
        variables["loss_learned_from"] = (
            float(data.step.values[after[0]]) if len(after) else np.nan
        )
    return data.assign(variables | judged)


def _fall(data: xr.Dataset, calibrated: bool) -> np.ndarray:
    """Return by how much the loss is lower than at first (T,), as it is or at the best temperature.

    As it is, of the tokens that renamings have.
    """
    if calibrated:
        loss = data["loss_calibrated"].values
        return loss[np.flatnonzero(np.isfinite(loss))[0]] - loss
    own = data["loss_renamed"].isel(renaming=0, drop=True).values.astype(np.float64)
    return own[np.flatnonzero(np.isfinite(own))[0]] - own


def _share(values: np.ndarray) -> np.ndarray:
    """Return for each row the share of its values that reach the first; NaN where unknown."""
    share = (values >= values[:, :1]).mean(axis=1)
    return np.where(np.isfinite(values).all(axis=1), share, np.nan)


def surely_below_blind(data: xr.Dataset, name: str) -> np.ndarray:
    """Return at which steps the loss is below a uniform guess with any such choice of texts (T,).

    `name` is that of the loss as it is, or at the best temperature.
    """
    of_text = data[f"{name}_of_text"].transpose("step", "text").values
    weights = (
        data["loss_weights"].transpose("step", "text").max("step").fillna(0.0).values
    )
    line = np.full(of_text.shape[1], float(data["loss_uniform"].max()))
    return np.array(
        [
            bool(np.isfinite(row[weights > 0]).all())
            and crossing(np.zeros(1), row[None], line, weights).certain
            for row in of_text
        ]
    )
