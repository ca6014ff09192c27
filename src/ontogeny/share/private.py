"""What in a result or a study file looks private: paths, names of people and machines, secrets.

Absolute paths that only say where something lay are shortened to their last name. What else looks
private is found and listed, never changed: whoever pushes decides.
"""

from __future__ import annotations

import getpass
import re
import socket
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from .. import own_code
from ..errors import ArgumentError
from .store import change_attributes, change_texts, in_strings, strings

_PART = r"[^\s/\\\"'<>|:,;()\[\]{}]+"
_PATH = re.compile(
    rf"(?<![\w./\\<~])(?:~?/(?:{_PART}/)+(?:{_PART})?|~/{_PART}|[A-Za-z]:[\\/](?:{_PART}[\\/])*{_PART}"
    rf"|file:/{{1,3}}(?:{_PART}/)*{_PART}|\\\\{_PART}(?:\\{_PART})+)"
)
_SENTENCE = re.compile(r"[:;,?!]\s|\.$")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}")
_SECRET = re.compile(
    r"\bhf_[A-Za-z0-9]{30,}|\bsk-[\w-]{20,}|\bgh[pousr]_[A-Za-z0-9]{30,}|\bAKIA[0-9A-Z]{16}\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_COMMON = {"root", "user", "admin", "ubuntu", "localhost", "runner", "jovyan"}  # names of nobody


def shorten(text: str, table: dict[str, str]) -> str:
    """Return a value with absolute paths shortened to their last name, which `table` collects.

    A value that is one path as a whole may hold spaces.

    Examples
    --------
    >>> shorten("/home/ada/my run", {})
    'my run'
    """
    if _is_path(text):
        return table.setdefault(text, _last(text))
    return shorten_within(text, table)


def shorten_within(text: str, table: dict[str, str]) -> str:
    """Return a sentence with absolute paths shortened to their last name, which `table` collects.

    Examples
    --------
    >>> replaced = {}
    >>> shorten_within("missing: /home/ada/runs/tiny/checkpoint-8 is not there", replaced)
    'missing: checkpoint-8 is not there'
    >>> replaced
    {'/home/ada/runs/tiny/checkpoint-8': 'checkpoint-8'}
    >>> shorten_within("see https://example.org/a/b, and/or 3 tokens/s", replaced)
    'see https://example.org/a/b, and/or 3 tokens/s'
    """
    for folder in _own_folders():
        text = re.sub(rf"(?<![\w/]){re.escape(folder)}(?=[/\\])", "~", text)
    return _PATH.sub(lambda m: table.setdefault(m[0], _last(m[0])), text)


def remove_paths(store: Path, replaced: dict[str, str]) -> None:
    """Shorten absolute paths in the provenance and the statuses of a copied result."""
    # What a study states of itself may be a path as a whole; a reason of a failure quotes some.
    whole, within = partial(shorten, table=replaced), partial(shorten_within, table=replaced)
    change_attributes(store, "", lambda attrs: in_strings(attrs, whole))
    for node in (path.parent for path in store.glob("*/.zgroup")):
        change_attributes(store, node.name, lambda attrs: attrs | _failure(attrs, within))
        if (node / "status").is_dir():
            change_texts(store, f"{node.name}/status", within)


def _failure(attributes: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return the one attribute of a node that may name files: why it could not be summarised."""
    return {k: in_strings(v, change) for k, v in attributes.items() if k == "failed"}


def private_looking(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, what) of what looks private in a text; secrets are masked.

    Examples
    --------
    >>> list(private_looking("ask ada@example.org"))
    [('an e-mail address', 'ada@example.org')]
    >>> list(private_looking("token = " + "hf_" + 34 * "x"))
    [('a secret', 'hf_…')]
    """
    for kind, pattern in (("a path", _PATH), ("an e-mail address", _MAIL)):
        yield from ((kind, match[0]) for match in pattern.finditer(text))
    yield from (("a secret", f"{match[0][:3]}…") for match in _SECRET.finditer(text))
    for kind, name in _own_names():
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            yield kind, name


def _own_names() -> Iterator[tuple[str, str]]:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a process without a user
        user = ""
    for kind, name in (
        ("your user name", user),
        ("the name of this machine", socket.gethostname()),
    ):
        if len(name) > 2 and name.lower() not in _COMMON:
            yield kind, name


def _own_folders() -> list[str]:
    """Return the home and the working folder: they may hold spaces, which no pattern knows."""
    folders = {str(Path.home()), str(Path.cwd())} - {"/"}
    return sorted(folders, key=len, reverse=True)


def _is_path(text: str) -> bool:
    """Return whether the whole text is an absolute path; it may hold spaces, but no sentence."""
    posix = text.startswith(("/", "~/")) and text.count("/") > 1
    one = "\n" not in text and len(text) < 4096 and not _SENTENCE.search(text)
    return one and (posix or bool(re.match(r"[A-Za-z]:[\\/]|\\\\", text)))


def _last(path: str) -> str:
    kind = PureWindowsPath if re.match(r"[A-Za-z]:|\\\\", path) else PurePosixPath
    return kind(path).name or "…"


_LITERAL = re.compile(r'"(?P<double>[^"\\\n]*)"|\'(?P<single>[^\'\n]*)\'')


def find_study_file(folder: Path, path: str | Path | None) -> Path | None:
    """Return the study file of a study's folder: the given one, or DIR.toml beside DIR.

    Raises
    ------
    ArgumentError
        If the given one is no TOML file.
    """
    if path is None:
        beside = folder.resolve().with_name(f"{folder.resolve().name}.toml")
        return beside if beside.is_file() else None
    try:
        tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} is not a readable study file: {error}") from error
    return Path(path)


def shortened(text: str, replaced: dict[str, str]) -> str:
    """Return the text of a study file with absolute paths shortened to their last name.

    Examples
    --------
    >>> shortened('folder = "/home/ada/my runs/tiny"  # a disk', {})
    'folder = "tiny"  # a disk'
    """

    def literal(match: re.Match[str]) -> str:
        quote = match[0][0]
        return f"{quote}{shorten(match[0][1:-1], replaced)}{quote}"

    return "\n".join(shorten(line, replaced) for line in _LITERAL.sub(literal, text).split("\n"))


def own_code_in(text: str) -> list[str]:
    """Return the code of the user's own that a study file names; it is not pushed.

    Examples
    --------
    >>> own_code_in('trajectory.model = "model.py:build"')
    ['model.py:build']
    """
    return [value for value in strings(tomllib.loads(text)) if own_code.is_own(value)]


def holds_sentences(text: str) -> bool:
    """Return whether a study file holds sentences itself, and not only names of files."""
    tables = tomllib.loads(text).get("observables", [])
    return any(entry.get("sentences") for entry in tables if isinstance(entry, dict))
