"""What three checkpoints lose at each token, and what their answers lose that know no text.

The mean of a model's answers over all texts, at the places of one class, says what it knows of
these places: which tokens stand there. An answer that costs less than this mean knows its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..capture.predictor import Predictor
from ..inputs import Inputs
from ..trajectory import Trajectory

_LEAST = 1e-12  # probability that rounding leaves of a mean without the text itself


def place_trial(
    trajectory: Trajectory, inputs: Inputs, classes: Sequence[np.ndarray]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the loss of every token at the first, the middle and the last checkpoint, and guesses.

    Parameters
    ----------
    trajectory
        The checkpoints.
    inputs
        The texts. A causal model is asked.
    classes
        Several ways to class the places (texts, places), by numbers from 0.

    Returns
    -------
    costs
        (3, texts, places), NaN where nothing is predicted.
    guesses
        As many for each way of `classes`: what the mean answer to the other tokens of the class
        costs, or a uniform guess, whichever costs less.
    """
    places = [0, len(trajectory) // 2, len(trajectory) - 1]
    costs = np.full((3, *inputs.ids.shape), np.nan)
    guesses = [costs.copy() for _ in classes]
    for row, place in enumerate(places):
        model = trajectory.checkpoints[place].model(dtype=torch.float32)
        means = [_MeanAnswer(of) for of in classes]

        def answer(
            text: np.ndarray,
            column: np.ndarray,
            target: torch.Tensor,
            log_p: torch.Tensor,
            means: Sequence[_MeanAnswer] = means,
        ) -> Any:
            for mean in means:
                mean.add(text, column, log_p)
            loss = -log_p.gather(1, target[:, None])[:, 0]
            return {
                "loss": loss.double(),
                "vocabulary": np.full(len(text), log_p.shape[1]),
            }

        read = Predictor(model, "causal").reduced(inputs, answer)
        at = (read["text"], read["column"])
        costs[row][at] = read["loss"]
        blind = float(np.log(read["vocabulary"][0]))
        for guess, mean in zip(guesses, means, strict=True):
            guess[row][at] = np.minimum(
                mean.costs(*at, inputs.ids[at], read["loss"]), blind
            )
    return costs, guesses


class _MeanAnswer:
    """The sum of a model's answers at the places of each class."""

    def __init__(self, of: np.ndarray) -> None:
        self._of = of
        self._sums: torch.Tensor | None = None

    def add(self, text: np.ndarray, column: np.ndarray, log_p: torch.Tensor) -> None:
        if self._sums is None:
            size = (int(self._of.max()) + 1, log_p.shape[1])
            self._sums = log_p.new_zeros(size, dtype=torch.float64)
        here = torch.as_tensor(self._of[text, column], device=log_p.device)
        self._sums.index_add_(0, here, log_p.exp().double())

    def costs(
        self, text: np.ndarray, column: np.ndarray, target: np.ndarray, loss: np.ndarray
    ) -> np.ndarray:
        """Return what the mean answer of all other tokens of its class costs at each token."""
        assert self._sums is not None
        of = self._of[text, column]
        others = np.bincount(of)[of] - 1
        summed = self._sums.cpu().numpy()[of, target] - np.exp(-loss)
        share = summed / np.maximum(others, 1)
        return np.asarray(-np.log(np.maximum(share, _LEAST)))
