"""Repeated sequences of random tokens, framed as the model is used to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...capture.families import longest_text
from ...capture.own_tokens import ordinary_tokens
from ...errors import ArgumentError, check_whole
from ...inputs import Inputs

SHORTEST = 3  # below it the scores look at the same places


@dataclass(frozen=True, eq=False)
class RandomSequences:
    """Repeated sequences, and as many of the same length in which no token occurs twice.

    Parameters
    ----------
    inputs
        The texts: those with repetition first, then those without.
    period
        Tokens of one half.
    start
        How many special tokens stand before the first half.
    """

    inputs: Inputs
    period: int
    start: int

    @property
    def count(self) -> int:
        """Number of repeated sequences."""
        return len(self.inputs) // 2

    @property
    def place(self) -> slice:
        """Where both halves stand in every text."""
        return slice(self.start, self.start + 2 * self.period)


def random_sequences(
    tokens: Sequence[int] | np.ndarray, count: int, period: int, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences of random tokens with repetition and without.

    Parameters
    ----------
    tokens
        Ids to draw from, uniformly; at least 2 p different ones.
    count
        Number n of sequences of each kind.
    period
        p, the length of one half.
    random_state
        Seed.

    Returns
    -------
    repeated, unrepeated
        (n, 2 p) ids. Both begin with the same p tokens, all different. They are repeated in the
        first, and other tokens follow in the second.

    Raises
    ------
    ArgumentError
        If there are too few tokens, or a number is out of range.

    Examples
    --------
    >>> repeated, unrepeated = random_sequences(range(5, 40), 2, 4)
    >>> (
    ...     bool((repeated[:, :4] == repeated[:, 4:]).all()),
    ...     len(set(unrepeated[0].tolist())),
    ... )
    (True, 8)
    """
    check_whole("count", count)
    check_whole("period", period, SHORTEST)
    distinct = np.unique(np.asarray(tokens, dtype=np.int64))
    if len(distinct) < 2 * period:
        raise ArgumentError(
            f"tokens must hold {2 * period} different ids for a period of {period}; got "
            f"{len(distinct)}. Choose a smaller period."
        )
    rng = np.random.default_rng([random_state, 11])
    sequences = np.stack(
        [rng.choice(distinct, 2 * period, replace=False) for _ in range(count)]
    )
    return np.tile(sequences[:, :period], 2), sequences


def sequences_for(
    model: Any, inputs: Inputs, count: int, period: int, random_state: int
) -> RandomSequences:
    """Return sequences of a model's own tokens, framed by the special tokens of its texts.

    They are shorter than asked for where the model takes no such texts or knows too few tokens.

    Raises
    ------
    ArgumentError
        If not even three tokens could be repeated.
    """
    tokens = ordinary_tokens(model, inputs)
    begin, end = frame(inputs)
    config = getattr(model, "config", None)
    # Where nothing tells how long texts may be, they are as long as the inputs.
    known = 10**6 if hasattr(config, "model_type") else int(inputs.lengths.max())
    longest = longest_text(config) or known
    longest -= len(begin) + len(end)
    fits = min(period, longest // 2, len(tokens) // 2)
    if fits < SHORTEST:
        raise ArgumentError(
            f"{type(model).__name__} takes texts of {longest} tokens and has {len(tokens)} "
            f"ordinary ones: no {SHORTEST} tokens can be repeated, so heads cannot be scored."
        )
    both = np.concatenate(random_sequences(tokens, count, fits, random_state))
    return RandomSequences(framed(begin, both, end), fits, len(begin))


def framed(
    begin: Sequence[int], ids: np.ndarray, end: Sequence[int] = (), special: Any = False
) -> Inputs:
    """Return texts (n, length) between special tokens; `special` says which of theirs are too.

    Examples
    --------
    >>> framed([1], np.array([[5, 6], [7, 8]])).special.tolist()
    [[True, False, False], [True, False, False]]
    """
    sides = [
        np.tile(np.array(side, dtype=np.int64), (len(ids), 1)) for side in (begin, end)
    ]
    whole = np.concatenate([sides[0], ids, sides[1]], axis=1)
    mask = np.ones(whole.shape, dtype=bool)
    marks = np.ones(whole.shape, dtype=bool)
    marks[:, len(begin) : whole.shape[1] - len(end)] = special
    return Inputs.from_tokens(whole, mask, marks)


def frame(inputs: Inputs) -> tuple[list[int], list[int]]:
    """Return the special tokens that every text begins with, and those that every text ends with.

    Examples
    --------
    >>> frame(Inputs.from_tokens([[1, 5, 6, 2], [1, 7, 2]], special_ids=[1, 2]))
    ([1], [2])
    """
    texts = [
        (ids[mask], special[mask])
        for ids, mask, special in zip(
            inputs.ids, inputs.mask, inputs.special, strict=True
        )
    ]
    begin = _shared(texts)
    end = _shared(
        (ids[len(begin) :][::-1], special[len(begin) :][::-1]) for ids, special in texts
    )
    return begin, end[::-1]


def _shared(texts: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[int]:
    """Return the special tokens that all texts begin with."""
    texts = list(texts)
    numbers = list[int]()
    for place in range(min(len(ids) for ids, _ in texts)):
        first = {int(ids[place]) for ids, _ in texts}
        if len(first) > 1 or not all(special[place] for _, special in texts):
            break
        numbers += first
    return numbers
