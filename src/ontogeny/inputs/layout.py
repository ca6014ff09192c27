"""Rows of tokens as rectangular arrays: how they are laid out, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import is_array, to_numpy
from ..errors import ArgumentError

_IGNORED = -100  # in labels, what has no loss


def lay_out(rows: Sequence[np.ndarray], fill: int | bool, side: str) -> np.ndarray:
    """Return rows of different lengths as one array, filled on `side`.

    Examples
    --------
    >>> lay_out([np.array([1, 2]), np.array([3])], 0, "left").tolist()
    [[1, 2], [0, 3]]
    """
    width = max(len(row) for row in rows)
    array = np.full((len(rows), width, *rows[0].shape[1:]), fill, dtype=rows[0].dtype)
    for index, row in enumerate(rows):
        columns = (
            slice(0, len(row)) if side == "right" else slice(width - len(row), width)
        )
        array[index, columns] = row
    return array


def rectangle(name: str, values: Any, fill: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `values` as an (n, L) int64 array, filled on the right, and where values were given.

    Raises
    ------
    ArgumentError
        If it is not a list of rows of integers.
    """
    try:
        values = list(to_numpy(values)) if is_array(values) else list(values)
        rows = [to_numpy(row) if is_array(row) else np.asarray(row) for row in values]
    except (TypeError, ValueError):
        rows = []
    if (
        not rows
        or any(row.ndim != 1 for row in rows)
        or not max(len(row) for row in rows)
    ):
        raise ArgumentError(
            f"{name} must hold one row of integers per text, and not be empty."
        )
    wrong = [row.dtype for row in rows if len(row) and row.dtype.kind not in "iub"]
    if wrong:
        raise ArgumentError(f"{name} must hold integers; got {wrong[0]}.")
    rows = [row.astype(np.int64) for row in rows]
    return lay_out(rows, fill, "right"), lay_out(
        [np.ones(len(row), dtype=bool) for row in rows], False, "right"
    )


def repad(array: np.ndarray, mask: np.ndarray, side: str) -> np.ndarray:
    """Return (n, L, ...) `array` with what is padding in `mask` moved to `side`, order kept.

    Examples
    --------
    >>> repad(
    ...     np.array([[7, 0], [5, 6]]), np.array([[True, False], [True, True]]), "left"
    ... ).tolist()
    [[0, 7], [5, 6]]
    """
    order = np.argsort(mask if side == "left" else ~mask, axis=1, kind="stable")
    trailing = tuple(range(2, array.ndim))
    return np.take_along_axis(array, np.expand_dims(order, trailing), axis=1)


def check_layout(
    ids: np.ndarray, mask: np.ndarray, special: np.ndarray, side: str
) -> None:
    """Check types and shapes, that every text has a token, and that padding lies on one side."""
    for name, array, kind in (
        ("ids", ids, "int64"),
        ("mask", mask, "bool"),
        ("special", special, "bool"),
    ):
        if array.ndim != 2 or array.dtype != kind or array.shape != ids.shape:
            raise ArgumentError(
                f"{name} must be a {kind} array of shape (texts, tokens) = {ids.shape}; "
                f"got {array.dtype} {array.shape}."
            )
    lengths = mask.sum(axis=1)
    empty = np.flatnonzero(lengths == 0)
    if not len(ids) or len(empty):
        raise ArgumentError(
            f"every text needs a token; these have none: {empty[:5].tolist()}."
        )
    if not special[~mask].all():
        raise ArgumentError("special must be True at padding too.")
    expected = np.arange(mask.shape[1]) < lengths[:, None]
    if side == "left":
        expected = expected[:, ::-1]
    wrong = np.flatnonzero((expected != mask).any(axis=1))
    if len(wrong):
        raise ArgumentError(
            "mask must be one run of tokens in every text, with all padding on the same side; "
            f"text {wrong[0]} has padding elsewhere than on the {side}."
        )


def check_range(name: str, ids: np.ndarray, vocab_size: int | None) -> None:
    """Check that ids are possible in a vocabulary of this size (None: unknown)."""
    if ids.min() < 0 or (vocab_size is not None and ids.max() >= vocab_size):
        allowed = (
            "0 or more" if vocab_size is None else f"between 0 and {vocab_size - 1}"
        )
        ignored = (
            " -100 marks places without a loss in labels: give the input ids instead."
        )
        raise ArgumentError(
            f"{name} must be {allowed}; they span {ids.min()} to {ids.max()}."
            + (ignored if ids.min() == _IGNORED else "")
        )


def looks_padded(ids: np.ndarray, pad_token_id: int) -> tuple[int, int] | None:
    """Return how many rows end in several tokens that may be padding, and which; None if none do.

    They do where the id of padding stands at ends alone, and more than once in a row. So does any
    other id that several rows end in: many pad with the token at the end of texts.

    Examples
    --------
    >>> looks_padded(np.array([[1, 2, 3], [4, 0, 0]]), 0)
    (1, 0)
    """
    ends, counts = np.unique(ids[:, -1], return_counts=True)
    for padding, least in ((pad_token_id, 1), (int(ends[counts.argmax()]), 2)):
        pad = ids == padding
        at_end = ending_in(ids, padding)
        count = int((at_end.sum(axis=1) > 1).sum())
        if count >= least and not (pad & ~at_end).any():
            return count, padding
    return None


def ending_in(ids: np.ndarray, token: int) -> np.ndarray:
    """Return (n, L) bool: the tokens of each row that are `token`, as all after them are.

    Examples
    --------
    >>> ending_in(np.array([[0, 5, 0, 0]]), 0).tolist()
    [[False, False, True, True]]
    """
    return np.asarray(
        np.logical_and.accumulate((ids == token)[:, ::-1], axis=1)[:, ::-1]
    )


def warn_of_padding(ids: np.ndarray, pad_token_id: int) -> None:
    """Warn of rows that look padded although no mask says so: their padding counts as tokens."""
    if found := looks_padded(ids, pad_token_id):
        count, padding = found
        warnings.warn(
            f"{count:,} of {len(ids):,} texts end in several tokens {padding}, which count as "
            f"tokens because no mask was given; give mask=(ids != {padding}) if they are padding.",
            stacklevel=3,  # who called from_tokens
        )
