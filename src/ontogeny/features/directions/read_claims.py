"""What is claimed of directions: since when they can be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import xarray as xr
from scipy.special import expit, logit

from ...claims import Beside, Claim
from ...observables.readable import Case, Course, claims_of_readable
from ...summary.noise import mean_stderr
from ...tails import normal_above, t_above, t_limit

SURE = 0.01  # of one further draw, from which on a direction is beyond random ones at a step
RANDOM = "random directions"
UNITS = {"auc": "AUC", "share": "1"}


def claims_of_reading(node: str, data: xr.Dataset, quantity: str) -> Iterator[Claim]:
    """Give for each layer and direction whether it stands out, since when, and beside what.

    Parameters
    ----------
    node
        Name of the node.
    data
        With ``x``, ``x_of_text``, ``x_weights`` and ``x_random`` of the quantity.
    quantity
        ``"auc"`` or ``"share"``.
    """
    if f"{quantity}_random" not in data:
        return
    cases = []
    for layer, name in product(data.layer.values, data.direction.values):
        course = Course.of(data, quantity, layer=layer, direction=name)
        if course is not None:
            cases.append(_case(str(layer), str(name), course))
    yield from claims_of_readable(node, cases, "random", UNITS[quantity])


def _case(layer: str, name: str, course: Course) -> Case:
    """Return what the last step says of one direction, and since when."""
    draws = course.data[f"{course.quantity}_random"].transpose("step", "draw").values
    line = line_of(draws)
    last = course.values[-1]
    error = float(mean_stderr(course.of_text[-1], course.weights[-1]))
    of_texts = normal_above((last - draws[-1].mean()) / error) if error > 0 else 1.0
    return Case(
        layer,
        name,
        course,
        float(max(of_texts, p_of_draw(last, draws[-1]))),
        course.since(line[:, None]),
        (Beside("null", RANDOM, float(line[-1])),),
    )


def p_of_draw(value: float, draws: np.ndarray) -> float:
    """Return how likely one more draw is as large, by Student's t on the scale of log-odds.

    Shares and AUCs are about normal there, and 200 draws alone give no p-value below 1 in 201.

    Examples
    --------
    >>> draws = np.array([0.4, 0.5, 0.6, 0.55, 0.45])
    >>> p_of_draw(0.99, draws) < 0.001 < 0.4 < p_of_draw(0.5, draws)
    True
    """
    odds = _log_odds(draws)
    spread = odds.std(ddof=1) * np.sqrt(1 + 1 / len(odds))
    if spread == 0:
        return 0.0 if value > draws.max() else 1.0
    score = (float(_log_odds(np.array(value))) - odds.mean()) / spread
    return float(t_above(score, len(odds) - 1))


def line_of(draws: np.ndarray) -> np.ndarray:
    """Return (T,) what one further of draws (T, k) stays below with probability 1 - `SURE`."""
    odds = _log_odds(draws)
    spread = odds.std(axis=1, ddof=1) * np.sqrt(1 + 1 / draws.shape[1])
    edge = odds.mean(axis=1) + t_limit(SURE, draws.shape[1] - 1) * spread
    return np.asarray(expit(edge))


def _log_odds(shares: np.ndarray) -> np.ndarray:
    return np.asarray(logit(np.clip(shares, 1e-9, 1 - 1e-9)))
