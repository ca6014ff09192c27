"""The same places of the same texts in several tokenizers: where tokens of all of them end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ArgumentError
from ...inputs import Inputs
from ...inputs.sampling import TokenSample, draw

LEAST = 0.5  # of the texts that must be left


def aligned_tokens(
    inputs: Sequence[Inputs],
    names: Sequence[str],
    max_tokens: int | None = None,
    random_state: int = 0,
) -> tuple[list[TokenSample], str]:
    """Return in each of several inputs the tokens that end at the same characters, and in words.

    A model has read the same text where a token of its own ends; of tokens that end at one
    character the last counts. Texts in which no token of one ends where one of another does, and
    texts that only some have, are left out.

    Raises
    ------
    ArgumentError
        If characters are not known, or fewer than half of the texts can be aligned.

    Examples
    --------
    >>> mask = np.ones((1, 3), bool)
    >>> def cut(spans):
    ...     ids = np.zeros((1, 3), int)
    ...     kinds = {"mask": mask, "special": ~mask}
    ...     return Inputs(ids=ids, **kinds, spans=np.array([spans]), texts=("abcdef",))
    >>> samples, words = aligned_tokens(
    ...     [cut([[0, 2], [2, 3], [3, 6]]), cut([[0, 1], [1, 3], [3, 6]])], ["a", "b"]
    ... )
    >>> [sample.position.tolist() for sample in samples]
    [[1, 2], [1, 2]]
    """
    for name, part in zip(names, inputs, strict=True):
        if part.texts is None or part.spans is None:
            raise ArgumentError(
                f"runs with other tokens are aligned by characters, and those of {name!r} are not "
                "known: its texts are token ids, or its tokenizer (no fast one) gives no offsets."
            )
    ends = [_ends(part) for part in inputs]
    matched: list[list[tuple[int, int]]] = [[] for _ in inputs]
    shared = [text for text in ends[0] if all(text in by_text for by_text in ends)]
    left = 0
    for text in shared:
        common = sorted(set.intersection(*(set(by_text[text][1]) for by_text in ends)))
        left += bool(common)
        for rows, by_text in zip(matched, ends, strict=True):
            index, last = by_text[text]
            rows += [(index, last[end]) for end in common]
    longest = max(map(len, ends))
    if left < LEAST * longest or not left:
        raise ArgumentError(
            f"runs with other tokens are aligned by characters: of {longest} texts only {left} "
            f"have tokens of {' and '.join(map(repr, names))} that end at the same character."
        )
    whole = [TokenSample(*np.array(rows).T) for rows in matched]
    order = draw(
        TokenSample(np.arange(len(whole[0])), whole[0].text), max_tokens, random_state
    )
    samples = [
        TokenSample(part.text[order.text], part.position[order.text]) for part in whole
    ]
    return samples, (
        "The runs read other texts or other tokens of them: tokens that end at the same "
        f"characters of {left} of {longest} texts are compared, {len(whole[0]):,} places."
    )


def _ends(inputs: Inputs) -> dict[str, tuple[int, dict[int, int]]]:
    """Return by text its index, and by character the last ordinary token that ends there."""
    assert inputs.texts is not None and inputs.spans is not None
    places: dict[str, tuple[int, dict[int, int]]] = {}
    for i, text in enumerate(inputs.texts):
        mask = inputs.mask[i]
        spans = inputs.spans[i][mask].tolist()
        ordinary = inputs.ordinary[i][mask].tolist()
        pairs = enumerate(zip(spans, ordinary, strict=True))
        ends = {end: k for k, ((start, end), counts) in pairs if counts and end > start}
        places.setdefault(text, (i, ends))
    return places


def rows_of(inputs: Inputs, sample: TokenSample) -> np.ndarray:
    """Return which rows of a reading of all ordinary tokens a sample is."""
    whole = inputs.sample("all")
    longest = inputs.ids.shape[1]
    keys = whole.text * longest + whole.position
    return np.searchsorted(keys, sample.text * longest + sample.position)
