"""One concept of a result, and how it is made of the variables of a described node."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError
from ..markup import as_html, as_text
from ..report.concepts.arrays import LIFE, ConceptArrays
from ..report.concepts.facts import Effect, Facts
from ..words.catalogue import concepts as say
from ..words.labels import short_names
from .labels import Labels, fit_of, sketches_of
from .readouts import KEPT, Direction, kept_direction
from .terminal import concept_lines, table_lines
from .words import prompt_of, reason_words, visible


@dataclass(frozen=True, repr=False)
class Concept(Facts):
    """One concept of one layer at one step; see `ontogeny.atlas.ConceptAccessor`.

    Printed, it is a card of text; in a notebook the same card has colours. Its attributes are those of
    `ontogeny.atlas.Facts`.
    """

    # The node, where it keeps directions.
    kept: xr.Dataset | None = field(default=None, compare=False)

    def direction(self, step: int = -1) -> Direction:
        """Return its direction at a training step, or at an index from the end.

        Raises
        ------
        ArgumentError
            If the result keeps no directions of it, such as of concepts that are not learned ones.
        """
        if self.kept is None:
            raise ArgumentError(
                f"{self.node} keeps no directions; 'learned-concepts' does."
            )
        return kept_direction(self.kept, self.layer, self.index, step)

    def __repr__(self) -> str:
        return as_text(concept_lines(self))

    def __rich__(self) -> Any:
        return concept_lines(self)

    def _repr_html_(self) -> str:
        return as_html(concept_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold; numbers that are not known are None."""
        return {
            f.name: _plain(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if f.name != "kept"
        }

    def prompt(self) -> str:
        """Return a text that asks a language model for a description of the concept.

        Nothing here sends it anywhere. It holds the contexts, with the code of every token from 0
        to 9, and the strongest tokens.
        """
        return prompt_of(self)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


NO_CONCEPT = "no concept"


class Described:
    """One layer of a described node at one step, of which concepts are read.

    Parameters
    ----------
    node
        Name of the node.
    data
        The whole node.
    layer
        Module path.
    position
        Which of the node's steps.
    labels
        Names that people gave.
    effects
        The node that says what the removal of these concepts costs, if there is one.
    unit
        What the steps count.
    """

    def __init__(
        self,
        node: str,
        data: xr.Dataset,
        layer: str,
        position: int,
        labels: Labels,
        effects: xr.Dataset | None = None,
        unit: str = "step",
    ) -> None:
        self.unit = unit
        self.node = node
        self.layer = layer
        self.labels = labels
        self.effects = effects
        self.kept = data if KEPT in data else None
        self.arrays = ConceptArrays(data.sel(layer=[layer]), position)
        self.step = int(data.step.values[position])
        self.fit = fit_of(data, layer, self.step)
        self.given = labels.given(
            node, layer, self.fit, sketches_of(data, layer, self.step)
        )

    def __len__(self) -> int:
        return int(self.arrays.data.sizes["concept"])

    @property
    def unnamed(self) -> str:
        """Why no concept of the layer could get a name; empty where some could."""
        return self.arrays.text("unnamed_because", (0, 0))

    def name(self, index: int) -> tuple[str, bool]:
        """Return what a concept is called, and whether a person called it so."""
        label = self.given.get(index, "")
        return label or self.arrays.text("name", (0, index)), bool(label)

    def concept(self, index: int) -> Concept:
        """Return one concept with all that the node says of it."""
        name, labelled = self.name(index)
        arrays = self.arrays
        place = (0, index)
        shared, contexts = (
            arrays.contexts(name, place) for name in ("shared_context", "context")
        )
        concept: Concept = arrays.facts(
            place,
            Concept,
            node=self.node,
            step=self.step,
            name=name,
            labelled=labelled,
            note=self._note(index),
            contexts=contexts or shared,
            shared_contexts=shared,
            steps=arrays.data.step.values.astype(int),
            strength=arrays.course("strength", place),
            readability=arrays.course("readability", place),
            effect=self._effect(index),
            unit=self.unit,
        )
        near = [
            replace(other, name=self.name(other.index)[0])
            for other in concept.neighbours
        ]
        return replace(
            concept,
            reason="" if name else self._reason(concept),
            neighbours=tuple(near),
            kept=self.kept,
        )

    def _reason(self, concept: Concept) -> str:
        if concept.life is not None and concept.life.kind == NO_CONCEPT:
            return say.NO_CONCEPT
        if "rule" in self.arrays:
            return say.NO_RULE
        numbers = (concept.concentration, concept.concentration_limit, concept.name_p)
        return reason_words(*numbers, self.unnamed)

    def _note(self, index: int) -> str:
        others = self.labels.of_other_fits(self.node, self.layer, index, self.fit)
        others = [name for name in others if name not in self.given.values()]
        names = ", ".join(map(repr, others))
        return say.OTHER_FIT.format(names=names) if others else ""

    def _effect(self, index: int) -> Effect | None:
        data = self.effects
        if (
            data is None
            or self.layer not in data.layer.values
            or self.step not in data.step.values
        ):
            return None
        at = data.sel(layer=self.layer, step=self.step)
        concept = at[[str(n) for n in at.data_vars if "concept" in at[n].dims]].isel(
            concept=index
        )
        numbers = {**at.data_vars, **concept.data_vars}
        value, low, high = (
            float(numbers[name]) if name in numbers else math.nan
            for name in ("effect", "effect_random_low", "effect_random_high")
        )
        verdict = ""
        if "verdict" in at and "removed_concept" in at:
            removed = at["removed_concept"].values.ravel() == index
            verdict = (
                str(at["verdict"].values.ravel()[removed][0]) if removed.any() else ""
            )
        return Effect(value, low, high, verdict) if math.isfinite(value) else None


# Variables of a node that a table is made of.
LISTED = (
    "name",
    "fit_id",
    "code_sketch",
    "piece_text",
    "words",
    "again",
    "token_id",
    "token_share",
    "unnamed_because",
    "concept_kind",
    *(f"concept_{name}" for name in LIFE),
)


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
    unit
        What the steps count: steps, epochs or tokens, as a singular.
    """

    node: str
    step: int
    data: xr.Dataset
    because: dict[str, str]
    short: dict[str, str]
    unit: str = "step"

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
        return as_html(self.__rich__())

    def heading(self) -> list[str]:
        """Return the lines over the table: how many there are, and why some have no name."""
        n_names = int((self.data["name"] != "").sum())
        counts = {"concepts": len(self), "named": n_names}
        place = {"node": self.node, "unit": self.unit, "step": f"{self.step:,}"}
        lines = [say.TABLE.format(**place, **counts)]
        if bool(self.data["labelled"].any()):
            lines.append(say.STARRED)
        for reason in dict.fromkeys(self.because.values()):
            lines.append(say.NO_NAMES_FROM_TOKENS.format(reason=reason))
        return lines


def table_of(layers: Mapping[str, Described], all_paths: Sequence[str]) -> ConceptTable:
    """Return the table of the concepts of some layers, by path, of all those of a node."""
    rows = list(chain.from_iterable(_rows(path, one) for path, one in layers.items()))
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
    return ConceptTable(first.node, first.step, data, because, short, first.unit)


def _rows(path: str, described: Described) -> list[tuple[Any, ...]]:
    rows = []
    arrays = described.arrays
    for index in range(len(described)):
        life = arrays.life((0, index))
        if life is not None and life.kind == NO_CONCEPT:
            continue
        if "again" in arrays and not math.isfinite(arrays.number("again", (0, index))):
            continue  # another layer has more
        name, labelled = described.name(index)
        strongest = arrays.tokens("token_id", "token_share", (0, index))[:3]
        tokens = " ".join(visible(token.piece) for token in strongest)
        tokens = tokens or arrays.text("words", (0, index))
        born = math.nan if life is None or life.born is None else float(life.born)
        rows.append(
            (path, index, name, labelled, tokens, life.kind if life else "", born)
        )
    return sorted(
        rows, key=lambda row: (not row[2], math.inf if row[6] != row[6] else row[6])
    )
