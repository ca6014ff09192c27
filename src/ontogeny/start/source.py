"""What people point at: a folder of checkpoints, one such file, or a repository on the Hub."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, CheckpointError
from ..trajectory import Trajectory
from ..trajectory.hub.repository import is_repository


def check_source(source: str) -> None:
    """Raise ArgumentError unless `source` exists or may be a repository."""
    if not is_repository(source) and not Path(source).expanduser().exists():
        raise ArgumentError(
            f"there is no folder or file {source!r}, and a repository on the Hub is named "
            "OWNER/NAME."
        )


def open_source(
    source: str, model: Any = None, choice: Mapping[str, Any] | None = None
) -> Trajectory:
    """Return the trajectory of a folder or file or, where there is none, of a Hub repository.

    `model` is a function that builds the module, for one that is not of transformers; `choice`
    holds `step_from`, `only`, `exclude`, `key` and `base` of `Trajectory.from_folder`.

    Raises
    ------
    ArgumentError, CheckpointError
        If there is neither, or it holds no checkpoints.
    """
    if not is_repository(source):
        return Trajectory.from_folder(source, model, **(choice or {}))
    if choice:
        raise ArgumentError(
            f"{', '.join(choice)} is for folders. Of {source} on the Hub, choose with "
            "revisions and pattern under [trajectory] in a study file, or in Python: "
            "ontogeny.Trajectory.from_hub(name, revisions=..., pattern=...)."
        )
    try:
        return Trajectory.from_hub(source, model=model)
    except CheckpointError as error:
        raise type(error)(
            f"there is no folder or file {source!r}, and {error}"
        ) from error


def same_source(source: str, studied: str, base: Path) -> bool:
    """Return whether `source` is what a study file in the folder `base` names as studied.

    Examples
    --------
    >>> same_source("lab/model", "lab/model", Path())
    True
    >>> same_source("runs/a", "../runs/a", Path("studies"))
    True
    >>> same_source("runs/a", "../runs/b", Path("studies"))
    False
    """
    if is_repository(source) and source == studied:
        return True
    return Path(source).expanduser().resolve() == (base / studied).resolve()


def names_of(sources: Sequence[str]) -> list[str]:
    """Return a name for each of several sources, longer where the last part is the same.

    Raises
    ------
    ArgumentError
        If a source is given twice.

    Examples
    --------
    >>> names_of(["runs/a/out", "runs/b/out"]), names_of(["lab/seed0", "lab/seed1"])
    (['a-out', 'b-out'], ['seed0', 'seed1'])
    """
    whole = [
        s if is_repository(s) else str(Path(s).expanduser().resolve()) for s in sources
    ]
    if len(set(whole)) < len(whole):
        raise ArgumentError(f"every run must be given once; got {', '.join(sources)}.")
    names = [name_of(source) for source in sources]
    parts = [Path(path).parts for path in whole]
    for depth in range(2, 1 + max(map(len, parts))):
        if len(set(names)) == len(names):
            break
        names = ["-".join(p.strip("/") for p in path[-depth:]) for path in parts]
    return names


def name_of(source: str) -> str:
    """Return how a study of `source` is called.

    Examples
    --------
    >>> name_of("EleutherAI/pythia-70m"), name_of("runs/mine/")
    ('pythia-70m', 'mine')
    """
    if is_repository(source):
        return source.rpartition("/")[2]
    path = Path(source).expanduser().resolve()
    return f"{path.parent.name}-{path.stem}" if path.is_file() else path.name


def beside(path: str, folder: Path) -> str:
    """Return a path as a file in `folder` names it: relative where it was given so."""
    target = Path(path).expanduser()
    return str(target) if target.is_absolute() else os.path.relpath(target, folder)
