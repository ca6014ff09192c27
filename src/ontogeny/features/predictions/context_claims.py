"""Whether a run learned in context: late places of long texts are predicted better by what it read.

Two ranges of places are compared within each text: the last one that most texts reach, and the one
with an eighth or a quarter of its context, eight tokens at least. What frequencies of tokens cost at
both is taken away, so that words which stand early or late decide nothing, and neither do models of
pairs or of short words, which know all that they need at both. The difference must be surely below 0
at the end, and surely below that at the first step. Where answers alone are scored it says nothing:
a question and its answer are no early and late places of one text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Subject
from ...claims.places import PLACE_LOSS
from ...summary.noise import p_below

LEVEL = 0.01
LEAST = 0.01  # of a uniform guess: a smaller difference is not named
_FEWEST = 10  # units of texts
# Ranges between both, each of which is twice as long as the one before.
_APART = 3
_LEAST_APART = 2
# Range of 8 to 15 tokens before. With 4 to 7, words that all texts share were learned in context.
_FIRST = 3


def claims_of_context(name: str, data: xr.Dataset) -> Sequence[Claim]:
    """Return that late places are predicted better by what stands before them, where it is sure.

    Parameters
    ----------
    name
        Of the node.
    data
        The node, see `ontogeny.features.predictions.place_losses`, over ranges of places.
    """
    if (
        "place_cost" not in data
        or "step" not in data.place_cost.dims
        or "run" in data.place_loss.dims
        or bool(data.place_of_one_form)
        or not bool(data.place_of_whole_texts)
    ):
        return []
    steps = data.dropna("step", subset=["place_loss"], how="all").step.values
    counts = data.place_count.transpose("place", "text").values
    reached = np.flatnonzero((counts > 0).mean(axis=1) > 1 / 2)
    if len(steps) < 2 or not len(reached) or reached[-1] < _FIRST + _LEAST_APART:
        return []
    late = int(reached[-1])
    early = max(late - _APART, _FIRST)
    both = (counts[late] > 0) & (counts[early] > 0)
    if both.sum() < _FEWEST:
        return []
    ends = data.sel(step=steps[[0, -1]])
    cost = ends.place_cost.transpose("step", "place", "text").values[:, :, both]
    expected = data.place_loss_frequencies.values
    gained = cost[:, late] - cost[:, early] - (expected[late] - expected[early])
    # Frequencies at both places are known no better than losses: each counts once.
    weights = np.ones(gained.shape[1])
    p_values = [
        p_below(gained[1], weights, 2**0.5),
        p_below(gained[1] - gained[0], weights),
    ]
    value = float(gained[1].mean())
    is_sure = all(p <= LEVEL for p in p_values)  # of what is not finite none is
    if not is_sure or value > -LEAST * float(data.place_loss_uniform):
        return []
    labels = [f"places {data.place.values[place]}" for place in (early, late)]
    losses = ends.place_loss.transpose("step", "place").values
    if (
        losses[1, late] >= losses[1, early]
    ):  # rarer tokens hide it in the sentence's two numbers
        return []
    return [
        Claim(
            Kind.IN_CONTEXT,
            Subject(name, PLACE_LOSS, label=labels[1]),
            Certainty.SURE,
            value=value,
            first=float(losses[0, late]),
            last=float(losses[1, late]),
            units="nats per {token}",
            p_value=max(p_values),
            beside=(Beside("reference", labels[0], float(losses[1, early])),),
            evidence=(f"{name}/place_loss",),
            figure=f"{name}/place-loss",
        )
    ]
