"""The study file beside a study's folder, as it is pushed: without absolute paths."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import own_code
from ..errors import ArgumentError
from .private import shorten

_LITERAL = re.compile(r'"(?P<double>[^"\\\n]*)"|\'(?P<single>[^\'\n]*)\'')


def find_study_file(folder: Path, given: str | Path | None) -> Path | None:
    """Return the study file of a study's folder: the given one, or DIR.toml beside DIR.

    Raises
    ------
    ArgumentError
        If the given one is no TOML file.
    """
    if given is None:
        beside = folder.resolve().with_name(f"{folder.resolve().name}.toml")
        return beside if beside.is_file() else None
    try:
        tomllib.loads(Path(given).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{given} is not a readable study file: {error}") from error
    return Path(given)


def shortened(text: str, found: dict[str, str]) -> str:
    """Return the text of a study file with absolute paths shortened to their last name.

    Examples
    --------
    >>> shortened('folder = "/home/ada/my runs/tiny"  # a disk', {})
    'folder = "tiny"  # a disk'
    """

    def literal(match: re.Match[str]) -> str:
        quote = match[0][0]
        return f"{quote}{shorten(match[0][1:-1], found)}{quote}"

    return "\n".join(shorten(line, found) for line in _LITERAL.sub(literal, text).split("\n"))


def own_code_in(text: str) -> list[str]:
    """Return the code of the user's own that a study file names; it is not pushed.

    Examples
    --------
    >>> own_code_in('trajectory.model = "model.py:build"')
    ['model.py:build']
    """
    return [value for value in _texts(tomllib.loads(text)) if own_code.is_own(value)]


def holds_sentences(text: str) -> bool:
    """Return whether a study file holds sentences itself, and not only names of files."""
    tables = tomllib.loads(text).get("observables", [])
    return any(entry.get("sentences") for entry in tables if isinstance(entry, dict))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value
