"""Study files: a study in TOML, as the command reads it. Unknown keys are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import observables
from ..errors import ArgumentError, OntogenyError, suggestion
from ..inputs import Inputs
from ..tasks import text_files
from ..trajectory import Trajectory
from .study import Study

__all__ = ["read_study"]

_TOP = ("title", "trajectory", "inputs", "observables", "options")
_HUB = ("revisions", "pattern", "strict", "cache_dir", "trust_remote_code")
_TRAJECTORY = ("folder", "hub", *_HUB, "on_duplicate", "select")
_SELECT = ("count", "spacing", "steps", "start", "stop")
_INPUTS = ("files", "texts", "unit", "max_texts", "max_length", "padding_side")
_OPTIONS = ("reference", "batch_size", "device", "dtype", "threads", "noise")


def read_study(path: str | Path) -> Study:
    """Return the study that a TOML file describes; paths in it are relative to the file.

    Raises
    ------
    ArgumentError
        If the file is missing, is no TOML, or holds an unknown or a wrong key; the message names
        the file and the key.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArgumentError(f"there is no study file {path}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArgumentError(f"{path} is not a readable TOML file: {error}") from None
    try:
        return _study(content, path.parent)
    except OntogenyError as error:
        raise type(error)(f"{path}: {error}") from error
    except (TypeError, ValueError) as error:  # a value of a kind that no door has thought of
        raise ArgumentError(f"{path}: a value is of the wrong kind: {error}") from error


def _study(content: Mapping[str, Any], base: Path) -> Study:
    _check_keys("the study file", content, _TOP)
    for required in ("trajectory", "inputs", "observables"):
        if required not in content:
            raise ArgumentError(f"[{required}] is missing.")
    trajectory = _trajectory(_table("trajectory", content["trajectory"]), base)
    options = _table("options", content.get("options", {}))
    _check_keys("[options]", options, _OPTIONS)
    return Study(
        trajectory,
        _input_sets(_table("inputs", content["inputs"]), base, trajectory),
        [_observable(entry) for entry in _tables("observables", content["observables"])],
        title=content.get("title"),
        **options,
    )


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
    if table and all(isinstance(value, Mapping) for value in table.values()):
        return {
            name: _inputs(f"[inputs.{name}]", value, base, trajectory)
            for name, value in table.items()
        }
    return {"text": _inputs("[inputs]", table, base, trajectory)}


def _inputs(where: str, table: Mapping[str, Any], base: Path, trajectory: Trajectory) -> Inputs:
    _check_keys(where, table, _INPUTS)
    if ("files" in table) == ("texts" in table):
        raise ArgumentError(f"{where} needs either files = [...] or texts = [...].")
    if "files" in table:
        paths = [str(base / str(f)) for f in _list(table["files"])]
        texts = text_files(paths, unit=table.get("unit", "paragraph"))
    else:
        texts = _list(table["texts"])
    tokenizer = trajectory.tokenizer()
    if tokenizer is None:
        raise ArgumentError(
            f"{where} holds texts, but the checkpoints have no tokenizer to read them with."
        )
    limit = table.get("max_texts")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ArgumentError(f"{where} max_texts must be a whole number above 0; got {limit!r}.")
    options = {k: table[k] for k in ("max_length", "padding_side") if k in table}
    return Inputs.from_texts(texts[:limit], tokenizer, **options)


def _observable(entry: Mapping[str, Any]) -> observables.Observable:
    arguments = dict(entry)
    kind = arguments.pop("kind", None)
    if kind is None:
        raise ArgumentError(
            f"every [[observables]] needs kind = one of {', '.join(observables.names())}."
        )
    return observables.make(kind, **arguments)


def _check_keys(where: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise ArgumentError(
                f"{where} has no key {key!r}; it has {', '.join(allowed)}."
                f"{suggestion(key, allowed)}"
            )


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
