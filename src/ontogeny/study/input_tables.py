"""The input sets of a study file: texts of files, of data sets or of the file itself, or tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.conversations import is_prompted
from ..inputs.described import form_of_some
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
from .tables import as_list, as_table, check_keys
from .token_tables import OF_TOKENS, inputs_of_tokens

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
    **OF_TOKENS,
    **_DATA,
}
# Keys that go with some of the sources alone.
_GOES_WITH = {
    **dict.fromkeys(_DATA, ("dataset",)),
    "field": ("files", "dataset"),
    **dict.fromkeys(OF_TOKENS, ("tokens",)),
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
        return inputs_of_tokens(table, base, trajectory)
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
