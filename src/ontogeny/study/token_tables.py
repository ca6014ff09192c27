"""Input sets of token ids: read of files, cut into texts, with what is scored of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.layout import ending_in, looks_padded
from ..inputs.pieces import pieces_of, spelled
from ..inputs.scoring import REGEX, AnswersCutError
from ..inputs.token_files import TokenFile, form_of_files, labels_beside, open_tokens
from ..inputs.tokenize import count_ids
from ..trajectory import Trajectory
from ..trajectory.weights.files import matrix_names
from .tables import as_list

OF_TOKENS = {
    "dtype": str,
    "vocab_size": int,
    "special_ids": tuple[int, ...],
    "mask_token_id": int,
    "pad_token_id": int,
}
_LENGTH = 128  # tokens of a text, unless another length is said


def inputs_of_tokens(
    table: Mapping[str, Any], base: Path, trajectory: Trajectory
) -> Inputs:
    """Return texts of token ids, from one file or several; a tokenizer is asked, not needed."""
    paths = as_list(table["tokens"])
    limit = table.get("max_texts")
    length = table.get("max_length", _LENGTH)
    per_file = None if limit is None else -(-limit // len(paths))
    kwargs = {k: table[k] for k in OF_TOKENS if k in table and k != "dtype"}
    tokenizer = trajectory.tokenizer()
    if tokenizer is not None:
        kwargs.setdefault("vocab_size", count_ids(tokenizer))
        kwargs.setdefault("mask_token_id", getattr(tokenizer, "mask_token_id", None))
        kwargs.setdefault("special_ids", getattr(tokenizer, "all_special_ids", ()))
    size, bound = _ids_of_model(trajectory, kwargs.get("vocab_size"))
    opened = [
        open_tokens(base / str(path), table.get("dtype"), size, bound) for path in paths
    ]
    pieces = None if tokenizer is None else pieces_of(tokenizer)
    starts = [file.starts(length, per_file, pieces) for file in opened]
    tables = [
        file.texts(length, per_file, begin)
        for file, begin in zip(opened, starts, strict=True)
    ]
    by_file = [
        file.cut(length, len(ids)) for file, ids in zip(opened, tables, strict=True)
    ]
    cut = list(chain.from_iterable(by_file))[:limit]
    rows = list(chain.from_iterable(tables))[:limit]
    same = len({len(row) for row in rows}) == 1
    ids = np.stack(rows) if same else [row.tolist() for row in rows]
    labels = _token_labels(table, base, opened, length, per_file, starts)
    mask, notes = _padding(ids, table)
    _check_ends(table, cut, length)
    scoring = _score_of_ids(table, tokenizer)
    try:
        inputs = Inputs.from_tokens(
            ids, mask, **kwargs, **scoring, token_labels=labels and labels[:limit]
        )
    except ArgumentError as error:
        if not any(cut) or (labels is None and "answer_after" not in scoring):
            raise
        # A separator, or all that is asked for, may stand behind the cut.
        raise AnswersCutError(f"{error} Of the texts {_as_cut(cut, length)}") from None
    return replace(
        spelled(inputs, pieces),
        truncated=sum(count > 0 for count in cut),
        cut_tokens=sum(cut),
        notes=(*inputs.notes, *notes),
        form=form_of_files(opened, rows),
    )


def _padding(
    ids: np.ndarray | list[Any], table: Mapping[str, Any]
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which ids of rows of one length are tokens, and a line on rows that look padded.

    Rows of several lengths have no padding.

    Where ``pad_token_id`` is said, rows end before it; else everything counts as a token.
    """
    if isinstance(ids, list):
        return None, ()
    if "pad_token_id" in table:
        return ~ending_in(ids, table["pad_token_id"]), ()
    everything = np.ones(ids.shape, dtype=bool)
    found = looks_padded(ids, 0)
    if found is None:
        return everything, ()
    count, padding = found
    line = (
        f"{count:,} of {len(ids):,} texts end in several tokens {padding}, which count as tokens; "
        f"pad_token_id = {padding} (--set inputs.pad_token_id={padding}) says that they are padding"
    )
    return everything, (line,)


def _check_ends(table: Mapping[str, Any], cut: Sequence[int], length: int) -> None:
    """Refuse to score the last tokens of texts that are cut before them."""
    if any(cut) and str(table.get("score", "")).startswith("last:"):
        raise AnswersCutError(
            f"score = {table['score']!r} asks for the last tokens of texts, and "
            f"{_as_cut(cut, length)}"
        )


def _as_cut(cut: Sequence[int], length: int) -> str:
    """Return how many texts are cut, and what reads them whole."""
    whole = length + max(cut)
    return (
        f"{sum(n > 0 for n in cut):,} of {len(cut):,} are cut at max_length={length}: "
        f"max_length={whole} (--max-length {whole}) reads them whole."
    )


def _score_of_ids(table: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    """Return what is scored of token ids; a separator as ids, by the tokenizer where it is words.

    Raises
    ------
    ArgumentError
        If the separator is a regular expression, or words without a tokenizer.
    """
    fields = {k: table[k] for k in ("score", "answer_occurrence") if k in table}
    after = str(table.get("answer_after", ""))
    if not after:
        return fields
    if after.startswith(REGEX):
        raise ArgumentError(
            f"answer_after = {after!r} is a regular expression, and the texts are token ids: give "
            "the separator itself, its ids (23, or 5 7), or score = 'last:K'."
        )
    ids = [int(part) for part in after.split() if part.isdecimal()]
    if len(ids) < len(after.split()) or (
        isinstance(table["answer_after"], str) and tokenizer
    ):
        if tokenizer is None:
            raise ArgumentError(
                f"answer_after = {after!r} is no id, and the run has no tokenizer that knows its "
                "ids: give ids (23, or 5 7), or score = 'last:K'."
            )
        ids = tokenizer(after, add_special_tokens=False)["input_ids"]
    return fields | {"answer_after": ids}


def _token_labels(
    table: Mapping[str, Any],
    base: Path,
    opened: Sequence[TokenFile],
    length: int,
    per_file: int | None,
    starts: Sequence[np.ndarray | None],
) -> list[Any] | None:
    """Return labels of each text from the arrays beside the ids, or None where none are asked for.

    A ``.pt`` file may hold them itself, as ``labels`` beside ``input_ids``.
    """
    names = as_list(table["token_labels"]) if "token_labels" in table else []
    asked = names or table.get("score") == "labels"
    if not asked:
        return None
    if names and len(names) != len(opened):
        raise ArgumentError(
            f"token_labels must name a file for each of {len(opened)} files of tokens; got "
            f"{len(names)}."
        )
    files = [base / str(name) for name in names] or [file.path for file in opened]
    read = [labels_beside(path, file) for path, file in zip(files, opened, strict=True)]
    texts = (
        file.texts(length, per_file, begin)
        for file, begin in zip(read, starts, strict=True)
    )
    return list(chain.from_iterable(texts))


def _ids_of_model(
    trajectory: Trajectory, vocab_size: int | None = None
) -> tuple[int | None, int | None]:
    """Return the number of ids of the vocabulary where it is known, and what every id is below.

    Asked are, after `vocab_size`, the last checkpoint's configuration and, of weights that are
    here, their shapes: an id is a row of some matrix, or a column where texts are one-hot.
    """
    checkpoint = trajectory.checkpoints[-1]
    configured = (checkpoint.configuration() or {}).get("vocab_size")
    sizes = [size for size in (vocab_size, configured) if isinstance(size, int)]
    if sizes or not checkpoint.is_downloaded:
        return max(sizes, default=None), None
    with checkpoint.open() as reader:
        shapes = [reader.shape(name) for name in matrix_names(reader)]
    return None, max((max(shape) for shape in shapes), default=None)
