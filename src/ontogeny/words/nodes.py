"""The nodes of a merged result, as its page has them, and attributes that hold JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError
from ..figures import Figure
from .catalogue.sentences import OF_NODE, OF_TEXTS
from .formats import plain_text, sentence_start
from .labels import slug
from .row_reading import bands_of, read_rows
from .rows import Row
from .run_rows import read_run_rows
from .voice import Voice

LAYER_DIMENSIONS = ("layer", "block")
_PLACES = {"runs": -2, "claims": -1, "track": 0, "motion": 2}
NOTES = ("definition", "symbol", "null", "care", "source")
_PARSED: Mapping[str, Any] = {
    "section": {},
    "figures": [],
    "statements": [],
    "boundaries": [],
}


@dataclass(frozen=True)
class Node:
    """One observable: its words, its data, and its figures, each with what is wrong with it."""

    id: str
    path: str
    title: str
    section: Mapping[str, str]
    figures: Sequence[tuple[Figure, str]]
    statements: Sequence[str]
    role: str
    dataset: xr.Dataset
    rows: Sequence[Row]

    def place_of(self, figure: str) -> str:
        """Return the name on the page of a figure, given its id; else that of the section."""
        taken: list[str] = []
        for each, problem in self.figures:
            taken.append(slug(each.id, taken))
            if each.id == figure and not problem:
                return f"{self.id.removeprefix('section-')}/{taken[-1]}"
        return self.id


def read_nodes(
    tree: xr.DataTree, voice: Voice, settings: Mapping[str, Any]
) -> list[Node]:
    """Read the nodes in the order of the page.

    `settings` are those of the observables by node, as far as they are known.

    Raises
    ------
    ArgumentError
        If there is none, or an attribute is not JSON.
    """
    nodes: list[Node] = []
    reference = tree.attrs.get("reference_step")
    for child in tree.subtree:
        if child is not tree and (child.data_vars or "failed" in child.attrs):
            taken = [node.id for node in nodes]
            data = voice.filled_node(child.to_dataset())
            path = plain_text(child.path.strip("/"))
            stated = partial(attribute, data.attrs, owner=f"node {path!r}")
            parsed = {key: stated(key, start) for key, start in _PARSED.items()}
            data.attrs.update(parsed)
            nodes.append(_read_node(path, data, taken, reference, voice))
    if not nodes:
        raise ArgumentError(
            "tree must hold at least one node with data; it holds none."
        )
    # A reopened store gives its nodes by alphabet: what a paper claims and the loss come first,
    # weight change last.
    return sorted(
        _with_own_titles(nodes, settings), key=lambda node: _PLACES.get(node.role, 1)
    )


def _with_own_titles(nodes: list[Node], settings: Mapping[str, Any]) -> Iterator[Node]:
    """Give nodes of which none has the title of another: further ones say what they are of."""
    titles = Counter(node.title for node in nodes)
    for node in nodes:
        name = node.path.rpartition("/")[2]
        asked = as_mapping(settings.get(node.path) or {})
        is_plain = name == asked.get("kind") or name in slug(node.title)
        if titles[node.title] == 1 or is_plain:
            yield node
            continue
        texts = str(asked.get("on") or "")
        words = OF_TEXTS.get(texts, OF_TEXTS["other"]) if texts else OF_NODE
        called = partial(words.format, of=texts or name)
        rows = [
            replace(
                row,
                label=row.label and called(row.label),
                quantity=called(row.quantity),
            )
            for row in node.rows
        ]
        yield replace(node, title=called(node.title), rows=rows)


def _read_node(
    path: str,
    dataset: xr.Dataset,
    taken: Sequence[str],
    reference: int | None,
    voice: Voice,
) -> Node:
    section = dataset.attrs["section"]
    figures = dataset.attrs["figures"]
    # A node without a heading is called by its path: "concepts-ica" is "Concepts ica".
    words = path.rpartition("/")[2].replace("-", " ").replace("_", " ")
    title = section.get("title") or sentence_start(words)
    role = str(dataset.attrs.get("role", "development"))
    name = slug(f"section-{path}", taken)
    numbered = [_figure(number, data) for number, data in enumerate(figures, start=1)]
    return Node(
        id=name,
        path=path,
        title=title,
        section={note: section.get(note, "") for note in NOTES},
        figures=numbered,
        statements=dataset.attrs["statements"],
        role=role,
        dataset=dataset,
        rows=read_rows(
            dataset,
            title,
            name,
            role,
            bands_of(figure for figure, _ in numbered),
            reference,
            voice,
        )
        or read_run_rows(dataset, title, name, role, voice),
    )


def _figure(number: int, data: Mapping[str, Any]) -> tuple[Figure, str]:
    """Return a figure; one that cannot be read as a stand-in, with the reason."""
    data = {**data, "id": str(data.get("id") or number)}
    data["title"] = data.get("title") or data["id"]
    try:
        return Figure.from_dict(data), ""
    except ArgumentError as error:
        caption = str(data.get("caption", ""))
        return Figure(data["id"], data["title"], value="", caption=caption), plain_text(
            error
        )


def layer_paths(nodes: Sequence[Node]) -> list[str]:
    """Return module paths in the order of the nodes, layers before weight blocks."""
    paths: list[str] = []
    for dim in LAYER_DIMENSIONS:
        for node in nodes:
            if dim in node.dataset.coords:
                paths += map(plain_text, np.atleast_1d(node.dataset[dim].values))
    for node in nodes:
        paths += [row.layer for row in node.rows if row.layer]
    return list(dict.fromkeys(paths))


# ---- attributes that hold JSON, checked as they are read -----------------------------------------


def attribute(attrs: Mapping[Any, Any], name: str, default: Any, owner: str) -> Any:
    """Return an attribute that holds JSON; what is already plain data is taken as it is."""
    value = attrs.get(name, default)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, str):
        return _plain(value)
    try:
        value = json.loads(value) if value else default
    except (json.JSONDecodeError, RecursionError) as error:
        raise ArgumentError(
            f"attribute {name!r} of {owner} must hold JSON; it starts with {value[:40]!r} "
            f"({getattr(error, 'msg', error)})."
        ) from None
    if default is not None and not isinstance(value, type(default)):
        raise ArgumentError(
            f"attribute {name!r} of {owner} must be a JSON {type(default).__name__}; "
            f"got {type(value).__name__}."
        )
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return JSON data with all its texts plain; labels of a selection must stay as they are."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {_plain(k): v if k == "select" else _plain(v) for k, v in value.items()}
    return (
        [_plain(item) for item in value] if isinstance(value, list | tuple) else value
    )


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return an entry of a list as a mapping; a name alone is one that has no more."""
    return value if isinstance(value, Mapping) else {"name": value}
