"""The few texts of which every token is shown: the same ones for all that is kept of their tokens.

Only what depends on inputs and numbers decides, so that observables that know nothing of each other
keep losses, entropies and codes of the same tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import ArgumentError, check_whole
from .sampling import TokenSample, generator
from .tokens import Inputs

TOKENS = 64  # tokens of a text that are shown where nobody asks for another number


@dataclass(frozen=True, eq=False)
class ShownTexts:
    """A few texts whose tokens are shown, in their order; places count from a text's first token.

    Attributes
    ----------
    number
        (k,) number of each text in its input set.
    ids
        (k, w) its token ids, -1 beyond the text.
    ordinary
        (k, w) which of them are ordinary tokens.
    scored
        (k, w) which of these predictions are scored.
    """

    number: np.ndarray
    ids: np.ndarray
    ordinary: np.ndarray
    scored: np.ndarray

    @classmethod
    def of(
        cls, inputs: Inputs, count: int, max_tokens: int = TOKENS, random_state: int = 0
    ) -> ShownTexts:
        """Choose `count` texts of different units, and of each the first `max_tokens` tokens.

        They are drawn among those that have `max_tokens` tokens, or else among the longest; all
        have a scored token there.

        Raises
        ------
        ArgumentError
            If no text has an ordinary token after its first one, within `max_tokens`.

        Examples
        --------
        >>> texts = ShownTexts.of(Inputs.from_tokens([[5], [5, 6, 7], [8, 9]]), 2)
        >>> texts.number.tolist(), texts.ids.tolist()
        ([1, 2], [[5, 6, 7], [8, 9, -1]])
        """
        inputs = inputs.padded("right")
        check_whole("max_tokens", max_tokens, 2)
        number = _numbers(inputs, check_whole("count", count), max_tokens, random_state)
        width = min(max_tokens, int(inputs.lengths[number].max()))
        ids = np.where(inputs.mask, inputs.ids, -1)[number, :width]
        shown = (inputs.ordinary[number, :width], inputs.scored[number, :width])
        return cls(number, ids, *shown)

    @cached_property
    def sample(self) -> TokenSample:
        """The ordinary tokens that are shown, as rows of a reading."""
        row, place = np.nonzero(self.ordinary)
        return TokenSample(self.number[row], place)

    def grid(self, values: np.ndarray, empty: float | np.number = np.nan) -> np.ndarray:
        """Return values (..., tokens of `sample`) over texts and places, `empty` elsewhere.

        Examples
        --------
        >>> inputs = Inputs.from_tokens([[5, 6, 7], [5, 8]], special_ids=[5])
        >>> ShownTexts.of(inputs, 2).grid(np.array([1, 2, 3]), -1).tolist()
        [[-1, 1, 2], [-1, 3, -1]]
        """
        shape = (*values.shape[:-1], *self.ids.shape)
        grid = np.full(
            shape, empty, dtype=np.result_type(values.dtype, np.array(empty).dtype)
        )
        grid[..., self.ordinary] = values
        return grid


def _numbers(
    inputs: Inputs, count: int, max_tokens: int, random_state: int
) -> np.ndarray:
    lengths = np.where(inputs.scored[:, 1:max_tokens].any(axis=1), inputs.lengths, 0)
    order = generator(random_state).permutation(len(inputs))
    order = order[np.argsort(-np.minimum(lengths[order], max_tokens), kind="stable")]
    order = order[lengths[order] > 0]
    if not len(order):
        raise ArgumentError(
            f"no text has a token to predict among its first max_tokens={max_tokens}, "
            "after its first one."
        )
    _, first = np.unique(inputs.groups[order], return_index=True)
    return np.sort(order[np.sort(first)[:count]])
