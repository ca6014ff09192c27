"""The best possible loss of texts that were made: a number, or a column with one for each text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.token_files import TOKEN_FILES, open_tokens
from ..tasks.columns import read_columns
from ..tasks.files import content_of, files_of, holds_text
from ..tasks.records import read_records
from ..tasks.rows import FORMATS
from ..tasks.split_column import ALL, rows_of

_OPTION = "--floor"


def best_loss(
    given: str, texts: Sequence[str], table: Mapping[str, Any], inputs: Inputs
) -> tuple[float | None, list[str]]:
    """Return the best possible loss in nats per scored token, and what is to be said of it.

    Parameters
    ----------
    given
        A number; or the name of a column of the texts, or a file of one number for each text
        (``.npy``), in nats per scored token; empty where none was given.
    texts
        The files of texts.
    table
        The table of inputs of the study file: how many texts, and of which set.
    inputs
        The texts as they are read: where all of them are there, each counts as often as it has
        scored tokens.

    Raises
    ------
    ArgumentError
        If it is no number of at least 0, no such column or file, or has not a number for each text.
    """
    if not given:
        return None, []
    if _number(given) is not None:
        return _checked(given, f"{_OPTION} {given}"), []
    if Path(given).suffix == ".npy":
        values = _of_array(Path(given).expanduser())
        where = f"in {given}"
        _check_rows(given, values, texts, table, inputs)
    else:
        values = _of_column(given, texts, table)
        where = f"in the column {given!r}"
    values = values[: table.get("max_texts")]
    count = inputs.scored.sum(axis=1)
    left_out = len(values) - len(count)
    weights = np.ones(len(values)) if left_out else count
    mean = float(np.average(values, weights=weights))
    floor = float(f"{mean:.6g}")
    line = f"best possible loss: {floor:.4g} nats per token, the mean of {len(values):,} {where}"
    if left_out:
        line += f", also of {left_out:,} whose texts are left out"
    return floor, [line]


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _checked(value: Any, where: str) -> float:
    number = None if isinstance(value, bool) else _number(value)
    if number is None or not math.isfinite(number) or number < 0:
        raise ArgumentError(
            f"{where} must be nats per token of at least 0; got {value!r}."
        )
    return number


def _check_rows(
    given: str,
    values: np.ndarray,
    texts: Sequence[str],
    table: Mapping[str, Any],
    inputs: Inputs,
) -> None:
    """Refuse numbers that cannot be told to be of the texts that are read.

    Of several files of ids some rows of each are read, of a stream pieces from all over it, and of
    a table with a column of sets the rows of one set.
    """
    read = len(inputs) + inputs.dropped
    is_whole = table.get("split", ALL) == ALL
    is_first = (
        is_whole and len(texts) == 1 and not _is_stream(Path(texts[0]).expanduser())
    )
    if len(values) < read or (len(values) > read and not is_first):
        some = "the first texts of one file" if is_first else "exactly the texts"
        raise ArgumentError(
            f"{_OPTION} {given} must hold one number for each text, and it holds {len(values):,}: "
            f"{read:,} texts are read, and numbers go with {some} that are read."
        )


def _is_stream(path: Path) -> bool:
    """Return whether a file holds one row of ids, which is cut into texts."""
    if path.suffix == ".bin":
        return True
    return path.suffix in TOKEN_FILES and open_tokens(path).ids.ndim == 1


def _of_column(name: str, texts: Sequence[str], table: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers of a column, of all files in order; of rows without a text none."""
    split = str(table.get("split", ""))
    files = files_of(texts) if texts else []
    if not files or any(file.suffix.lower() not in FORMATS for file in files):
        raise ArgumentError(
            f"{_OPTION} must be a number of nats per token, a .npy file, or a column of --texts "
            f"that is a table ({', '.join(FORMATS)}); got {name!r}."
        )
    values = []
    for file in files:
        rows = {f"line {line}": row for line, row in read_records(file)}
        kept = rows_of(file, rows, split)
        there, _ = read_columns(
            file,
            content_of(file, table.get("encoding", "utf-8")),
            table.get("field"),
            split,
        )
        for text, (where, row) in zip(there, kept.items(), strict=True):
            if not holds_text(text):
                continue
            if not isinstance(row, Mapping) or name not in row:
                names = (
                    ", ".join(map(repr, row)) if isinstance(row, Mapping) else "none"
                )
                raise ArgumentError(
                    f"{_OPTION} {name}: {file}, {where} has no such column; it has {names}."
                )
            values.append(_checked(row[name], f"{_OPTION} {name}: {file}, {where}"))
    return np.array(values)


def _of_array(path: Path) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{_OPTION} {path} cannot be read: {error}.") from None
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not len(values):
        raise ArgumentError(
            f"{_OPTION} {path} must hold one number for each text; it is {values.dtype} of shape "
            f"{values.shape}."
        )
    return np.array([_checked(float(v), f"{_OPTION} {path}") for v in values])
