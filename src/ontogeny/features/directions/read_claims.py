"""What is claimed of directions: since when they can be read, and since when the loss needs them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm, t

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ...multiple_tests import holm
from ...observables.crossing import crossing
from ...summary.noise import mean_stderr

LEVEL = 0.05
SURE = 0.01  # of one further draw, from which on a direction is beyond random ones at a step
RANDOM = "random directions"
UNITS = {"auc": "AUC", "share": "1"}
UNTRAINED = "an untrained model"


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
    cases = [
        (str(layer), str(name), case)
        for layer in data.layer.values
        for name in data.direction.values
        if (case := _case(data.sel(layer=layer, direction=name), quantity))
    ]
    p_values = holm([case["p_value"] for _, _, case in cases])
    for (layer, name, case), p_value in zip(cases, p_values, strict=True):
        last, beside, dates = case["last"], case["beside"], case["dates"]
        controls = [b.value for b in beside if b.role == "control"]
        sure: dict[str, Any] = {"certainty": Certainty.SURE}
        if p_value > LEVEL:
            sure = {"certainty": Certainty.OPEN, "reason": Reason.WITHIN_CHANCE}
        elif not math.isfinite(dates["since_high"]):
            sure = {"certainty": Certainty.OPEN, "reason": Reason.NOT_HELD}
        elif controls and max(controls) >= last:
            sure = {"certainty": Certainty.AS_CONTROLS}
        yield Claim(
            Kind.READABLE,
            Subject(node, quantity, layer, name),
            **sure,
            first=case["first"],
            last=last,
            units=UNITS[quantity],
            **(dates if sure["certainty"] is Certainty.SURE else {}),
            p_value=float(p_value),
            corrected_over=len(cases),
            beside=beside,
            evidence=(f"{node}/{quantity}", f"{node}/{quantity}_random"),
            figure=f"{node}/{quantity}",
        )


def _case(one: xr.Dataset, quantity: str) -> dict[str, Any] | None:
    """Return what the last step says of one direction, and since when; None if nothing was read."""
    one = one.dropna("step", subset=[quantity])
    if not one.sizes["step"]:
        return None
    values = one[quantity].values
    of_text = one[f"{quantity}_of_text"].transpose("step", "text").values
    weights = one[f"{quantity}_weights"]
    weights = weights.isel(step=-1) if "step" in weights.dims else weights
    counted = np.nan_to_num(weights.values)
    draws = one[f"{quantity}_random"].transpose("step", "draw").values
    line = line_of(draws)
    date = crossing(
        one.step.values,
        -np.nan_to_num(of_text),
        -np.broadcast_to(line[:, None], of_text.shape),
        counted,
    )
    error = float(mean_stderr(of_text[-1] - line[-1], counted))
    of_texts = norm.sf((values[-1] - draws[-1].mean()) / error) if error > 0 else 1.0
    beside = [Beside("null", RANDOM, float(line[-1]))]
    if f"{quantity}_untrained" in one:
        untrained = float(one[f"{quantity}_untrained"][-1])
        beside.append(Beside("reference", UNTRAINED, untrained))
    if f"{quantity}_control" in one:
        control = one[f"{quantity}_control"].dropna("step", how="all").isel(step=-1)
        beside += [
            Beside("control", str(run), float(value), float(values[-1]))
            for run, value in zip(control.run.values, control.values, strict=True)
        ]
    return {
        "first": float(values[0]),
        "last": float(values[-1]),
        "p_value": float(max(of_texts, p_of_draw(values[-1], draws[-1]))),
        "dates": {
            "since": date.step if math.isfinite(date.step) else math.nan,
            "since_low": date.low if math.isfinite(date.low) else math.nan,
            "since_high": date.high if math.isfinite(date.high) else math.nan,
        },
        "beside": beside,
    }


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
    return float(t.sf(score, len(odds) - 1))


def line_of(draws: np.ndarray) -> np.ndarray:
    """Return (T,) what one further of draws (T, k) stays below with probability 1 - `SURE`."""
    odds = _log_odds(draws)
    spread = odds.std(axis=1, ddof=1) * np.sqrt(1 + 1 / draws.shape[1])
    edge = odds.mean(axis=1) + t.isf(SURE, draws.shape[1] - 1) * spread
    return np.asarray(1 / (1 + np.exp(-edge)))


def _log_odds(shares: np.ndarray) -> np.ndarray:
    kept = np.clip(shares, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(kept) - np.log1p(-kept))
