"""Seeded splits and draws that keep the shares of the classes."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_number, check_whole
from ..units import Units
from .sampling import generator


def label_array(labels: Any) -> np.ndarray:
    """Return labels as an array; 1 and "1", which NumPy would write alike, are refused together.

    Raises
    ------
    ArgumentError
        If texts, numbers and truth values are mixed, or a label is NaN.

    Examples
    --------
    >>> label_array(["1", "01"]).tolist()
    ['1', '01']
    """
    array = np.asarray(labels)
    values = labels if isinstance(labels, list | tuple) else array.tolist()
    kinds = {_kind(value): value for value in values} if array.ndim == 1 else {}
    if len(kinds) > 1:
        one, other = list(kinds.values())[:2]
        raise ArgumentError(
            f"labels must be all texts, all numbers or all truth values; they mix {one!r} and "
            f"{other!r}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ArgumentError("labels must not be NaN or infinite.")
    return array


def _kind(value: Any) -> type:
    if isinstance(value, bool | np.bool_):
        return bool
    if isinstance(value, str):  # NumPy's own kind of text, too
        return str
    return float if isinstance(value, int | float | np.number) else type(value)


def class_counts(labels: Any) -> dict[Any, int]:
    """Return how many texts each class has, in the order of the labels.

    Examples
    --------
    >>> class_counts([1, 0, 1])
    {0: 1, 1: 2}
    """
    classes, counts = np.unique(label_array(labels), return_counts=True)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def stratified_split(
    labels: Any,
    train_fraction: float = 2 / 3,
    random_state: int = 0,
    groups: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Split texts in two, each class alike: about `train_fraction` of it goes to the first part.

    Every class has at least one text in both parts. The report uses 2/3 to find a direction and
    1/3 to test it (sec. 6.2).

    Parameters
    ----------
    labels
        (n,) one label per text.
    train_fraction
        Share of the first part.
    random_state
        Seed; the same labels and seed give the same split.
    groups
        (n,) the unit of each text, as `Inputs.groups` gives it. Units stay whole, so that
        `train_fraction` is kept as well as their sizes allow. One with several classes counts for
        the rarest of them.

    Returns
    -------
    first, second : numpy.ndarray
        Increasing int64 indices that together are 0 to n - 1.

    Raises
    ------
    ArgumentError
        If a class has a single text or unit, `train_fraction` is not between 0 and 1, or `groups`
        does not name a unit for every text.

    Examples
    --------
    >>> first, second = stratified_split([0, 0, 0, 1, 1, 1])
    >>> len(first), len(second)
    (4, 2)
    >>> first, second = stratified_split(
    ...     [0, 0, 0, 0, 1, 1], 0.5, groups=[0, 0, 2, 2, 4, 5]
    ... )
    >>> len(first), len(second)
    (3, 3)
    """
    labels = _check_labels(labels)
    check_number("train_fraction", train_fraction, 0, 1, above=True, below=True)
    units = Units.of(groups, len(labels), "texts")
    has = _has(labels, units)
    classes = np.unique(labels)
    if (has.sum(0) < 2).any():
        what = (
            "texts"
            if units.distinct
            else "units of texts (documents, or texts that repeat)"
        )
        raise ArgumentError(
            f"every class needs two {what} to be split; these have one: "
            f"{classes[has.sum(0) < 2].tolist()} (of {len(labels)} texts)."
        )
    rng = generator(random_state)
    # A unit with several classes counts for the one that fewest units have.
    strata = np.where(has, has.sum(0), units.count + 1).argmin(1)
    is_train = np.zeros(units.count, dtype=bool)
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        is_train[members[_train_units(units.sizes[members], train_fraction)]] = True
    missing = classes[~(has[is_train].any(0) & has[~is_train].any(0))]
    if len(missing):
        raise ArgumentError(
            f"no split of {units.count} units of texts found with every class in both parts; "
            f"{missing.tolist()} is in one alone. Give more documents, or another random_state."
        )
    first = is_train[units.place]
    return np.flatnonzero(first), np.flatnonzero(~first)


def _train_units(sizes: np.ndarray, train_fraction: float) -> list[int]:
    """Return which units, the first that fit, hold about `train_fraction` of their texts.

    At least one, and not all of several.
    """
    target = round(train_fraction * sizes.sum())
    total = 0
    taken: list[int] = []
    most = max(len(sizes) - 1, 1)
    for i, size in enumerate(sizes):
        if total + size <= target and len(taken) < most:
            taken.append(i)
            total += size
    remaining = np.setdiff1d(np.arange(len(sizes)), taken)
    if len(remaining) and len(taken) < most:
        least = remaining[sizes[remaining].argmin()]
        if not taken or abs(total + sizes[least] - target) < target - total:
            taken.append(int(least))
    return taken


def _has(labels: np.ndarray, units: Units) -> np.ndarray:
    """Return whether each unit has texts of each class, (units, classes)."""
    classes, number = np.unique(labels, return_inverse=True)
    has = np.zeros((units.count, len(classes)), dtype=bool)
    has[units.place, number] = True
    return has


def stratified_draw(labels: Any, count: int, random_state: int = 0) -> np.ndarray:
    """Draw `count` texts without replacement so that the classes keep their shares.

    Returns increasing indices; all of them where there are no more than `count`.

    Examples
    --------
    >>> labels = np.array([0] * 80 + [1] * 20)
    >>> class_counts(labels[stratified_draw(labels, 10)])
    {0: 8, 1: 2}
    """
    labels = _check_labels(labels)
    if check_whole("count", count) >= len(labels):
        return np.arange(len(labels))
    shuffled = generator(random_state).permutation(len(labels))
    # Rank within the class over the class's size: its smallest values keep the shares everywhere.
    order = np.empty(len(labels))
    for label in np.unique(labels):
        members = shuffled[labels[shuffled] == label]
        order[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.sort(shuffled[np.argsort(order[shuffled], kind="stable")[:count]])


def _check_labels(labels: Any) -> np.ndarray:
    labels = label_array(labels)
    if labels.ndim != 1 or not len(labels):
        raise ArgumentError(
            f"labels must be one label per text; their shape is {labels.shape}."
        )
    return labels


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
        odd = next(
            (d for d in names if not isinstance(d, str | int | np.integer)), names
        )
        raise ArgumentError(
            f"documents must be texts or whole numbers, one for each text; got {odd!r}."
        )
    if len({isinstance(d, str | bytes) for d in names}) > 1:
        raise ArgumentError(
            "documents must be all texts or all whole numbers; they are mixed."
        )
    return array


def normalised(text: str) -> str:
    r"""Return a text by which repeats are found: without case, width and kind of white space.

    Examples
    --------
    >>> normalised(" The  End\n") == normalised("the end")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_groups(
    texts: Sequence[str], documents: np.ndarray | None = None
) -> np.ndarray:
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
    links = coo_array(
        (np.ones(len(edges[0]), dtype=np.int8), edges), shape=(count, count)
    )
    _, unit = connected_components(links.tocsr(), directed=False)
    _, first_row, inverse = np.unique(unit, return_index=True, return_inverse=True)
    return np.asarray(first_row[inverse])
