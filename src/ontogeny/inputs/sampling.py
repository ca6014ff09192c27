"""Seeded choices among tokens: which rows a reading keeps, which tokens are masked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import check_number, check_whole


@dataclass(frozen=True, eq=False)
class TokenSample:
    """Which rows a reading keeps, ordered by text, then position.

    Parameters
    ----------
    text
        (k,) the text of each row.
    position
        (k,) its token, counted from the text's first token (padding does not count);
        -1 where the row is the mean of a whole text.
    """

    text: np.ndarray
    position: np.ndarray

    def __len__(self) -> int:
        return len(self.text)


def draw(sample: TokenSample, max_tokens: int | None, random_state: int) -> TokenSample:
    """Return at most `max_tokens` rows of `sample`, drawn without replacement, in their order.

    Examples
    --------
    >>> whole = TokenSample(np.zeros(9, int), np.arange(9))
    >>> len(draw(whole, 4, 0)), len(draw(whole, None, 0))
    (4, 9)
    """
    if max_tokens is None or check_whole("max_tokens", max_tokens) >= len(sample):
        return sample
    rows = generator(random_state).choice(len(sample), size=max_tokens, replace=False)
    rows.sort()
    return TokenSample(sample.text[rows], sample.position[rows])


def masked_positions(
    ordinary: np.ndarray, fraction: float, random_state: int
) -> np.ndarray:
    """Choose `fraction` of each row's ordinary tokens, rounded half up, at least one.

    The choice depends on the order of the ordinary tokens only, not on the padding between them.

    Examples
    --------
    >>> ordinary = np.array([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=bool)
    >>> masked_positions(ordinary, 0.5, random_state=0).sum(axis=1).tolist()
    [2, 1, 0]
    """
    check_number("mask_fraction", fraction, 0, 1, above=True, below=True)
    text, column = np.nonzero(ordinary)
    shuffled = np.lexsort((generator(random_state).random(len(text)), text))
    number = np.bincount(text, minlength=len(ordinary))
    rank = np.arange(len(text)) - np.repeat(np.cumsum(number) - number, number)
    quota = np.maximum(1, np.floor(fraction * number + 0.5))
    rows = shuffled[rank < quota[text]]
    positions = np.zeros(ordinary.shape, dtype=bool)
    positions[text[rows], column[rows]] = True
    return positions


def generator(random_state: int) -> np.random.Generator:
    """Return the generator of a seed, a non-negative integer."""
    return np.random.default_rng(check_whole("random_state", random_state, 0))
