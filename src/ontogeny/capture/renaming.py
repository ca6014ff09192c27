"""The same texts with all words renamed: what they cost says whether a model knows these words.

Where nothing was learned of the texts, no word of the vocabulary is special to the model, so that
its loss is a draw from its losses with the targets consistently renamed: one permutation of the
vocabulary at a time, special tokens apart, inputs as they are. One pass gives all renamings, as
log-probabilities are gathered at other targets.

A run that goes on from a trained model, on noise as well, changes how sure the model is of what it
says: `Calibration` gives what the texts cost at the best temperature. With b the inverse
temperature, L(b) = log sum exp(b z) - b z_target of the logits z; both its first derivatives at
b = 1 come with the probabilities, so that a Newton step gives the best b.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from ..inputs import Inputs

DRAWS = 999  # renamings: as many as a p-value of 1/1000 takes

_MOST_TOKENS = 2**14  # of a large input set: the table has 4 bytes for each draw and target
LEAST = -100.0  # nats: a word that the model rules out has no infinite cost


class RenamedWords:
    """Sums what predicted tokens cost under their own names and under `DRAWS` renamings.

    Of more than 16,384 predicted tokens, as many are taken, evenly spread over the texts. Only the
    names of their targets are drawn, never a whole vocabulary for each draw, so that memory is
    bounded: 64 MiB, whatever the vocabulary.

    Parameters
    ----------
    inputs
        The texts.
    predicted
        (n, L) bool: the tokens that are predicted.
    """

    def __init__(self, inputs: Inputs, predicted: np.ndarray) -> None:
        text, column = np.nonzero(predicted)
        every = np.arange(0, len(text), max(1.0, len(text) / _MOST_TOKENS)).astype(int)
        text, column = text[every], column[every]
        self._targets, target = np.unique(inputs.ids[text, column], return_inverse=True)
        self._place = np.full(predicted.shape, -1, dtype=np.int32)
        self._place[text, column] = target
        ordinary, special = inputs.ids[inputs.ordinary], inputs.ids[inputs.special & inputs.mask]
        masks = [] if inputs.mask_token_id is None else [inputs.mask_token_id]
        self._apart = np.setdiff1d(np.union1d(special, masks), ordinary).astype(np.int64)
        self._size = inputs.vocab_size
        self._sums = np.zeros(1 + DRAWS)
        self._table: Tensor | None = None

    def add(self, text: np.ndarray, column: np.ndarray, log_p: Tensor) -> None:
        """Add log-probabilities (e, vocabulary) of the tokens at (text, column)."""
        place = self._place[text, column]
        rows = np.flatnonzero(place >= 0)
        if not len(rows):
            return
        if self._table is None:
            words = np.arange(min(log_p.shape[1], self._size or log_p.shape[1]))
            words = np.setdiff1d(words, self._apart)
            table = renamings(self._targets.tobytes(), words.astype(np.int64).tobytes())
            self._table = torch.from_numpy(table).to(log_p.device)
        names = self._table[:, torch.from_numpy(place[rows]).to(log_p.device)].T.long()
        values = (
            log_p if len(rows) == len(log_p) else log_p[torch.from_numpy(rows).to(log_p.device)]
        )
        costs = -values.gather(1, names).clamp_min(LEAST)
        self._sums += costs.sum(0).cpu().double().numpy()

    def losses(self) -> np.ndarray:
        """Return the mean losses (1 + `DRAWS`,) in nats per token: as they are, then renamed."""
        return self._sums / max(int((self._place >= 0).sum()), 1)


@lru_cache(maxsize=2)
def renamings(targets: bytes, words: bytes, random_state: int = 0) -> np.ndarray:
    """Return (1 + draws, targets) names of each target: its own, and other words of the vocabulary.

    Both are int64 arrays as bytes, so that the same texts are renamed alike at every step.
    """
    inside, others = np.frombuffer(targets, np.int64), np.frombuffer(words, np.int64)
    rng = np.random.default_rng(random_state)
    table = np.empty((1 + DRAWS, len(inside)), dtype=np.int32)
    table[0] = inside
    for row in table[1:]:
        row[:] = rng.choice(others, len(inside), replace=False)
    return table


_ROWS = 256  # tokens at once, so that a vocabulary takes little memory
_RANGE = (-0.4, 0.6)  # of b - 1: beyond it the parabola says nothing


class Calibration:
    """Sums the derivatives of the loss by the inverse temperature, text by text."""

    def __init__(self, texts: int) -> None:
        self._sums = np.zeros((2, texts))

    def add(self, text: np.ndarray, target: Tensor, log_p: Tensor) -> None:
        """Add log-probabilities (e, vocabulary) of tokens in texts (e,), and of targets (e,)."""
        moments = []
        for rows in log_p.split(_ROWS):
            # In place: of 262,000 words each copy has 268 MB, and five were held.
            p, finite = rows.exp(), rows.clamp_min(LEAST)
            mean = p.mul_(finite).sum(1)
            moments.append(torch.stack([mean, p.mul_(finite).sum(1) - mean * mean]))
        first, second = torch.cat(moments, dim=1).double()
        for sums, values in zip(self._sums, (first - target.double(), second), strict=True):
            sums += np.bincount(text, weights=values.cpu().numpy(), minlength=len(sums))

    def losses(self, sums: np.ndarray) -> np.ndarray:
        """Return the summed losses (texts,) at the best temperature of all texts together."""
        first, second = self._sums.sum(axis=1)
        by = np.clip(-first / second, *_RANGE) if second > 0 else 0.0
        calibrated: np.ndarray = sums + by * self._sums[0] + by * by / 2 * self._sums[1]
        return calibrated
