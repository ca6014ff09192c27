"""The input sets of a study file: texts of files, of data sets or of the file itself, or tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_known
from ..inputs import Inputs
from ..inputs.conversations import is_prompted
from ..inputs.described import form_of_some
from ..inputs.layout import ending_in, looks_padded
from ..inputs.pieces import pieces_of, spelled
from ..inputs.scoring import REGEX, AnswersCutError
from ..inputs.token_files import TokenFile, form_of_files, labels_beside, open_tokens
from ..inputs.tokenize import count_ids
from ..observables.arguments import check_kind
from ..tasks import (
    LabelledTexts,
    bundled_texts,
    document_files,
    load_texts,
    read_labelled,
)
from ..tasks.bundled import BUNDLED
from ..trajectory import Trajectory
from ..trajectory.findings import some
from ..trajectory.weights.files import matrix_names


def check_keys(
    where: str, table: Mapping[str, Any], allowed: Mapping[str, Any]
) -> None:
    """Refuse unknown keys, and values of another kind than `allowed` says."""
    check_known(where, "key", table, allowed)
    for key, value in table.items():
        check_kind(where, key, value, allowed[key])


def as_table(where: str, value: Any) -> Mapping[str, Any]:
    """Return a table, or refuse anything else."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"[{where}] must be a table; got {value!r}.")
    return value


def as_tables(where: str, value: Any) -> list[Mapping[str, Any]]:
    """Return a list of tables, or refuse anything else."""
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        raise ArgumentError(f"{where} must be given as [[{where}]] tables.")
    return value


def as_list(value: Any) -> list[Any]:
    """Return a list, of one if the value is none."""
    return value if isinstance(value, list) else [value]


_TEXTS = str | tuple[str, ...]
_SOURCES = {
    "files": _TEXTS,
    "texts": _TEXTS,
    "dataset": Any,
    "tokens": _TEXTS,
    "bundled": str,
}
_HUB_DATA = {"split": str, "config": str, "revision": str}
_LOCAL_DATA = {"file_format": str, "encoding": str, "quotes": bool, "on_error": str}
_DATA = {
    "field": str | int,
    "label": str | int,
    "balanced": bool,
    "random_state": int,
    **_HUB_DATA,
    **_LOCAL_DATA,
}
_OF_TOKENS = {
    "dtype": str,
    "vocab_size": int,
    "special_ids": tuple[int, ...],
    "mask_token_id": int,
    "pad_token_id": int,
}
_INPUTS = {
    **_SOURCES,
    "labels": tuple[str | float | bool, ...],
    "unit": str,
    "documents": str | int | tuple[str | int, ...],
    "max_texts": int,
    "max_length": int,
    "padding_side": str,
    "score": str,
    "answer_after": str | int,
    "answer_occurrence": str,
    "token_labels": _TEXTS,
    "between": str,
    **_OF_TOKENS,
    **_DATA,
}
# Keys that go with some of the sources alone.
_GOES_WITH = {
    **dict.fromkeys(_DATA, ("dataset",)),
    "field": ("files", "dataset"),
    **dict.fromkeys(_OF_TOKENS, ("tokens",)),
    "labels": ("texts",),
    "unit": ("files",),
    "split": ("files", "dataset"),
    "between": ("files",),
    "token_labels": ("tokens",),
    "encoding": ("files", "dataset"),
    "documents": ("files", "dataset", "texts"),
    "padding_side": ("files", "dataset", "texts", "bundled"),
}
# Sets beside the texts that are studied, in a table of theirs within that of the texts, with
# whose keys they are read where they say nothing else.
FURTHER = ("training", "base")
_OF_ONE_SET = (*_SOURCES, "labels", "documents", "token_labels", "split")
_LENGTH = 128  # tokens of a text, unless another length is said
_FILE_SUFFIXES = (".tsv", ".tab", ".csv", ".jsonl", ".ndjson", ".txt")


def input_sets(
    table: Mapping[str, Any], base: Path, trajectory: Trajectory
) -> dict[str, Inputs]:
    """Return the input sets: one table, or a table of named tables."""
    has_tables = table and all(isinstance(value, Mapping) for value in table.values())
    # Dataset = {...} is no named set.
    if has_tables and not any(key in table for key in _SOURCES):
        return {
            name: _inputs(f"[inputs.{name}]", value, base, trajectory)
            for name, value in table.items()
        }
    further = {name: table[name] for name in FURTHER if name in table}
    main = {key: value for key, value in table.items() if key not in FURTHER}
    sets = {"text": _inputs("[inputs]", main, base, trajectory)}
    shared = {key: value for key, value in main.items() if key not in _OF_ONE_SET}
    for name, own in further.items():
        where = f"[inputs.{name}]"
        sets[name] = _inputs(
            where, {**shared, **as_table(f"inputs.{name}", own)}, base, trajectory
        )
    return sets


def _inputs(
    where: str, table: Mapping[str, Any], base: Path, trajectory: Trajectory
) -> Inputs:
    check_keys(where, table, _INPUTS)
    keys = [key for key in _SOURCES if key in table]
    if len(keys) != 1:
        raise ArgumentError(
            f"{where} needs one of {', '.join(_SOURCES)}; it has {' and '.join(keys) or 'none'}."
        )
    (source,) = keys
    limit = table.get("max_texts")
    if limit is not None and limit < 1:
        raise ArgumentError(
            f"{where} max_texts must be a whole number above 0; got {limit!r}."
        )
    foreign = [key for key in table if source not in _GOES_WITH.get(key, (source,))]
    if foreign:
        raise ArgumentError(f"{where} {', '.join(foreign)} does not go with {source}.")
    if source == "tokens":
        return _tokens(table, base, trajectory)
    tokenizer = trajectory.tokenizer()
    if tokenizer is None:
        raise ArgumentError(
            f"{where} holds texts, but the checkpoints have no tokenizer to read them with; name "
            'one (tokenizer = "..." under [trajectory]), or give tokens = "file.npy" or "file.bin".'
        )
    _check_documents(where, source, table.get("documents"))
    fields = _READ[source](where, table, base)
    names = ("max_length", "padding_side", "score", "answer_occurrence")
    options = {k: table[k] for k in names if k in table}
    if "answer_after" in table:
        options["answer_after"] = str(table["answer_after"])
    return Inputs.from_texts(tokenizer=tokenizer, **fields, **options)


def _bundled(where: str, table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    name = table["bundled"]
    there = bundled_texts(name)
    texts = there[: table.get("max_texts")]
    form = form_of_some(len(texts), len(there))
    return {"texts": texts, "source": BUNDLED[name], "form": form}


def _files(where: str, table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    paths = [str(base / str(f)) for f in as_list(table["files"])]
    options = {
        k: table[k]
        for k in ("unit", "field", "encoding", "documents", "split")
        if k in table
    }
    tables = document_files(paths, **options)
    limit = table.get("max_texts")
    texts = [_spaced(text, table.get("between", "")) for text in tables.texts[:limit]]
    documents = tables.documents if "documents" in table else None
    return {
        "texts": texts,
        "documents": _first(documents, texts),
        "source": where,
        "form": form_of_some(len(texts), len(tables), tables.form),
    }


def _spaced(text: Any, between: str) -> Any:
    """Return a prompt with what stands between it and its completion, and any other text as it is.

    Prompts and completions are put together as they stand, as trl does.
    """
    return text | {"prompt": text["prompt"] + between} if is_prompted(text) else text


def _texts(where: str, table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    limit = table.get("max_texts")
    labels = table.get("labels")
    there = as_list(table["texts"])
    texts = there[:limit]
    return {
        "texts": texts,
        "form": form_of_some(len(texts), len(there)),
        "labels": None if labels is None else labels[:limit],
        "documents": _first(table.get("documents"), texts),
        "source": where,
    }


def _labelled(where: str, table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    data = _dataset(where, table, base)
    texts = list(data.texts)
    return {
        "texts": texts,
        "labels": data.labels,
        "documents": _first(data.documents, texts),
        "source": data.source,
        "form": _form_of(data),
    }


def _form_of(data: LabelledTexts) -> str:
    """Return of how many texts these are, and how many have each label, of five at most."""
    if data.labels is None:
        return data.form
    counts = [f"{label} ({count:,})" for label, count in data.balance.items()]
    return ", ".join(filter(None, [data.form, f"labelled {some(counts)}"]))


_READ: dict[str, Callable[[str, Mapping[str, Any], Path], dict[str, Any]]] = {
    "bundled": _bundled,
    "files": _files,
    "texts": _texts,
    "dataset": _labelled,
}


def _first(documents: Any, texts: list[str]) -> Any:
    return None if documents is None else documents[: len(texts)]


def _tokens(table: Mapping[str, Any], base: Path, trajectory: Trajectory) -> Inputs:
    """Return texts of token ids, from one file or several; a tokenizer is asked, not needed."""
    paths = as_list(table["tokens"])
    limit = table.get("max_texts")
    length = table.get("max_length", _LENGTH)
    per_file = None if limit is None else -(-limit // len(paths))
    kwargs = {k: table[k] for k in _OF_TOKENS if k in table and k != "dtype"}
    tokenizer = trajectory.tokenizer()
    if tokenizer is not None:
        kwargs.setdefault("vocab_size", count_ids(tokenizer))
        kwargs.setdefault("mask_token_id", getattr(tokenizer, "mask_token_id", None))
        kwargs.setdefault("special_ids", getattr(tokenizer, "all_special_ids", ()))
    size, bound = ids_of_model(trajectory, kwargs.get("vocab_size"))
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


def ids_of_model(
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


def _check_documents(where: str, source: str, documents: Any) -> None:
    """Refuse `documents` of another kind than where the texts come from allows."""
    kinds = {
        "dataset": ((str, int), "the name or number of a column"),
        "files": ((str,), '"file" or "article"'),
        "texts": ((list, tuple), "a list with one document for each text"),
    }
    if documents is None:
        return
    allowed, words = kinds[source]
    if not isinstance(documents, allowed):
        raise ArgumentError(
            f"{where} documents must be {words} with {source}; got {documents!r}."
        )


def _dataset(where: str, table: Mapping[str, Any], base: Path) -> LabelledTexts:
    """Return a labelled data set: a local file, one local file a class, or one of the Hub."""
    name = table["dataset"]
    keys = {"text": "field", "label": "label", "document": "documents"}
    columns: dict[str, Any] = {
        argument: table.get(key) for argument, key in keys.items()
    }
    seed = table.get("random_state", 0)
    limit = table.get("max_texts")
    local: Any = None
    if isinstance(name, Mapping):
        local = {label: base / str(file) for label, file in name.items()}
    elif not isinstance(name, str):
        raise ArgumentError(
            f"{where} dataset must be a name, a file or a table; got {name!r}."
        )
    elif (base / name).is_file() or Path(name).suffix in _FILE_SUFFIXES:
        local = base / name
    wrong = [k for k in (_LOCAL_DATA if local is None else _HUB_DATA) if k in table]
    if wrong:
        kind = "a data set of the Hub" if local is None else "a local file"
        raise ArgumentError(f"{where} {', '.join(wrong)} does not go with {kind}.")
    balanced = table.get("balanced", False)
    if local is None:
        options = {k: table[k] for k in _HUB_DATA if k in table}
        whole = None if balanced else limit
        data = load_texts(
            name, max_texts=whole, random_state=seed, **columns, **options
        )
    else:
        data = read_labelled(
            local, **columns, **{k: table[k] for k in _LOCAL_DATA if k in table}
        )
    return data.balanced(limit, seed) if balanced else data.sample(limit, seed)
