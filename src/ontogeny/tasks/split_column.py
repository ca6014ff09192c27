"""A column that says which rows are training texts and which are held out, as data sets have it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, suggestion

COLUMN = "split"
TRAINING = "training"
HELD_OUT = "held-out"
ALL = "all"
SPLITS = (TRAINING, HELD_OUT, ALL)
_NAMES = {
    TRAINING: ("train", "training"),
    HELD_OUT: (
        "test",
        "val",
        "valid",
        "validation",
        "dev",
        "eval",
        "heldout",
        "held-out",
        "held_out",
    ),
}
# The set of each usual name.
SET_OF = {name: split for split, names in _NAMES.items() for name in names}


def split_of(value: Any) -> str:
    """Return which set a value of the column names.

    Raises
    ------
    ArgumentError
        If it names neither.

    Examples
    --------
    >>> split_of("Train"), split_of("validation")
    ('training', 'held-out')
    """
    name = str(value).strip().lower()
    if name not in SET_OF:
        raise ArgumentError(
            f"its {COLUMN!r} is {value!r}, and names neither training texts "
            f"({', '.join(_NAMES[TRAINING])}) nor held-out ones ({', '.join(_NAMES[HELD_OUT])})."
            f"{suggestion(name, SET_OF)} --set inputs.split=all reads all rows as one set"
        )
    return SET_OF[name]


def rows_of(path: Path, rows: Mapping[str, Any], split: str) -> dict[str, Any]:
    """Return the rows of one set by their places in a file; all of them where none is asked for.

    Raises
    ------
    ArgumentError
        If a row lacks the column or names no set, or no row is of this one; the message names the
        file, and the row.

    Examples
    --------
    >>> rows = {
    ...     "line 1": {"text": "a", "split": "train"},
    ...     "line 2": {"text": "b", "split": "test"},
    ... }
    >>> list(rows_of(Path("a.jsonl"), rows, "held-out"))
    ['line 2']
    """
    if split in ("", ALL):
        return dict(rows)
    kept = {
        where: row for where, row in rows.items() if _named(path, where, row) == split
    }
    if not kept:
        raise ArgumentError(f"{path}: no row of its column {COLUMN!r} is {split}.")
    return kept


def split_column(row: Any) -> Any:
    """Return the name of the column in a row, in any case; None where it has none.

    Examples
    --------
    >>> split_column({"text": "a", "Split": "test"}), split_column("a")
    ('Split', None)
    """
    names = row if isinstance(row, Mapping) else ()
    return next((name for name in names if str(name).lower() == COLUMN), None)


def _named(path: Path, where: str, row: Any) -> str:
    column = split_column(row)
    if column is None:
        raise ArgumentError(f"{path}, {where} has no column {COLUMN!r}.")
    try:
        return split_of(row[column])
    except ArgumentError as error:
        raise ArgumentError(f"{path}, {where}: {error}.") from None
