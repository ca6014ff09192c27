"""The word frequencies and the bigrams that a model itself predicts.

A model that only knows how often words occur predicts the same in every place. It loses nothing if
each prediction is replaced by the mean of all of them; a model that uses what stands around a place
does. In the same way a model that looks at no more than the token before loses nothing if each
prediction is replaced by the mean of those after the same token. Unlike the frequencies of some
texts these means are no estimate of what the model was trained on, so that a larger training text
cannot be taken for the use of context.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..inputs import Inputs

_LEAST = float(np.finfo(np.float32).tiny)  # below it a probability is rounded to 0


class OwnFrequencies:
    """Sums a model's predictions over all places, and over those after the same token.

    The prediction at a place is part of its own mean. That makes the mean harder to beat: after a
    token that occurs once, the mean is the prediction.

    Parameters
    ----------
    inputs
        The texts.
    predicted
        (n, L) bool: the tokens that are predicted.
    pairs
        Whether to take means after each token as well, for models that predict the next token.
    """

    def __init__(self, inputs: Inputs, predicted: np.ndarray, pairs: bool) -> None:
        text, column = np.nonzero(predicted)
        self._place = np.cumsum(predicted.ravel()).reshape(predicted.shape) - 1
        self._text, self._number = text, len(predicted)
        self._target = inputs.ids[text, column]
        self._sums = np.zeros(int(self._target.max(initial=-1)) + 1)
        self._after = _AfterToken(inputs.ids[text, column - 1], self._target) if pairs else None

    def add(self, text: np.ndarray, column: np.ndarray, probability: Tensor) -> None:
        """Add predictions (e, vocabulary) of the tokens at (text, column)."""
        total = probability[:, : len(self._sums)].sum(0, dtype=torch.float32)
        self._sums += total.cpu().numpy()
        if self._after is not None:
            self._after.add(self._place[text, column], probability)

    def of_texts(self) -> dict[str, np.ndarray]:
        """Return the mean loss (n,) of each text under the means, 0 without a predicted token."""
        mean = self._sums[self._target] / max(len(self._target), 1)
        costs = {"own_unigram": -np.log(np.maximum(mean, _LEAST))}
        if self._after is not None:
            costs["own_bigram"] = self._after.costs()
        number = np.maximum(np.bincount(self._text, minlength=self._number), 1)
        return {
            name: np.bincount(self._text, weights=cost, minlength=self._number) / number
            for name, cost in costs.items()
        }


class _AfterToken:
    """Sums predictions by the token before, of the targets that ever follow it.

    Every pair of a token and what follows it has one sum; those of one token stand together, so
    that the targets of a place are a range of pairs.
    """

    def __init__(self, before: np.ndarray, target: np.ndarray) -> None:
        size = int(target.max(initial=0)) + 1
        pairs, self._pair = np.unique(before.astype(np.int64) * size + target, return_inverse=True)
        self._targets = pairs % size
        _, self._of, self._count = np.unique(before, return_inverse=True, return_counts=True)
        _, self._start, self._length = np.unique(
            pairs // size, return_index=True, return_counts=True
        )
        self._sums = np.zeros(len(pairs))

    def add(self, place: np.ndarray, probability: Tensor) -> None:
        """Add the predictions at these places."""
        of = self._of[place]
        length = self._length[of]
        row = np.repeat(np.arange(len(place)), length)
        within = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        pair = self._start[of][row] + within
        chosen = (
            torch.from_numpy(each).to(probability.device) for each in (row, self._targets[pair])
        )
        values = probability[tuple(chosen)].float().cpu().numpy()
        self._sums += np.bincount(pair, weights=values, minlength=len(self._sums))

    def costs(self) -> np.ndarray:
        """Return the loss of each token under the mean prediction after the token before it."""
        mean = self._sums[self._pair] / self._count[self._of]
        cost: np.ndarray = -np.log(np.maximum(mean, _LEAST))
        return cost
