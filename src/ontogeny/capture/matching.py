"""What it costs to tell which of some words stands where, whatever words a model prefers.

A model gains on all texts at once by being surer, or by liking frequent words more: with logits
b z + a of any b and any preference a of each word. What remains is what it knows of a place. Of a
group of places with their words, the score of word j at place i is log p(word j | place i). Let q
be exp(b score + a_j), divided by its sum over the words, with the preferences a under which each
word is expected as often as it stands there (its columns sum to 1 as its rows do: Sinkhorn's
scaling). These are the likeliest ones. The cost is the mean of -log q of the words where they
stand, at the best b. It is the same for every b and a of the model, and needs no whole vocabulary.

Source: R. Sinkhorn, P. Knopp, Pacific Journal of Mathematics 21, 1967.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..inputs import Inputs

GROUP = 64  # places whose words are distinguished

_MOST_TOKENS = 2**14  # of a large input set: 4 MiB
_LEAST = -1e4  # nats: a word that a mask rules out
_RANGE = (np.log(0.1), np.log(10.0))  # of log b
_PRECISE = 2e-3  # of log b, which changes the cost by some 1e-6 nats
_BALANCED = 1e-4  # mean difference of a column's sum from 1
_SWEEPS = 100


class MatchedWords:
    """Keeps the scores of the words of a group at each of its places, and tells their cost.

    Of more than 16,384 predicted tokens, as many are taken, evenly spread over the texts. Groups
    are drawn of all of them, the same at every step; up to `GROUP` - 1 tokens are left over.

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
        size = min(GROUP, len(every))
        count = len(every) // size if size else 0
        drawn = np.random.default_rng(0).permutation(every)[: count * size]
        self._text = text[drawn]
        column = column[drawn]
        self._place = np.full(predicted.shape, -1, dtype=np.int32)
        self._place[self._text, column] = np.arange(len(drawn))
        self._words = (
            inputs.ids[self._text, column].reshape(count, size).astype(np.int64)
        )
        self._scores = torch.zeros((count, size, size))
        self._texts = len(predicted)

    def add(self, text: np.ndarray, column: np.ndarray, log_p: Tensor) -> None:
        """Add log-probabilities (e, vocabulary) of the tokens at (text, column)."""
        place = self._place[text, column]
        rows = np.flatnonzero(place >= 0)
        if not len(rows):
            return
        group, at = np.divmod(place[rows], self._words.shape[1])
        words = torch.from_numpy(self._words[group]).to(log_p.device)
        values = log_p[torch.from_numpy(rows).to(log_p.device)].gather(1, words)
        self._scores[group, at] = values.clamp_min(_LEAST).cpu().float()

    def of_texts(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the cost (n,) of each text in nats per token, its tokens, and the blind cost.

        That is the mean cost where a place says nothing of its word. A text without a token in a
        group costs 0.
        """
        tokens = np.bincount(self._text, minlength=self._texts)
        if not self._words.size:
            return np.zeros(self._texts), tokens, float("nan")
        alike = (self._words[:, :, None] == self._words[:, None, :]).sum(2)
        # Copies of a word in a group are one answer.
        costs = matching_costs(self._scores).numpy() - np.log(alike)
        sums = np.bincount(self._text, weights=costs.ravel(), minlength=self._texts)
        blind = float(np.log(self._words.shape[1]) - np.log(alike).mean())
        return sums / np.maximum(tokens, 1), tokens, blind


def matching_costs(scores: Tensor) -> Tensor:
    """Return what it costs (groups, places) to tell at the best b which word stands where.

    Parameters
    ----------
    scores
        (groups, places, words): word j stands at place j.

    Examples
    --------
    >>> scores = torch.eye(3)[None]
    >>> told, doubled = (
    ...     float(matching_costs(scores * scale).mean()) for scale in (1, 2)
    ... )
    >>> bool(told < np.log(3)), abs(told - doubled) < 1e-3
    (True, True)
    """
    from scipy.optimize import minimize_scalar  # takes a while to import

    # Each row and then each column has a largest score of 0, which is a preference too: else a word
    # that is likely nowhere would have a column of zeros at a large b.
    scores = scores.double()
    scores = scores - scores.amax(2, keepdim=True)
    scores = scores - scores.amax(1, keepdim=True)
    own = scores.diagonal(dim1=1, dim2=2)
    last: tuple[float, Tensor] = (1.0, torch.zeros_like(own))

    def costs(log_b: float) -> Tensor:
        nonlocal last
        b = float(np.exp(log_b))
        liking, total = _balanced(scores * b, last[1] * (b / last[0]))
        last = b, liking
        return total - liking - b * own

    found = minimize_scalar(
        lambda log_b: float(costs(log_b).mean()),
        bounds=_RANGE,
        method="bounded",
        options={"xatol": _PRECISE},
    )
    return costs(float(found.x))


def _balanced(scores: Tensor, liking: Tensor) -> tuple[Tensor, Tensor]:
    """Return log preferences that balance the columns, and the log of each row's sum.

    The preferences begin at `liking`, those of the b before.
    """
    weights = scores.exp_()
    liked = liking.exp()
    rows = torch.bmm(weights, liked[:, :, None])[:, :, 0]
    for _ in range(_SWEEPS):
        columns = torch.bmm((1 / rows)[:, None], weights)[:, 0]
        if float((columns * liked - 1).abs().mean()) < _BALANCED:
            break
        liked = 1 / columns
        rows = torch.bmm(weights, liked[:, :, None])[:, :, 0]
    return liked.log(), rows.log()
