"""Which tokens of an input set are asked for, by a rule that sees no model.

Half of the gaps have a right token that is frequent, half one that is rarer; each stands in another
text, and no token is asked for twice. A gap is a whole word where the characters of the texts are
known, it has words on both sides, and its token occurs in other texts too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ...errors import ArgumentError
from ...inputs import Inputs
from ...inputs.sampling import generator

_BEFORE = 8  # ordinary tokens on both sides of a gap
_AFTER = 4


def choose_gaps(
    inputs: Inputs, n_gaps: int, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Choose gaps in the texts of an input set.

    A token is frequent if it is among the most frequent ones that make up half of what could be
    chosen. Where too few tokens fulfil all conditions, they are given up one after the other: that
    it is a whole word, that there is context, and that it is made of letters and occurs elsewhere.

    Parameters
    ----------
    inputs
        The texts; they must not be those that the model was trained on.
    n_gaps
        How many gaps; fewer are chosen where there are fewer units of texts (`Inputs.groups`).
    random_state
        Seed of the draw.

    Returns
    -------
    text, position
        (g,) the texts, and the token of each counted from its first, the most frequent right token
        first.

    Raises
    ------
    ArgumentError
        If no text has a token after its first one.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[1, 2, 3, 4], [5, 6, 2, 4]])
    >>> text, position = choose_gaps(inputs, 2)
    >>> sorted(text.tolist()), bool((position > 0).all())
    ([0, 1], True)
    """
    inputs = inputs.padded("right")
    text, position = np.nonzero(inputs.scored)
    text = text[position > 0]
    position = position[position > 0]
    if not len(text):
        raise ArgumentError(
            "no text has an ordinary token after its first one to leave out."
        )
    order = generator(random_state).permutation(len(text))
    text = text[order]
    position = position[order]
    ids = inputs.ids[text, position]

    def is_part(at: int) -> bool:
        return _is_part(inputs, text[at], position[at])

    conditions = (
        (allowed, is_part if whole_words else None)
        for allowed, whole_words in _conditions(inputs, text, position)
    )
    at = drawn(ids, inputs.groups[text], conditions, n_gaps)
    counts = np.bincount(
        inputs.ids[inputs.ordinary], minlength=int(inputs.ids.max()) + 1
    )
    at = at[np.argsort(-counts[ids[at]], kind="stable")]
    return text[at], position[at]


IsPart = Callable[[int], bool]


def drawn(
    key: np.ndarray,
    unit: np.ndarray,
    conditions: Iterable[tuple[np.ndarray, IsPart | None]],
    n_gaps: int,
) -> np.ndarray:
    """Return which candidates are gaps: half of them frequent, each another one in another unit.

    Parameters
    ----------
    key, unit
        (n,) number of each candidate's token or word, and its unit of texts, in random order.
    conditions
        Which candidates are allowed (n,), and what tells parts of a word from whole ones; the
        strictest first.
    n_gaps
        How many.
    """
    places: list[int] = []
    for allowed, is_part in conditions:
        places = _draw(key, unit, allowed, is_part, n_gaps, places)
        if len(places) == n_gaps:
            break
    return np.array(places, dtype=np.int64)


def _conditions(
    inputs: Inputs, text: np.ndarray, position: np.ndarray
) -> Iterator[tuple[np.ndarray, bool]]:
    """Give which candidates are allowed, and whether they must be words; the strictest first."""
    running = np.cumsum(inputs.ordinary, axis=1)
    before = running[text, position] - 1
    after = running[text, -1] - before - 1
    words = _words(inputs)
    elsewhere = _units_with(inputs) > 1
    ids = inputs.ids[text, position]
    context = (before >= _BEFORE) & (after >= _AFTER)
    has_words = inputs.spans is not None and inputs.texts is not None
    yield words[ids] & elsewhere[ids] & context, has_words
    # Scripts without spaces between words.
    yield (words[ids] & elsewhere[ids] & context, False)
    yield words[ids] & elsewhere[ids], False
    yield np.ones(len(text), dtype=bool), False


def _draw(
    key: np.ndarray,
    unit: np.ndarray,
    allowed: np.ndarray,
    is_part: IsPart | None,
    n_gaps: int,
    places: list[int],
) -> list[int]:
    """Return `places` with more candidates, in the order that they are in."""
    frequent = _frequent(key, allowed)[key]
    places = list(places)
    half = -(-n_gaps // 2)
    for mask, most in (
        (frequent, half),
        (~frequent, n_gaps),
        (frequent | ~frequent, n_gaps),
    ):
        taken = {"unit": set(unit[places]), "key": set(key[places])}
        for at in np.flatnonzero(allowed & mask):
            if len(places) >= most:
                break
            new = unit[at] not in taken["unit"] and key[at] not in taken["key"]
            if new and not (is_part and is_part(int(at))):
                places.append(int(at))
                taken["unit"].add(unit[at])
                taken["key"].add(key[at])
    return places


def _frequent(key: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return by key whether it is among the most frequent ones that make up half of the allowed."""
    counts = np.bincount(key[allowed], minlength=int(key.max()) + 1)
    order = np.argsort(-counts, kind="stable")
    reached = np.cumsum(counts[order]) - counts[order]  # by those before
    frequent = np.zeros(len(counts), dtype=bool)
    frequent[order] = (reached < counts.sum() / 2) & (counts[order] > 0)
    return frequent


def _units_with(inputs: Inputs) -> np.ndarray:
    """Return by id in how many units of texts it occurs."""
    rows, columns = np.nonzero(inputs.ordinary)
    pairs = np.unique(
        np.stack([inputs.ids[rows, columns], inputs.groups[rows]]), axis=1
    )
    return np.bincount(pairs[0], minlength=int(inputs.ids.max()) + 1)


def _words(inputs: Inputs) -> np.ndarray:
    """Return by id whether it is made of letters; of all ids where characters are not known."""
    words = np.ones(int(inputs.ids.max()) + 1, dtype=bool)
    if inputs.spans is None or inputs.texts is None:
        return words
    text, position = np.nonzero(inputs.ordinary)
    distinct, first = np.unique(inputs.ids[text, position], return_index=True)
    for token, at in zip(distinct, first, strict=True):
        written = inputs.word(int(text[at]), int(position[at])) or ""
        words[token] = written.strip().isalpha()
    return words


def _is_part(inputs: Inputs, text: int, position: int) -> bool:
    """Return whether a token is no word that stands free: a space before it, no letter behind."""
    assert inputs.spans is not None and inputs.texts is not None
    whole = inputs.texts[text]
    (start, stop) = inputs.spans[text, position]
    token = whole[start:stop]
    start += len(token) - len(token.lstrip())
    behind = whole[stop : stop + 1]
    inside = start > 0 and not whole[start - 1].isspace()
    return inside or behind.isalnum() or behind in ("_", "'", "’", "-", "(")
