"""Study files: a study in TOML, as the command reads it. Unknown keys are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from .. import observables, own_code
from ..artefacts import known_as
from ..errors import ArgumentError, OntogenyError, check_choice, check_whole
from ..inputs import Inputs
from ..inputs.vocabularies import vocabulary_tokenizer
from ..observables.registry import class_of
from ..trajectory import Trajectory, placing
from ..trajectory.tokenizers import named_tokenizer
from .folder.controls import FEWEST_STEPS
from .folder.settings import DTYPES, resolve_device
from .input_tables import input_sets
from .study import Study
from .tables import as_list, as_table, as_tables, check_keys

T = TypeVar("T")

_TABLES = ("trajectory", "inputs", "observables", "controls", "options", "left_out")
_TOP = {"title": str, **dict.fromkeys(_TABLES, Any)}
_HUB = {
    "revisions": str | tuple[str | int, ...],
    "pattern": str,
    "strict": bool,
    "cache_dir": str,
    "trust_remote_code": bool,
}
_PATTERNS = str | tuple[str, ...]
_FOLDER = {"step_from": str, "only": _PATTERNS, "exclude": _PATTERNS, "key": str}
_TRAJECTORY = {
    "base": str,
    "folder": str,
    "hub": str,
    **_HUB,
    **_FOLDER,
    "model": str,
    "objective": str,
    "tokenizer": str,
    "on_duplicate": str,
    "placed": bool,
    "select": Any,
}
_SELECT = {
    "count": int,
    "spacing": str,
    "steps": tuple[int, ...],
    "start": int,
    "stop": int,
}
_OPTIONS = {
    "reference": str | int,
    "batch_size": int,
    "device": str,
    "dtype": str,
    "weights": str,
    "threads": int,
    "noise": int,
}
_LEFT_OUT = {"kinds": _PATTERNS, "why": str}
_CONTROLS = {"kind": str, "count": int, "steps": int, "folders": Any}


def read_study(
    path: str | Path, *, trust_remote_code: bool = False, placed: bool = False
) -> Study:
    """Return the study that a TOML file describes; paths in it are relative to the file.

    Parameters
    ----------
    path
        The file. Files of Python that it names are run: read a stranger's before.
    trust_remote_code
        Whether code of the model's repository on the Hub may run, where the file asks for it. The
        file alone cannot allow it: somebody else may have written it.
    placed
        Whether accelerate places a model that is larger than one device, as ``placed = true`` under
        ``[trajectory]`` says.

    Raises
    ------
    ArgumentError
        If the file is missing, is no TOML, or holds an unknown or a wrong key; the message names
        the file and the key. Or if it asks for code that is not trusted.
    """
    return _read(path, partial(_study, trust=trust_remote_code, is_placed=placed))


def make_study(content: Mapping[str, Any], base: str | Path = ".") -> Study:
    """Return the study that the content of a study file describes; paths are relative to `base`.

    Raises
    ------
    ArgumentError
        As `read_study`, without the name of a file.
    """
    return _plain_errors(_study, content, Path(base))


def make_sources(
    content: Mapping[str, Any], base: str | Path = "."
) -> tuple[Trajectory, dict[str, Inputs]]:
    """Return checkpoints and input sets as `read_sources`, by the content of a study file."""
    return _plain_errors(_sources, content, Path(base))


def read_sources(
    path: str | Path, *, trust_remote_code: bool = False
) -> tuple[Trajectory, dict[str, Inputs]]:
    """Return the checkpoints and input sets of a study file, on a machine that cannot run it.

    Neither models nor devices are opened; data sets and the tokenizer are fetched.

    Raises
    ------
    ArgumentError
        As `read_study`.
    """
    return _read(path, partial(_sources, trust=trust_remote_code))


def read_device(path: str | Path) -> str:
    """Return the device that a study file asks for, ``"auto"`` resolved; nothing else is read.

    A run that is watched may have no checkpoint yet, and so no study.

    Raises
    ------
    ArgumentError
        As `read_study`, or if the device cannot be used here.
    """
    return _read(path, _device)


def _device(content: Mapping[str, Any], _base: Path) -> str:
    options = as_table("options", content.get("options", {}))
    check_keys("[options]", options, _OPTIONS)
    return resolve_device(str(options.get("device", "auto")))


def _read(path: str | Path, build: Callable[[Mapping[str, Any], Path], T]) -> T:
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad begins files with a mark
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise ArgumentError(f"there is no study file {path}.") from None
    except IsADirectoryError:
        own = known_as(path)
        begin = (
            own or f"a folder; name its study file, or begin one: ontogeny study {path}"
        )
        raise ArgumentError(f"{path} is {begin}.") from None
    except tomllib.TOMLDecodeError as error:
        hint = (
            " Write paths with / or in single quotes: 'C:\\runs\\mine'."
            if "\\" in text
            else ""
        )
        raise ArgumentError(
            f"{path} is not a readable TOML file: {error}.{hint}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} is not a readable TOML file: {error}") from None
    try:
        return _plain_errors(build, content, path.parent)
    except OntogenyError as error:
        raise type(error)(f"{path}: {error}") from error


def _plain_errors(
    build: Callable[[Mapping[str, Any], Path], T],
    content: Mapping[str, Any],
    base: Path,
) -> T:
    try:
        return build(content, base)
    except OntogenyError:
        raise
    except (TypeError, ValueError) as error:
        # A value of a kind that no validation expects.
        raise ArgumentError(f"a value is of the wrong kind: {error}") from error


def _sources(
    content: Mapping[str, Any], base: Path, trust: bool = False
) -> tuple[Trajectory, dict[str, Inputs]]:
    check_keys("the study file", content, _TOP)
    for required in ("trajectory", "inputs", "observables"):
        if required not in content:
            raise ArgumentError(f"[{required}] is missing.")
    # Before texts are fetched and tokenised, and before a run that cannot be is prefetched.
    check_keys("[options]", as_table("options", content.get("options", {})), _OPTIONS)
    controls = as_table("controls", content.get("controls", {}))
    check_keys("[controls]", controls, _CONTROLS)
    for name, fewest in (("count", 0), ("steps", FEWEST_STEPS)):
        check_whole(f"controls.{name}", controls.get(name, fewest), fewest)
    table = as_table("trajectory", content["trajectory"])
    if table.get("trust_remote_code") is True and not trust:
        raise ArgumentError(
            f"[trajectory] trust_remote_code would run code of {table.get('hub')} on the Hub. If "
            "you trust it, allow it with --trust-remote-code, or in Python with "
            "read_study(path, trust_remote_code=True)."
        )
    _observables(content, base)
    trajectory = _trajectory(table, base)
    return trajectory, input_sets(
        as_table("inputs", content["inputs"]), base, trajectory
    )


def _study(
    content: Mapping[str, Any], base: Path, trust: bool = False, is_placed: bool = False
) -> Study:
    trajectory, inputs = _sources(content, base, trust)
    options = as_table("options", content.get("options", {}))
    controls = _controls(as_table("controls", content.get("controls", {})), base)
    if is_placed or content["trajectory"].get("placed"):
        place = _placing(options)
        trajectory = place(trajectory)
        trained = controls.get("control_runs", {})
        controls |= {
            "control_runs": {name: place(run) for name, run in trained.items()}
        }
    title = content.get("title")
    return Study(
        trajectory,
        inputs,
        _observables(content, base),
        title=title,
        left_out=_left_out(content),
        **options,
        **controls,
    )


def _placing(options: Mapping[str, Any]) -> Callable[[Trajectory], Trajectory]:
    """Return what places the models of a run; refuse options that choose another place."""
    device = options.get("device", "auto")
    if device not in ("auto", "cuda", "cpu"):
        raise ArgumentError(
            f"[trajectory] placed goes over all devices; [options] device is {device!r}."
        )
    if options.get("weights", "loaded") != "loaded":
        raise ArgumentError(
            "[trajectory] placed goes with loaded weights; [options] weights is "
            f"{options['weights']!r}."
        )
    dtype = options.get("dtype", "stored")
    check_choice("dtype", dtype, DTYPES)
    stored = None if dtype == "stored" else getattr(torch, dtype)
    return partial(placing.placed, dtype=stored, device=resolve_device(device))


def _left_out(content: Mapping[str, Any]) -> dict[str, str]:
    """Return why observables are left out, by kind."""
    reasons: dict[str, str] = {}
    for entry in as_tables("left_out", content.get("left_out", [])):
        check_keys("[[left_out]]", entry, _LEFT_OUT)
        if entry.keys() != _LEFT_OUT.keys():
            raise ArgumentError("every [[left_out]] needs kinds and why.")
        reasons |= dict.fromkeys(as_list(entry["kinds"]), entry["why"])
    return reasons


def _controls(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the control runs: how many are made and how, and folders of trained ones by name."""
    folders = as_table("controls.folders", table.get("folders", {}))
    names = {"count": "controls", "kind": "control_kind", "steps": "control_steps"}
    controls: dict[str, Any] = {
        names[key]: value for key, value in table.items() if key in names
    }
    if table and not folders:
        controls.setdefault("controls", 3)
    runs = {
        name: Trajectory.from_folder(base / str(path)) for name, path in folders.items()
    }
    return {**controls, "control_runs": runs} if runs else controls


def _trajectory(table: Mapping[str, Any], base: Path) -> Trajectory:
    check_keys("[trajectory]", table, _TRAJECTORY)
    if ("folder" in table) == ("hub" in table):
        raise ArgumentError(
            '[trajectory] needs either folder = "..." or hub = "owner/name".'
        )
    options = {key: table[key] for key in _HUB if key in table}
    choice = {key: table[key] for key in ("base", *_FOLDER) if key in table}
    if "base" in choice and (base / choice["base"]).exists():
        choice["base"] = base / choice["base"]
    parts: dict[str, Any] = {}
    if "model" in table:
        parts["model"] = own_code.load(table["model"], base)
    if "tokenizer" in table:
        parts["tokenizer"] = _tokenizer(table["tokenizer"], base)
    if "hub" in table and choice:
        raise ArgumentError(
            f"[trajectory] {', '.join(choice)} goes with folder, not with hub."
        )
    if "hub" in table:
        trajectory = Trajectory.from_hub(str(table["hub"]), **options, **parts)
    elif options:
        raise ArgumentError(
            f"[trajectory] {', '.join(options)} goes with hub, not with folder."
        )
    else:
        trajectory = Trajectory.from_folder(
            base / str(table["folder"]), **choice, **parts
        )
    if "on_duplicate" in table:
        trajectory = trajectory.deduplicated(table["on_duplicate"])
    if "select" not in table:
        return trajectory
    select = as_table("trajectory.select", table["select"])
    check_keys("[trajectory] select", select, _SELECT)
    return trajectory.select(**select)


def _tokenizer(name: str, base: Path) -> Any:
    """Return the tokenizer of a folder, the Hub or a user's function; False for "none"."""
    if name == "none":
        return False
    if own_code.is_own(name):
        make = own_code.load(name, base)
        try:
            return make()
        except Exception as error:  # whatever the user's code raises
            why = own_code.reason(error)
            raise ArgumentError(
                f"{name} makes no tokenizer when it is called: {why}"
            ) from error
    folder = base / name
    if folder.is_file():
        return vocabulary_tokenizer(folder)
    return named_tokenizer(folder if folder.is_dir() else name)


def _observables(
    content: Mapping[str, Any], base: Path
) -> list[observables.Observable]:
    objective = as_table("trajectory", content["trajectory"]).get("objective")
    if objective is not None:
        check_choice("[trajectory] objective", objective, ("causal", "masked"))
    return [
        _observable(with_objective(entry, objective), base)
        for entry in as_tables("observables", content["observables"])
    ]


def with_objective(
    entry: Mapping[str, Any], objective: str | None
) -> Mapping[str, Any]:
    """Return a table with what the run's model predicts, where an observable asks for it."""
    if objective is None or not hasattr(class_of(entry.get("kind")), "objective"):
        return entry
    return {"objective": objective, **entry}


def _observable(entry: Mapping[str, Any], base: Path) -> observables.Observable:
    arguments = dict(entry)
    kind = arguments.pop("kind", None)
    if kind is None:
        raise ArgumentError(
            f"every [[observables]] needs kind = one of {', '.join(observables.names())}."
        )
    if own_code.is_own(kind):
        return observables.make_own(kind, own_code.load(kind, base), **arguments)
    return observables.make(kind, **_with_paths(kind, arguments, base))


def _with_paths(kind: Any, arguments: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return arguments with the paths of files as they are seen from here."""
    cls = class_of(kind)
    names = cls.file_arguments if cls else ()
    return {
        name: [str(base / str(path)) for path in as_list(value)]
        if name in names
        else value
        for name, value in arguments.items()
    }
