"""Texts that belong together: those that repeat, and those of one document."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError


def document_array(documents: Any, count: int) -> np.ndarray:
    """Return documents (count,) as an array of texts or whole numbers.

    Raises
    ------
    ArgumentError
        If there is not one for every text, or one is missing or neither text nor whole number.

    Examples
    --------
    >>> document_array(["a", "a", "b"], 3).tolist()
    ['a', 'a', 'b']
    """
    array = np.asarray(documents)
    if array.shape != (count,):
        raise ArgumentError(
            f"documents must name one document for each of {count} texts; got shape {array.shape}."
        )
    names = list(documents)  # as they are: NumPy writes 1 and "1" alike
    if array.dtype.kind == "O":  # a column of a table
        array = np.asarray(names)
    if array.dtype.kind not in "iuUS":
        odd = next((d for d in names if not isinstance(d, str | int | np.integer)), names)
        raise ArgumentError(
            f"documents must be texts or whole numbers, one for each text; got {odd!r}."
        )
    if len({isinstance(d, str | bytes) for d in names}) > 1:
        raise ArgumentError("documents must be all texts or all whole numbers; they are mixed.")
    return array


def normalised(text: str) -> str:
    r"""Return a text by which repeats are found: without case, width and kind of white space.

    Examples
    --------
    >>> normalised(" The  End\n") == normalised("the end")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_groups(texts: Sequence[str], documents: np.ndarray | None = None) -> np.ndarray:
    """Return (n,) the number of the first text of each text's unit, before tokens are known.

    Examples
    --------
    >>> text_groups(["The end", "Once", "the end"]).tolist()
    [0, 1, 0]
    """
    document_lists = [] if documents is None else [documents.tolist()]
    return joined([[normalised(text) for text in texts], *document_lists], len(texts))


def token_keys(ids: np.ndarray, mask: np.ndarray) -> list[bytes]:
    """Return what two texts have in common if their tokens (n, L) are the same.

    Texts that were cut at the same length may be the same up to there.
    """
    return [row[there].tobytes() for row, there in zip(ids, mask, strict=True)]


def joined(keys: Sequence[Sequence[Hashable]], count: int) -> np.ndarray:
    """Return (count,) the number of the first text of each unit.

    Parameters
    ----------
    keys
        Sequences of `count` keys each. Texts with a key in common belong to one unit, and so do
        texts that are connected through others.
    count
        Number of texts.

    Examples
    --------
    >>> joined([["x", "y", "x", "z"], [0, 1, 2, 1]], 4).tolist()
    [0, 1, 0, 1]
    """
    shared = [values for values in keys if len(set(values)) < count]
    if not shared:
        return np.arange(count)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    firsts = []
    for values in shared:
        first: dict[Hashable, int] = {}
        firsts.append([first.setdefault(key, row) for row, key in enumerate(values)])
    edges = (np.tile(np.arange(count), len(shared)), np.concatenate(firsts))
    links = coo_array((np.ones(len(edges[0]), dtype=np.int8), edges), shape=(count, count))
    _, unit = connected_components(links.tocsr(), directed=False)
    _, first_row, inverse = np.unique(unit, return_index=True, return_inverse=True)
    return np.asarray(first_row[inverse])
