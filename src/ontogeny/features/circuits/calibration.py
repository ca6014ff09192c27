"""Whether predictions are as often right as they are sure, and by which margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from torch import Tensor

from ...errors import ArgumentError
from ...figures import Heatmap, Section
from ...observables.catalogued import PASS, PresetEntry
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...quantities import Measured, Quantity
from ...trees import Nodes
from ...units import Units

_RESAMPLES = 20
_DRAWS = 20


@dataclass(frozen=True)
class Calibration(OfPredictions):
    """Expected calibration error of the first answers, with accuracy, confidence and margin.

    The confidence of a prediction is the probability of its first answer. Predictions are put into
    bins of equal width by their confidence. The error is the mean over predictions of the distance
    between confidence and share of right answers in their bin. The margin is the log-probability of
    the right token minus that of the best other one.

    Parameters
    ----------
    bins
        Number of bins of equal width between 0 and 1.
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    random_state
        Seed of the resamples and of the null, and of which tokens are masked.

    Notes
    -----
    C. Guo et al. 2017, "On calibration of modern neural networks", eq. 3.

    Examples
    --------
    >>> Calibration(bins=10).name
    'calibration'
    """

    bins: int = 15
    random_state: int = 0

    kind = "calibration"
    minima = {"bins": 2}
    question = "Is the model as often right as it is sure?"
    price = PASS
    presets = (PresetEntry(("circuits", "everything"), place=280),)
    quantities = (
        Quantity(
            "calibration_error",
            "expected calibration error",
            symbol="Σ |Bᵢ| / n · |acc(Bᵢ) − conf(Bᵢ)|",
            rows="calibration error",
            minimum=0.0,
            better="lower",
            nulls={"calibrated": "perfectly calibrated"},
            shade="resampled texts",
        ),
        Quantity(
            "accuracy",
            "share of right first answers",
            rows="accuracy",
            better="higher",
            nulls={"confidence": "mean confidence"},
            caption="Below the grey line the model is too sure, above it not sure enough.",
        ),
        Quantity(
            "margin",
            "margin of the right token",
            units="nats",
            symbol="log p(right) − max log p(other)",
            rows="margin",
        ),
    )
    variables = {
        "overconfidence": ("mean confidence minus share of right answers", "1"),
        "bin_share": ("share of the predictions in a bin", "1"),
        "confidence_from": ("lowest confidence of a bin", "1"),
    }
    section = Section(
        title="Calibration",
        definition="How far the confidence of first answers is from how often they are right, in "
        "bins of equal width; and by how much the right token is ahead.",
        null="Answers that are right as often as their confidence says: what the error is then by "
        "chance, on as many predictions.",
        care="The error depends on the number of bins. An untrained model is sure of nothing and "
        "right about nothing, and so is nearly calibrated.",
        source="Guo et al. 2017, eq. 3",
    )
    charts = (
        Heatmap(
            "bins",
            "Overconfidence by confidence",
            value="overconfidence",
            y="bin",
            caption="Confidence minus share of right answers; each row is a bin, named by its "
            "lowest confidence. Empty: no prediction was so sure.",
        ),
    )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the error with resamples and null, accuracy, margin, and the bins."""
        model, inputs = (reading[need] for need in self.needs())
        answers = model.reduced(inputs, first_answers, self.random_state)
        sure = answers["confidence"]
        right = answers["right"]
        text = inputs.groups[answers["text"]]
        units = Units(text)
        rng = np.random.default_rng([self.random_state, 14])
        again = [units.resampled(rng) for _ in range(_RESAMPLES)]
        chance = [rng.random(len(sure)) < sure for _ in range(_DRAWS)]
        error = Measured(
            calibration_error(sure, right, self.bins),
            replicates=(
                "refit",
                [calibration_error(sure[r], right[r], self.bins) for r in again],
            ),
            nulls={
                "calibrated": (
                    "draw",
                    [calibration_error(sure, c, self.bins) for c in chance],
                )
            },
        )
        accuracy = Measured.mean(right, text, {"confidence": float(sure.mean())})
        margin = Measured.mean(answers["margin"], text)
        data = dataset(
            {"calibration_error": error, "accuracy": accuracy, "margin": margin}
        )
        apart, share = reliability(sure, right, self.bins)
        return data.assign_coords(
            refit=[f"texts {i + 1}" for i in range(_RESAMPLES)]
        ).assign(
            overconfidence=("bin", apart),
            bin_share=("bin", share),
            confidence_from=("bin", np.arange(self.bins) / self.bins),
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with the bins' confidence as labels, once."""
        if "confidence_from" not in data:
            return data
        labels = (np.arange(data.sizes["bin"]) / data.sizes["bin"]).round(3)
        return data.drop_vars("confidence_from").assign_coords(bin=labels)


def first_answers(
    text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
) -> dict[str, Any]:
    """Return confidence and margin of predictions, and whether their first answer is right.

    Examples
    --------
    >>> import torch
    >>> log_p = torch.tensor([[0.7, 0.2, 0.1]]).log()
    >>> answers = first_answers(np.zeros(1), np.zeros(1), torch.tensor([1]), log_p)
    >>> bool(answers["right"][0]), round(answers["margin"].item(), 3)
    (False, -1.253)
    """
    best, answer = log_p.max(dim=1)
    right = log_p.gather(1, target[:, None])[:, 0]
    other = log_p.scatter(1, target[:, None], -float("inf")).max(dim=1).values
    # Of two equally likely tokens neither is the first answer for sure; max names the first.
    return {
        "confidence": best.exp().double(),
        "right": answer == target,
        "margin": right - other,
    }


def calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 15) -> float:
    """Return the expected calibration error, between 0 and 1.

    Parameters
    ----------
    confidence
        (n,) probabilities of the first answers.
    right
        (n,) whether they were right.
    bins
        Number of bins of equal width; a confidence on an edge belongs to the bin below it.

    Raises
    ------
    ArgumentError
        If the lengths differ, nothing is given, or a confidence is no probability.

    Notes
    -----
    C. Guo et al. 2017, "On calibration of modern neural networks", eq. 3.

    Examples
    --------
    >>> round(calibration_error([0.9, 0.9, 0.2, 0.2], [True, True, False, True]), 3)
    0.2
    """
    apart, share = reliability(confidence, right, bins)
    return float(np.nansum(np.abs(apart) * share))


def reliability(
    confidence: ArrayLike, right: ArrayLike, bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return confidence minus share of right answers (bins,), and the share of predictions (bins,).

    The first is NaN in an empty bin.
    """
    sure = np.asarray(confidence, dtype=np.float64)
    hit = np.asarray(right, dtype=np.float64)
    if sure.shape != hit.shape or sure.ndim != 1 or not len(sure):
        raise ArgumentError(
            "confidence and right must have the same length, at least 1; got shapes "
            f"{sure.shape} and {hit.shape}."
        )
    if not ((sure >= 0) & (sure <= 1 + 1e-6)).all():
        raise ArgumentError("confidence must hold probabilities, between 0 and 1.")
    place = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)
    number = np.bincount(place, minlength=bins)
    apart = np.full(bins, np.nan)
    np.divide(np.bincount(place, sure - hit, bins), number, out=apart, where=number > 0)
    return apart, number / len(sure)
