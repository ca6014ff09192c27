"""What people point at: a folder of checkpoints, or a repository on the Hub."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import ArgumentError

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def is_repository(source: str) -> bool:
    """Return whether there is no such folder and the name may be a repository's.

    Examples
    --------
    >>> is_repository("EleutherAI/pythia-70m"), is_repository("runs")
    (True, False)
    """
    return not Path(source).expanduser().exists() and bool(_REPOSITORY.fullmatch(source))


def check_source(source: str) -> None:
    """Raise ArgumentError unless `source` is a folder or may be a repository."""
    if not is_repository(source) and not Path(source).expanduser().is_dir():
        raise ArgumentError(
            f"there is no folder {source!r}, and a repository on the Hub is named OWNER/NAME."
        )


def name_of(source: str) -> str:
    """Return how a study of `source` is called.

    Examples
    --------
    >>> name_of("EleutherAI/pythia-70m"), name_of("runs/mine/")
    ('pythia-70m', 'mine')
    """
    if is_repository(source):
        return source.rpartition("/")[2]
    return Path(source).expanduser().resolve().name


def beside(path: str, folder: Path) -> str:
    """Return a path as a file in `folder` names it: relative where it was given so."""
    given = Path(path).expanduser()
    return str(given) if given.is_absolute() else os.path.relpath(given, folder)
