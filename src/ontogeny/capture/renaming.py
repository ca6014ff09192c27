"""The same texts with all words renamed: what they cost says whether a model knows these words.

Where nothing was learned of the texts, no word of the vocabulary is special to the model, so that
its loss is a draw from its losses with the targets consistently renamed: one permutation of the
vocabulary at a time, special tokens apart, inputs as they are. One pass gives all renamings, as
log-probabilities are gathered at other targets.

A run that goes on from a trained model, on noise as well, changes how sure the model is of what it
says: `Calibration` gives what the texts cost at the best temperature. With b the inverse
temperature, L(b) = log sum exp(b z) - b z_target of the logits z, which is convex in b. It is
computed at 60 values of b, each 6 % above the one before.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from ..inputs import Inputs

DRAWS = 999  # renamings: as many as a p-value of 1/1000 takes

# Of a large input set: the table has 4 bytes for each draw and target.
_MOST_TOKENS = 2**14
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
        text = text[every]
        column = column[every]
        self._targets, target = np.unique(inputs.ids[text, column], return_inverse=True)
        self._place = np.full(predicted.shape, -1, dtype=np.int32)
        self._place[text, column] = target
        ordinary = inputs.ids[inputs.ordinary]
        special = inputs.ids[inputs.special & inputs.mask]
        masks = [] if inputs.mask_token_id is None else [inputs.mask_token_id]
        self._apart = np.setdiff1d(np.union1d(special, masks), ordinary).astype(
            np.int64
        )
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
            log_p
            if len(rows) == len(log_p)
            else log_p[torch.from_numpy(rows).to(log_p.device)]
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
    inside = np.frombuffer(targets, np.int64)
    others = np.frombuffer(words, np.int64)
    rng = np.random.default_rng(random_state)
    table = np.empty((1 + DRAWS, len(inside)), dtype=np.int32)
    table[0] = inside
    for row in table[1:]:
        row[:] = rng.choice(others, len(inside), replace=False)
    return table


_PER_DOUBLING = 12
_DOUBLINGS = 5
_EXPONENTS = np.arange(-28, -28 + _PER_DOUBLING * _DOUBLINGS) / _PER_DOUBLING
INVERSE_TEMPERATURES = 2.0**_EXPONENTS  # from 0.2 to 6.0, and 1 among them
_AS_IT_IS = 28  # the place of 1
_ENOUGH = 2048  # tokens that show about which is best
_NEAR = 3  # places on both sides of it
_BLOCK = 2**18  # log-probabilities at once, 1 MiB: of 262,000 words those of one token
_LARGE_BLOCK = 2**24  # of a device that computes them side by side


class Calibration:
    """Sums what the texts cost at inverse temperatures from 0.2 to 6, text by text.

    Nothing between or beyond them is extrapolated: by a parabola at b = 1, a model that only became
    surer went 0.04 nats below any loss that a temperature gives it.

    Of the first `_ENOUGH` tokens all are computed, of the others those near the best one so far:
    all of them cost eight times the logarithms of the probabilities. Only what every token has
    counts, so that texts whose best temperature is another one than that of the first may cost a
    little more than they could, and never less.
    """

    def __init__(self, texts: int) -> None:
        self._sums = np.zeros((len(INVERSE_TEMPERATURES), texts))
        # Of those that every token has.
        self._places = np.arange(len(INVERSE_TEMPERATURES))
        self._tokens = 0

    def add(self, text: np.ndarray, target: Tensor, log_p: Tensor) -> None:
        """Add log-probabilities (e, vocabulary) of tokens in texts (e,), and of targets (e,)."""
        block = _BLOCK if log_p.device.type == "cpu" else _LARGE_BLOCK
        rows = max(1, block // log_p.shape[1])
        is_whole = len(self._places) == len(INVERSE_TEMPERATURES)
        b = INVERSE_TEMPERATURES[self._places]
        parts = log_p.split(rows)
        totals = torch.cat(
            [_totals(p) if is_whole else _totals_at(p, b) for p in parts], dim=1
        )
        costs = totals.cpu().double().log().numpy() - np.outer(
            b, target.cpu().double().numpy()
        )
        for place, values in zip(self._places, costs, strict=True):
            self._sums[place] += np.bincount(
                text, weights=values, minlength=self._sums.shape[1]
            )
        self._tokens += len(text)
        if is_whole and self._tokens >= _ENOUGH:
            best = self._sums.sum(axis=1).argmin()
            self._places = self._places[max(0, best - _NEAR) : best + _NEAR + 1]

    def losses(self, sums: np.ndarray) -> np.ndarray:
        """Return the summed losses (texts,) at the best temperature of all texts together.

        `sums` are those at b = 1, the losses as they are.
        """
        place = self._best(sums)
        return sums if place == _AS_IT_IS else self._sums[place]

    def inverse_temperature(self, sums: np.ndarray) -> float:
        """Return the best b: above 1 where the model is less sure than it may be."""
        return float(INVERSE_TEMPERATURES[self._best(sums)])

    def _best(self, sums: np.ndarray) -> int:
        totals = np.full(len(self._sums), np.inf)
        totals[self._places] = self._sums[self._places].sum(axis=1)
        totals[_AS_IT_IS] = sums.sum()
        return int(totals.argmin())


def _totals(log_p: Tensor) -> Tensor:
    """Return the sums of exp(b log p) over the vocabulary (inverse temperatures, e).

    An exponential is squared for twice its b, which costs less than another exponential.
    """
    totals: list[Tensor] = [log_p] * len(INVERSE_TEMPERATURES)
    for first, b in enumerate(INVERSE_TEMPERATURES[:_PER_DOUBLING].tolist()):
        power = (log_p * b).exp_()
        totals[first] = power.sum(1)
        for place in range(first + _PER_DOUBLING, len(totals), _PER_DOUBLING):
            totals[place] = power.mul_(power).sum(1)
    return torch.stack(totals)


def _totals_at(log_p: Tensor, inverse_temperatures: np.ndarray) -> Tensor:
    """Return the same at some inverse temperatures alone."""
    powers = torch.empty_like(log_p)
    totals = []
    for b in inverse_temperatures.tolist():
        torch.mul(log_p, b, out=powers)
        totals.append(powers.exp_().sum(1))
    return torch.stack(totals)
