"""What ``--set key=value`` changes: the dotted keys of a study file."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, suggestion
from ..observables import make

_TABLES = ("trajectory", "inputs", "controls", "options")


def with_sets(content: Mapping[str, Any], sets: Sequence[str]) -> dict[str, Any]:
    """Return the content of a study file with some values changed.

    Parameters
    ----------
    content
        The tables by name.
    sets
        Such as ``"inputs.max_texts=50"`` and ``"observables.concepts-ica.n_concepts=10"``: what
        stands before the last dot is a table, of an observable its label, its kind, or the name of
        its node. Values are TOML; what is no TOML is a text.

    Raises
    ------
    ArgumentError
        If one has no value or names no table. Whether the file may hold its key is found when the
        file is read.

    Examples
    --------
    >>> with_sets({"inputs": {"max_texts": 9}}, ["inputs.max_texts=5", "title=Mine"])
    {'inputs': {'max_texts': 5}, 'title': 'Mine'}
    """
    changed: dict[str, Any] = copy.deepcopy(dict(content))
    for assignment in sets:
        path, equals, text = assignment.partition("=")
        keys = [part.strip() for part in path.split(".")]
        if not equals or not all(keys):
            raise ArgumentError(
                f"--set takes key=value, such as inputs.max_texts=50; got {assignment!r}."
            )
        table = _table(changed, keys, assignment)
        table[keys[-1]] = _parsed(text.strip())
    return changed


def _table(
    content: dict[str, Any], keys: Sequence[str], assignment: str
) -> dict[str, Any]:
    """Return the table that the last key is of; tables of tables are made where they lack."""
    if keys == ["title"]:
        return content
    if keys[0] == "observables" and len(keys) > 2:
        table: Any = _observable(content["observables"], keys[1], assignment)
        inner = keys[2:-1]
    elif keys[0] in _TABLES and len(keys) > 1:
        table = content
        inner = keys[:-1]
    else:
        raise ArgumentError(
            f"--set {assignment}: a key begins with {', '.join(f'{t}.' for t in _TABLES)} or "
            f"observables.KIND., or is title.{suggestion(keys[0], [*_TABLES, 'observables'])}"
        )
    for key in inner:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ArgumentError(f"--set {assignment}: {key} is a value and no table.")
    return table


def _observable(
    entries: Sequence[dict[str, Any]], name: str, assignment: str
) -> dict[str, Any]:
    by_name = {node_name(entry): entry for entry in entries}
    of_kind = [entry for entry in entries if entry.get("kind") == name]
    if name in by_name:
        return by_name[name]
    if len(of_kind) == 1:
        return of_kind[0]
    raise ArgumentError(
        f"--set {assignment}: observables has no {name!r}; it has {', '.join(by_name)}."
        f"{suggestion(name, by_name)}"
    )


def node_name(entry: Mapping[str, Any]) -> str:
    """Return how an observable's node is called.

    Examples
    --------
    >>> node_name({"kind": "concepts", "extractor": "ica"}), node_name({"kind": "loss"})
    ('concepts-ica', 'loss')
    """
    arguments = dict(entry)
    kind = str(arguments.pop("kind", None))
    try:
        return make(kind, **arguments).name
    except ArgumentError:
        # Of a user's own file, or one that is refused when the study is read.
        return str(entry.get("label", kind))


def _parsed(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
