"""What frequencies alone predict: the lines that a loss is read against.

A model's loss says little without what a guess of each kind would cost on the same tokens. Each
text is predicted from the counts of all other texts, those of its own unit (copies of it, the rest
of its document) left out, so that no line has seen what it predicts. The one number of each
estimate, its smoothing, is the one with which the texts left out cost least: a weaker smoothing
would make the line easier to pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..inputs import Inputs

_SMOOTHING = np.geomspace(1e-4, 10.0, 26)  # counts added to each token
# Counts that word frequencies stand for after a token.
_STRENGTH = np.geomspace(1e-2, 1e4, 31)
_LARGEST = 2**21  # token ids are below it, so that a context of three fits into 64 bits


def blind_guess(vocabulary: int) -> float:
    """Return the loss of a guess that gives all tokens of the vocabulary the same probability.

    Examples
    --------
    >>> round(blind_guess(1000), 3)
    6.908
    """
    return float(np.log(vocabulary))


def guesses(
    inputs: Inputs, predicted: np.ndarray, vocabulary: int, pairs: bool
) -> dict[str, np.ndarray]:
    """Return the mean loss of each text's predicted tokens under word frequencies, and bigrams.

    The frequency of a token is its count among the scored tokens of all other texts plus α, over
    their number plus α times the vocabulary. It depends on nothing else, so the estimate is the
    same for causal and for masked models; only the tokens that are predicted differ.

    The probability of a token after another is its count there in all other texts plus β times its
    own frequency, over the other's count plus β: a Dirichlet prior at the word frequencies
    (MacKay & Peto 1995, eq. 10). Only what predicts the next token is compared fairly with it.

    Parameters
    ----------
    inputs
        The texts.
    predicted
        (n, L) bool: the tokens that the loss is taken over; with `pairs` each has one before it.
    vocabulary
        Number of tokens that the model can give a probability.
    pairs
        Whether bigrams are wanted too.

    Returns
    -------
    dict
        ``unigram`` and, with `pairs`, ``bigram``, (n,) each: nats per token; 0 for a text without
        a predicted token.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1, 2] * 20, [2, 1] * 20])
    >>> predicted = inputs.ordinary & (np.arange(40) > 0)
    >>> costs = guesses(inputs, predicted, 1000, pairs=True)
    >>> bool((costs["bigram"] < costs["unigram"]).all())
    True
    >>> bool((costs["unigram"] < blind_guess(1000)).all())
    True
    """
    text, column = np.nonzero(predicted)
    models = smoothed(inputs, text, column, vocabulary, 2 if pairs else 1)
    return {
        name: _of_texts(-np.log(probability), text, len(inputs))
        for name, (probability, _) in zip(("unigram", "bigram"), models, strict=False)
    }


def smoothed(
    inputs: Inputs, text: np.ndarray, column: np.ndarray, vocabulary: int, order: int
) -> list[tuple[np.ndarray, float]]:
    """Return the probabilities of single tokens under n-grams of all other texts, by their order.

    That of a token after n - 1 others is its count there plus β times its probability after n - 2
    of them, over their count plus β. Where fewer tokens stand before, these are all there is.

    Parameters
    ----------
    inputs, text, column, vocabulary
        As of `token_costs`.
    order
        The largest n.

    Returns
    -------
    list
        For n = 1 to `order`, probabilities (e,) and the smoothing under which the tokens cost least
        together: counts added to each token (n = 1), or β.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1, 2] * 20, [2, 1] * 20])
    >>> text, column = np.nonzero(inputs.ordinary & (np.arange(40) > 1))
    >>> [round(float(p.mean()), 1) for p, _ in smoothed(inputs, text, column, 9, 3)]
    [0.5, 1.0, 1.0]
    """
    models = [_best(_unigram(inputs, text, column, vocabulary), _SMOOTHING)]
    for length in range(1, order):
        models.append(_given_before(inputs, text, column, models[-1][0], length))
    return models


def contexts(
    inputs: Inputs, text: np.ndarray, column: np.ndarray, length: int
) -> np.ndarray:
    """Return a number (e,) for the `length` tokens before each token; -1 where there are fewer.

    Equal contexts have equal numbers, of whatever texts.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[4, 5, 4, 5, 6]])
    >>> contexts(inputs, np.zeros(3, dtype=int), np.array([2, 4, 0]), 1).tolist()
    [5, 5, -1]
    """
    key = np.zeros(len(text), dtype=np.int64)
    for back in range(length, 0, -1):
        there = (key >= 0) & (column >= back) & inputs.mask[text, column - back]
        key = np.where(there, key * _LARGEST + inputs.ids[text, column - back], -1)
    return key


def token_costs(
    inputs: Inputs, text: np.ndarray, column: np.ndarray, vocabulary: int
) -> np.ndarray:
    """Return the loss (e,) of single tokens under the frequencies of all other texts.

    Parameters
    ----------
    inputs, vocabulary
        As of `guesses`.
    text, column
        (e,) the tokens, in the columns of `inputs`.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1, 1, 1, 2], [1, 1, 2, 1]])
    >>> costs = token_costs(inputs, np.array([0, 0]), np.array([0, 3]), 1000)
    >>> bool(costs[0] < costs[1])  # the more frequent one costs less
    True
    """
    return -np.log(smoothed(inputs, text, column, vocabulary, 1)[0][0])


def bigram_costs(
    inputs: Inputs, text: np.ndarray, column: np.ndarray, vocabulary: int
) -> np.ndarray:
    """Return the loss (e,) of single tokens under the bigrams of all other texts.

    All scored tokens after the first column are counted, whichever are asked for.

    Parameters
    ----------
    inputs, text, column, vocabulary
        As of `token_costs`; `inputs` are padded on the right.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1, 2, 1, 3], [1, 2, 3, 1], [1, 2, 3, 3]])
    >>> costs = bigram_costs(inputs, np.array([0, 0]), np.array([1, 3]), 1000)
    >>> bool(costs[0] < costs[1])  # 2 stands after 1 in every text
    True
    """
    counted = inputs.scored.copy()
    counted[:, 0] = False
    costs = np.full(counted.shape, np.nan)
    rows, columns = np.nonzero(counted)
    probability = smoothed(inputs, rows, columns, vocabulary, 2)[1][0]
    costs[rows, columns] = -np.log(probability)
    return np.asarray(costs[text, column])


def shares_elsewhere(
    inputs: Inputs, token: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what tokens make up of the scored tokens of other units, and who makes up most.

    Parameters
    ----------
    inputs
        The texts.
    token
        (g,) token ids.
    unit
        (g,) the unit that each is not counted in; -1 counts them all.

    Returns
    -------
    share, most_frequent, its_share
        (g,) the share of each token, the most frequent token of the same units, and its share. NaN
        and -1 where no other unit has a token.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1, 1, 2], [1, 2, 2, 3]])
    >>> share, most, _ = shares_elsewhere(inputs, np.array([2]), np.array([0]))
    >>> share.tolist(), most.tolist()
    ([0.5], [2])
    """
    rows, columns = np.nonzero(inputs.scored)
    ids = inputs.ids[rows, columns]
    of_row = inputs.groups[rows]
    size = int(max(inputs.ids.max(), token.max(initial=0))) + 1
    total = np.bincount(ids, minlength=size)
    share = np.full(len(token), np.nan)
    most = np.full(len(token), -1)
    its = np.full(len(token), np.nan)
    for i, (token_id, left_out) in enumerate(zip(token, unit, strict=True)):
        counts = total - np.bincount(ids[of_row == left_out], minlength=size)
        if counts.sum():
            most[i] = int(counts.argmax())
            share[i], its[i] = counts[[token_id, most[i]]] / counts.sum()
    return share, most, its


def _given_before(
    inputs: Inputs,
    text: np.ndarray,
    column: np.ndarray,
    shorter: np.ndarray,
    length: int,
) -> tuple[np.ndarray, float]:
    """Return the probability of each token given those before it, and the smoothing."""
    before = contexts(inputs, text, column, length)
    token = inputs.ids[text, column]
    has_token = before >= 0
    unit = inputs.groups[text]
    pairs = np.zeros(len(text))
    after = np.zeros(len(text))
    pairs[has_token] = _elsewhere(
        numbered(before[has_token], token[has_token]), unit[has_token]
    )
    after[has_token] = _elsewhere(before[has_token], unit[has_token])

    def probability(strength: float) -> np.ndarray:
        return (pairs + strength * shorter) / (after + strength)

    return _best(probability, _STRENGTH)


def numbered(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a whole number for each pair; equal pairs have equal numbers.

    Examples
    --------
    >>> numbered(np.array([9, 9, 7]), np.array([1, 1, 1])).tolist()
    [3, 3, 1]
    """
    place = np.unique(first, return_inverse=True)[1].astype(np.int64)
    pairs: np.ndarray = place * (int(second.max(initial=0)) + 1) + second
    return pairs


def _unigram(
    inputs: Inputs, text: np.ndarray, column: np.ndarray, vocabulary: int
) -> Callable[[float], np.ndarray]:
    """Return the probability of each token at (text, column) in the other texts, by smoothing."""
    rows, columns = np.nonzero(inputs.scored)
    unit = inputs.groups[rows]
    of_text = inputs.groups[text]
    size = int(inputs.ids.max()) + 1
    targets = inputs.ids[text, column]
    ids = inputs.ids[rows, columns]
    total = np.bincount(ids, minlength=size)[targets]
    counts = _counts(unit * size + ids, of_text * size + targets)
    number = len(ids) - np.bincount(unit, minlength=len(inputs))[of_text]

    def probability(smoothing: float) -> np.ndarray:
        return (total - counts + smoothing) / (number + smoothing * vocabulary)

    return probability


def _elsewhere(keys: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return how often the key of each row occurs in rows of other units."""
    _, place, total = np.unique(keys, return_inverse=True, return_counts=True)
    cell = place * (unit.max(initial=0) + 1) + unit
    return total[place] - _counts(cell, cell)


def _counts(keys: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return how often each wanted key occurs."""
    distinct, times = np.unique(keys, return_counts=True)
    if not len(distinct):
        return np.zeros(len(queries), dtype=int)
    at = np.minimum(np.searchsorted(distinct, queries), len(distinct) - 1)
    return np.where(distinct[at] == queries, times[at], 0)


def _best(
    probability: Callable[[float], np.ndarray], grid: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the probabilities under which the tokens are least surprising, and the smoothing."""
    costs = [-float(np.log(probability(share)).sum()) for share in grid]
    best = float(grid[int(np.argmin(costs))])
    return probability(best), best


def _of_texts(losses: np.ndarray, text: np.ndarray, count: int) -> np.ndarray:
    number = np.bincount(text, minlength=count)
    return np.bincount(text, weights=losses, minlength=count) / np.maximum(number, 1)
