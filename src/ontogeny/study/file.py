"""Study files: a study in TOML, as the command reads it. Unknown keys are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .. import observables
from ..errors import ArgumentError, OntogenyError, suggestion
from ..inputs import Inputs
from ..observables.arguments import check_kind
from ..tasks import LabelledTexts, document_files, load_texts, read_labelled, text_files
from ..trajectory import Trajectory
from .study import Study

T = TypeVar("T")

_TEXTS = str | tuple[str, ...]
_TABLES = ("trajectory", "inputs", "observables", "controls", "options")
_TOP = {"title": str, **dict.fromkeys(_TABLES, Any)}
_HUB = {
    "revisions": str | tuple[str | int, ...],
    "pattern": str,
    "strict": bool,
    "cache_dir": str,
    "trust_remote_code": bool,
}
_TRAJECTORY = {"folder": str, "hub": str, **_HUB, "on_duplicate": str, "select": Any}
_SELECT = {"count": int, "spacing": str, "steps": tuple[int, ...], "start": int, "stop": int}
_SOURCES = {"files": _TEXTS, "texts": _TEXTS, "dataset": Any}
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
    **_DATA,
}
_OPTIONS = {
    "reference": str | int,
    "batch_size": int,
    "device": str,
    "dtype": str,
    "threads": int,
    "noise": int,
}
_CONTROLS = {"kind": str, "count": int, "steps": int, "folders": Any}
_FILE_SUFFIXES = (".tsv", ".tab", ".csv", ".jsonl", ".ndjson", ".txt")


def read_study(path: str | Path) -> Study:
    """Return the study that a TOML file describes; paths in it are relative to the file.

    Raises
    ------
    ArgumentError
        If the file is missing, is no TOML, or holds an unknown or a wrong key; the message names
        the file and the key.
    """
    return _read(path, _study)


def read_sources(path: str | Path) -> tuple[Trajectory, dict[str, Inputs]]:
    """Return the checkpoints and input sets of a study file, on a machine that cannot run it.

    Neither models nor devices are opened; data sets and the tokenizer are fetched.

    Raises
    ------
    ArgumentError
        As `read_study`.
    """
    return _read(path, _sources)


def _read(path: str | Path, build: Callable[[Mapping[str, Any], Path], T]) -> T:
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArgumentError(f"there is no study file {path}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArgumentError(f"{path} is not a readable TOML file: {error}") from None
    try:
        return build(content, path.parent)
    except OntogenyError as error:
        raise type(error)(f"{path}: {error}") from error
    except (TypeError, ValueError) as error:  # a value of a kind that no validation expects
        raise ArgumentError(f"{path}: a value is of the wrong kind: {error}") from error


def _sources(content: Mapping[str, Any], base: Path) -> tuple[Trajectory, dict[str, Inputs]]:
    _check_keys("the study file", content, _TOP)
    for required in ("trajectory", "inputs", "observables"):
        if required not in content:
            raise ArgumentError(f"[{required}] is missing.")
    # Before texts are fetched and tokenised, and before a run that cannot be is prefetched.
    _check_keys("[options]", _table("options", content.get("options", {})), _OPTIONS)
    _check_keys("[controls]", _table("controls", content.get("controls", {})), _CONTROLS)
    _observables(content)
    trajectory = _trajectory(_table("trajectory", content["trajectory"]), base)
    return trajectory, _input_sets(_table("inputs", content["inputs"]), base, trajectory)


def _study(content: Mapping[str, Any], base: Path) -> Study:
    trajectory, inputs = _sources(content, base)
    options = _table("options", content.get("options", {}))
    controls = _controls(_table("controls", content.get("controls", {})), base)
    title = content.get("title")
    return Study(trajectory, inputs, _observables(content), title=title, **options, **controls)


def _controls(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the control runs: how many are made and how, and folders of trained ones by name."""
    _check_keys("[controls]", table, _CONTROLS)
    folders = _table("controls.folders", table.get("folders", {}))
    names = {"count": "controls", "kind": "control_kind", "steps": "control_steps"}
    found: dict[str, Any] = {names[key]: value for key, value in table.items() if key in names}
    if table and not folders:
        found.setdefault("controls", 3)
    given = {name: Trajectory.from_folder(base / str(path)) for name, path in folders.items()}
    return {**found, "control_runs": given} if given else found


def _trajectory(table: Mapping[str, Any], base: Path) -> Trajectory:
    _check_keys("[trajectory]", table, _TRAJECTORY)
    if ("folder" in table) == ("hub" in table):
        raise ArgumentError('[trajectory] needs either folder = "..." or hub = "owner/name".')
    options = {key: table[key] for key in _HUB if key in table}
    if "hub" in table:
        trajectory = Trajectory.from_hub(str(table["hub"]), **options)
    elif options:
        raise ArgumentError(f"[trajectory] {', '.join(options)} goes with hub, not with folder.")
    else:
        trajectory = Trajectory.from_folder(base / str(table["folder"]))
    if "on_duplicate" in table:
        trajectory = trajectory.deduplicated(table["on_duplicate"])
    if "select" not in table:
        return trajectory
    select = _table("trajectory.select", table["select"])
    _check_keys("[trajectory] select", select, _SELECT)
    return trajectory.select(**select)


def _input_sets(table: Mapping[str, Any], base: Path, trajectory: Trajectory) -> dict[str, Inputs]:
    """Return the input sets: one table, or a table of named tables."""
    named = table and all(isinstance(value, Mapping) for value in table.values())
    if named and not any(key in table for key in _SOURCES):  # dataset = {...} is no named set
        return {
            name: _inputs(f"[inputs.{name}]", value, base, trajectory)
            for name, value in table.items()
        }
    return {"text": _inputs("[inputs]", table, base, trajectory)}


def _inputs(where: str, table: Mapping[str, Any], base: Path, trajectory: Trajectory) -> Inputs:
    _check_keys(where, table, _INPUTS)
    given = [key for key in _SOURCES if key in table]
    if len(given) != 1:
        raise ArgumentError(
            f'{where} needs one of files = [...], texts = [...] and dataset = "..."; '
            f"it has {' and '.join(given) or 'none'}."
        )
    limit = table.get("max_texts")
    if limit is not None and limit < 1:
        raise ArgumentError(f"{where} max_texts must be a whole number above 0; got {limit!r}.")
    foreign = [k for k in _DATA if k in table] if given != ["dataset"] else []
    foreign += ["labels"] if "labels" in table and given != ["texts"] else []
    foreign += ["unit"] if "unit" in table and given != ["files"] else []
    if foreign:
        raise ArgumentError(f"{where} {', '.join(foreign)} does not go with {given[0]}.")
    tokenizer = trajectory.tokenizer()
    if tokenizer is None:
        raise ArgumentError(
            f"{where} holds texts, but the checkpoints have no tokenizer to read them with."
        )
    labels, documents = table.get("labels"), table.get("documents")
    _check_documents(where, given[0], documents)
    source = where
    if given == ["dataset"]:
        data = _dataset(where, table, base)
        texts, labels, source = list(data.texts), data.labels, data.source
        documents = data.documents
    elif given == ["files"]:
        paths = [str(base / str(f)) for f in _list(table["files"])]
        unit = table.get("unit", "paragraph")
        if documents is None:
            texts = text_files(paths, unit=unit)[:limit]
        else:
            found = document_files(paths, unit=unit, documents=documents)
            texts, documents = list(found.texts[:limit]), found.documents
    else:
        texts = _list(table["texts"])[:limit]
        labels = None if labels is None else labels[:limit]
    documents = None if documents is None else documents[: len(texts)]
    options = {k: table[k] for k in ("max_length", "padding_side") if k in table}
    return Inputs.from_texts(
        texts, tokenizer, labels=labels, source=source, documents=documents, **options
    )


def _check_documents(where: str, source: str, documents: Any) -> None:
    """Refuse `documents` of another kind than where the texts come from allows."""
    kinds = {
        "dataset": ((str, int), "the name or number of a column"),
        "files": ((str,), '"file" or "article"'),
        "texts": ((list, tuple), "a list with one document for each text"),
    }
    allowed, words = kinds[source]
    if documents is not None and not isinstance(documents, allowed):
        raise ArgumentError(f"{where} documents must be {words} with {source}; got {documents!r}.")


def _dataset(where: str, table: Mapping[str, Any], base: Path) -> LabelledTexts:
    """Return a labelled data set: a local file, one local file a class, or one of the Hub."""
    name = table["dataset"]
    keys = {"text": "field", "label": "label", "document": "documents"}
    columns: dict[str, Any] = {argument: table.get(key) for argument, key in keys.items()}
    seed, limit = table.get("random_state", 0), table.get("max_texts")
    local: Any = None
    if isinstance(name, Mapping):
        local = {label: base / str(file) for label, file in name.items()}
    elif not isinstance(name, str):
        raise ArgumentError(f"{where} dataset must be a name, a file or a table; got {name!r}.")
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
        data = load_texts(name, max_texts=whole, random_state=seed, **columns, **options)
    else:
        data = read_labelled(local, **columns, **{k: table[k] for k in _LOCAL_DATA if k in table})
    return data.balanced(limit, seed) if balanced else data.sample(limit, seed)


def _observables(content: Mapping[str, Any]) -> list[observables.Observable]:
    return [_observable(entry) for entry in _tables("observables", content["observables"])]


def _observable(entry: Mapping[str, Any]) -> observables.Observable:
    arguments = dict(entry)
    kind = arguments.pop("kind", None)
    if kind is None:
        raise ArgumentError(
            f"every [[observables]] needs kind = one of {', '.join(observables.names())}."
        )
    return observables.make(kind, **arguments)


def _check_keys(where: str, table: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    """Refuse unknown keys, and values of another kind than `allowed` says."""
    for key, value in table.items():
        if key not in allowed:
            raise ArgumentError(
                f"{where} has no key {key!r}; it has {', '.join(allowed)}."
                f"{suggestion(key, allowed)}"
            )
        check_kind(where, key, value, allowed[key])


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ArgumentError(f"[{where}] must be a table; got {value!r}.")
    return value


def _tables(where: str, value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        raise ArgumentError(f"{where} must be given as [[{where}]] tables.")
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
