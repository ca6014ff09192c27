"""Which parts of a result hold texts and tokens of the inputs, and a result without them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from .store import change_attributes, in_strings, strings

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
        "row_layer",
        "row_quantity",
        "run",
        "share_of",
        "side",
        "stands_in_because",
        "status",
        "unnamed_because",
    }
)
"""Variables whose texts name layers, methods or outcomes, and never come from the inputs."""

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
        what = ("text" if self.sample else "token id") + "s" * (self.count != 1)
        return f"{self.node}: {self.variable} ({self.count:,} {what}{sample})"


def passages(tree: xr.DataTree) -> Iterator[Passage]:
    """Yield the variables of a result that hold texts or tokens of the inputs.

    Examples
    --------
    >>> data = xr.Dataset({"gap_text": ("gap", ["the ____ sat"]), "status": ("step", ["done"])})
    >>> [str(p) for p in passages(xr.DataTree.from_dict({"predictions": data}))]
    ["predictions: gap_text (1 text, such as 'the ____ sat')"]
    """
    for name, node in tree.children.items():
        for variable, array in node.to_dataset().variables.items():
            if _is_text(str(variable), array):
                texts = [str(text) for text in array.values.ravel().tolist() if str(text)]
                if texts:
                    yield Passage(name, str(variable), len(texts), max(texts, key=len))
            elif _is_token_id(str(variable), array):
                yield Passage(name, str(variable), int(array.size), "")


def remove_texts(store: Path, tree: xr.DataTree) -> list[str]:
    """Take texts and tokens out of a copied result; return the observables that are left out.

    Numbers computed from the texts stay. An observable is left out whole if none of its figures
    can be drawn without its texts.

    Parameters
    ----------
    store
        The copy.
    tree
        What it holds.
    """
    left_out = []
    for name, node in tree.children.items():
        data = node.to_dataset(inherit=False)
        gone = {str(v) for v, array in data.variables.items() if _is_textual(str(v), array)}
        figures = json.loads(data.attrs.get("figures", "[]"))
        figures_left = [figure for figure in figures if not gone & set(strings(figure))]
        if gone and figures and not figures_left:
            left_out.append(name)
            shutil.rmtree(store / name)
            continue
        for variable in gone:
            shutil.rmtree(store / name / variable)
        if gone:  # what such an observable states may quote what it shows
            attrs = {"figures": json.dumps(figures_left), "statements": "[]"}
            change_attributes(store, name, attrs)
    change_attributes(store, "", lambda attributes: _forget(attributes, left_out))
    return left_out


def _forget(attributes: dict[str, Any], left_out: list[str]) -> dict[str, Any]:
    """Take observables out of the list of nodes, and sentences out of all arguments."""
    nodes = [n for n in json.loads(attributes.get("nodes", "[]")) if n not in left_out]
    settings = json.loads(attributes.get("settings", "{}"))
    arguments = settings.get("observables", {})
    others = {name: in_strings(a, _word) for name, a in arguments.items() if name not in left_out}
    settings |= {"observables": others}
    return attributes | {"nodes": json.dumps(nodes), "settings": json.dumps(settings)}


def _word(text: str) -> str:
    """Return a text that is one word, such as a layer or a method, and nothing of a sentence."""
    return text if len(text.split()) < 2 else "…"


def _is_textual(name: str, array: xr.Variable) -> bool:
    dimensions = {str(dimension) for dimension in array.dims}
    return _is_text(name, array) or _is_token_id(name, array) or bool(_TEXT_DIMENSIONS & dimensions)


def _is_text(name: str, array: xr.Variable) -> bool:
    return array.dtype.kind in "OUST" and name not in LABELS


def _is_token_id(name: str, array: xr.Variable) -> bool:
    return array.dtype.kind in "iu" and (name.endswith(_TOKEN_IDS) or name == "piece")


def _short(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
