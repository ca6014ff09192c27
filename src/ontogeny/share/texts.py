"""Which parts of a result hold texts and tokens of the inputs, and a result without them."""

from __future__ import annotations

import getpass
import json
import re
import socket
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import xarray as xr

from .. import own_code
from ..errors import ArgumentError
from .strings import in_strings, strings

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
# Names of nobody.
_COMMON = {"root", "user", "admin", "ubuntu", "localhost", "runner", "jovyan"}


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
    >>> shorten_within(
    ...     "missing: /home/ada/runs/tiny/checkpoint-8 is not there", replaced
    ... )
    'missing: checkpoint-8 is not there'
    >>> replaced
    {'/home/ada/runs/tiny/checkpoint-8': 'checkpoint-8'}
    >>> shorten_within("see https://example.org/a/b, and/or 3 tokens/s", replaced)
    'see https://example.org/a/b, and/or 3 tokens/s'
    """
    # The home and the working folder: they may hold spaces, which no pattern knows.
    folders = {str(Path.home()), str(Path.cwd())} - {"/"}
    for folder in sorted(folders, key=len, reverse=True):
        text = re.sub(rf"(?<![\w/]){re.escape(folder)}(?=[/\\])", "~", text)
    return _PATH.sub(lambda m: table.setdefault(m[0], _last(m[0])), text)


def without_paths(tree: xr.DataTree, replaced: dict[str, str]) -> xr.DataTree:
    """Return a result with absolute paths in its provenance and its statuses shortened."""
    # What a study states of itself may be a path as a whole; a reason of a failure quotes some.
    within = partial(shorten_within, table=replaced)
    root = tree.to_dataset()
    root.attrs = in_strings(root.attrs, partial(shorten, table=replaced))
    nodes = {"/": root}
    for node in tree.descendants:
        data = node.to_dataset(inherit=False)
        if "failed" in data.attrs:
            data.attrs["failed"] = in_strings(data.attrs["failed"], within)
        if "status" in data:
            status = data["status"].values
            texts = np.array([within(str(text)) for text in status.ravel()], object)
            data["status"] = data["status"].copy(data=texts.reshape(status.shape))
        nodes[node.path] = data
    return xr.DataTree.from_dict(nodes)


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

    return "\n".join(
        shorten(line, replaced) for line in _LITERAL.sub(literal, text).split("\n")
    )


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


# Variables whose texts name layers, methods or outcomes, and never come from the inputs.
LABELS = frozenset(
    {
        "alignment",
        "block",
        "concept_kind",
        "distance",
        "extractor",
        "fit_id",
        "kind",
        "layer",
        "matching",
        "metric",
        "position",
        "refit",
        "row",
        "row_compares",
        "row_kind",
        "row_layer",
        "row_name",
        "row_quantity",
        "row_to",
        "run",
        "share_of",
        "side",
        "stands_in_because",
        "status",
        "unnamed_because",
    }
)

_TEXT_DIMENSIONS = frozenset({"piece", "shown_text", "shown_place", "gap", "example"})
_TOKEN_IDS = ("_id", "_ids")


@dataclass(frozen=True)
class Passage:
    """One variable that holds texts or tokens: how many, and the longest text of it."""

    node: str
    variable: str
    count: int
    sample: str

    def __str__(self) -> str:
        sample = f", such as {_short(self.sample)!r}" if self.sample else ""
        what = ("text" if self.sample else "token id") + (
            "s" if self.count != 1 else ""
        )
        return f"{self.node}: {self.variable} ({self.count:,} {what}{sample})"


def passages(tree: xr.DataTree) -> Iterator[Passage]:
    """Yield the variables of a result that hold texts or tokens of the inputs.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"gap_text": ("gap", ["the ____ sat"]), "status": ("step", ["done"])}
    ... )
    >>> [str(p) for p in passages(xr.DataTree.from_dict({"predictions": data}))]
    ["predictions: gap_text (1 text, such as 'the ____ sat')"]
    """
    for name, node in tree.children.items():
        for variable, array in node.to_dataset().variables.items():
            if _is_text(str(variable), array):
                texts = [
                    str(text) for text in array.values.ravel().tolist() if str(text)
                ]
                if texts:
                    yield Passage(name, str(variable), len(texts), max(texts, key=len))
            elif _is_token_id(str(variable), array):
                yield Passage(name, str(variable), int(array.size), "")


def without_texts_of(tree: xr.DataTree) -> tuple[xr.DataTree, list[str]]:
    """Return a result without texts and tokens, and the observables that are left out.

    Numbers computed from the texts stay. An observable is left out whole if none of its figures
    can be drawn without its texts.
    """
    left_out = []
    nodes = {}
    for node in tree.descendants:
        name = node.path.strip("/")
        data = node.to_dataset(inherit=False)
        gone = {
            str(v) for v, array in data.variables.items() if _is_textual(str(v), array)
        }
        figures = json.loads(data.attrs.get("figures", "[]"))
        figures_left = [figure for figure in figures if not gone & set(strings(figure))]
        if gone and figures and not figures_left:
            left_out.append(name)
            continue
        if gone:  # what such an observable states may quote what it shows
            attrs = {"figures": json.dumps(figures_left), "statements": "[]"}
            data = data.drop_vars(gone).assign_attrs(attrs)
        nodes[name] = data
    root = tree.to_dataset()
    root.attrs = _forget(root.attrs, left_out)
    return xr.DataTree.from_dict({"/": root, **nodes}), left_out


def _forget(attributes: dict[str, Any], left_out: list[str]) -> dict[str, Any]:
    """Take observables out of the list of nodes, and sentences out of all arguments."""
    nodes = [n for n in json.loads(attributes.get("nodes", "[]")) if n not in left_out]
    settings = json.loads(attributes.get("settings", "{}"))
    arguments = settings.get("observables", {})
    others = {
        name: in_strings(a, _word)
        for name, a in arguments.items()
        if name not in left_out
    }
    settings |= {"observables": others}
    return attributes | {"nodes": json.dumps(nodes), "settings": json.dumps(settings)}


def _word(text: str) -> str:
    """Return a text that is one word, such as a layer or a method, and nothing of a sentence."""
    return text if len(text.split()) < 2 else "…"


def _is_textual(name: str, array: xr.Variable) -> bool:
    dimensions = {str(dimension) for dimension in array.dims}
    return (
        _is_text(name, array)
        or _is_token_id(name, array)
        or bool(_TEXT_DIMENSIONS & dimensions)
    )


def _is_text(name: str, array: xr.Variable) -> bool:
    return array.dtype.kind in "OUST" and name not in LABELS


def _is_token_id(name: str, array: xr.Variable) -> bool:
    return array.dtype.kind in "iu" and (name.endswith(_TOKEN_IDS) or name == "piece")


def _short(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
