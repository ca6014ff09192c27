"""The concepts of a node in a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..report.concepts.arrays import LIFE
from ..words.labels import short_names
from .build import NO_CONCEPT, Described
from .html import concept_table
from .terminal import as_text, table_lines
from .words import visible

LISTED = (
    "name",
    "fit_id",
    "code_sketch",
    "piece_text",
    "token_id",
    "token_share",
    "unnamed_because",
    "concept_kind",
    *(f"concept_{name}" for name in LIFE),
)
"""Variables of a node that a table is made of."""


@dataclass(frozen=True, repr=False)
class ConceptTable:
    """The concepts of a node at a step, one row each; those with a name first, by birth.

    Latents that are no concepts are left out. Printed, it is a table of text; in a notebook one
    of HTML. Iterating gives one dict a row.

    Attributes
    ----------
    node, step
        Of which node and step.
    data
        The same as a dataset over ``row``: ``layer``, ``concept``, ``name``, ``labelled``,
        ``tokens``, ``kind``, ``born`` (NaN where none). ``data.to_dataframe()`` gives a data frame.
    because
        Why no concept of a layer could get a name, by layer, where that is so.
    short
        Short names of the layers.
    """

    node: str
    step: int
    data: xr.Dataset
    because: dict[str, str]
    short: dict[str, str]

    def __len__(self) -> int:
        return int(self.data.sizes["row"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number in range(len(self)):
            row = {str(n): v.values[number] for n, v in self.data.data_vars.items()}
            born = float(row["born"])
            yield {
                "layer": self.short[row["layer"]],
                "path": str(row["layer"]),
                "index": int(row["concept"]),
                "name": str(row["name"]),
                "labelled": bool(row["labelled"]),
                "tokens": str(row["tokens"]),
                "kind": str(row["kind"]),
                "born": int(born) if math.isfinite(born) else None,
            }

    def __repr__(self) -> str:
        return as_text(self.__rich__())

    def __rich__(self) -> Any:
        return table_lines(self.heading(), list(self))

    def _repr_html_(self) -> str:
        return concept_table(self.heading(), list(self))

    def heading(self) -> list[str]:
        """Return the lines over the table: how many there are, and why some have no name."""
        n_names = int((self.data["name"] != "").sum())
        lines = [f"{self.node}, step {self.step:,}: {len(self)} concepts, {n_names} with a name"]
        if bool(self.data["labelled"].any()):
            lines.append("* named by a person")
        reasons = dict.fromkeys(self.because.values())
        return [*lines, *(f"No names from tokens: {reason}." for reason in reasons)]


def table_of(layers: Mapping[str, Described], all_paths: Sequence[str]) -> ConceptTable:
    """Return the table of the concepts of some layers, by path, of all those of a node."""
    rows = [row for path, one in layers.items() for row in _rows(path, one)]
    because = {path: one.unnamed for path, one in layers.items() if one.unnamed}
    columns = ("layer", "concept", "name", "labelled", "tokens", "kind", "born")
    kinds = (object, int, object, bool, object, object, float)
    values = list(zip(*rows, strict=True)) or [() for _ in columns]
    data = xr.Dataset(
        {
            name: ("row", np.array(value, dtype=kind))
            for name, value, kind in zip(columns, values, kinds, strict=True)
        }
    )
    short = dict(zip(all_paths, short_names(all_paths), strict=True))
    first = next(iter(layers.values()))
    return ConceptTable(first.node, first.step, data, because, short)


def _rows(path: str, described: Described) -> list[tuple[Any, ...]]:
    rows, arrays = [], described.arrays
    for index in range(len(described)):
        life = arrays.life((0, index))
        if life is not None and life.kind == NO_CONCEPT:
            continue
        name, labelled = described.name(index)
        strongest = arrays.tokens("token_id", "token_share", (0, index))[:3]
        tokens = " ".join(visible(token.piece) for token in strongest)
        born = math.nan if life is None or life.born is None else float(life.born)
        rows.append((path, index, name, labelled, tokens, life.kind if life else "", born))
    return sorted(rows, key=lambda row: (not row[2], math.inf if row[6] != row[6] else row[6]))
