"""From the variables of a described node to one concept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from .card import Concept
from .facts import Context, Effect, Life, Neighbour, Token
from .labels import Labels, fit_of
from .words import reason_words

LIFE = {
    "born": "concept_born",
    "born_after": "concept_born_after",
    "born_before": "concept_born_before",
    "settled": "concept_settled",
    "gone": "concept_gone",
}
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
    """

    def __init__(
        self,
        node: str,
        data: xr.Dataset,
        layer: str,
        position: int,
        labels: Labels,
        effects: xr.Dataset | None = None,
    ) -> None:
        self.node, self.layer, self.labels, self.effects = node, layer, labels, effects
        self.whole = data.sel(layer=layer, drop=True)
        self.step = int(data.step.values[position])
        self.at = self.whole.isel(step=position)
        self.fit = fit_of(data, layer, self.step)
        shown = self.at["piece_text"] if "piece_text" in self.at else xr.DataArray([], dims="piece")
        self._pieces = dict(zip(shown["piece"].values.tolist(), shown.values.tolist(), strict=True))
        self._numbers = all(str(token) == piece for token, piece in self._pieces.items())

    def name(self, index: int) -> tuple[str, bool]:
        """Return what a concept is called, and whether a person called it so."""
        given = self.labels.of(self.node, self.layer, index, self.fit)
        if given:
            return given, True
        return str(self._value("name", index, "")), False

    def piece(self, token: int) -> str:
        """Return how a token is written."""
        return str(self._pieces.get(token, token))

    def tokens(self, index: int, ids: str, values: str) -> tuple[Token, ...]:
        """Return the tokens under two variables along ``rank``."""
        if ids not in self.at or values not in self.at:
            return ()
        pairs = zip(self._row(ids, index), self._row(values, index), strict=True)
        return tuple(
            Token(int(token), self.piece(int(token)), float(value))
            for token, value in pairs
            if math.isfinite(value) and token >= 0
        )

    def number(self, name: str, index: int) -> float:
        """Return a number of a concept, NaN where there is none."""
        return float(self._value(name, index, math.nan))

    def life(self, index: int) -> Life | None:
        """Return when a joint concept was there; None where lives were not read off."""
        kind = str(self._value("concept_kind", index, ""))
        if not kind:
            return None
        return Life(kind, **{key: self._step(name, index) for key, name in LIFE.items()})

    def concept(self, index: int) -> Concept:
        """Return one concept with all that the node says of it."""
        name, labelled = self.name(index)
        values = [self.number(n, index) for n in ("concentration", "concentration_limit", "name_p")]
        shared, own = self._contexts("shared_context", index), self._contexts("context", index)
        return Concept(
            node=self.node,
            layer=self.layer,
            index=index,
            step=self.step,
            name=name,
            labelled=labelled,
            reason="" if name else self._reason(index, values),
            note=self._note(index),
            concentration=values[0],
            concentration_limit=values[1],
            name_p=values[2],
            tokens=self.tokens(index, "token_id", "token_share"),
            firing=self.number("firing", index),
            enrichment=self._enrichment(index),
            contexts=own or shared,
            shared_contexts=shared,
            written_up=self.tokens(index, "written_up_id", "written_up"),
            written_down=self.tokens(index, "written_down_id", "written_down"),
            written_random=self.number("written_random", index),
            neighbours=self._neighbours(index),
            life=self.life(index),
            steps=self.whole.step.values.astype(int),
            strength=self._series("strength", index),
            readability=self._series("readability", index),
            effect=self._effect(index),
        )

    def _reason(self, index: int, values: Sequence[float]) -> str:
        life = self.life(index)
        if life is not None and life.kind == NO_CONCEPT:
            return "it is no concept: its code cannot be read from single checkpoints"
        return reason_words(
            values[0], values[1], values[2], str(self._value("unnamed_because", index, ""))
        )

    def _note(self, index: int) -> str:
        others = self.labels.of_other_fits(self.node, self.layer, index, self.fit)
        if not others:
            return ""
        return (
            f"{', '.join(map(repr, others))} is the name of this number in another fit; it does "
            "not hold here."
        )

    def _effect(self, index: int) -> Effect | None:
        data = self.effects
        if data is None or self.layer not in data.layer.values or self.step not in data.step.values:
            return None
        at = data.sel(layer=self.layer, step=self.step)
        found = at[[str(n) for n in at.data_vars if "concept" in at[n].dims]].isel(concept=index)
        numbers = {**at.data_vars, **found.data_vars}
        value, low, high = (
            float(numbers[name]) if name in numbers else math.nan
            for name in ("effect", "effect_random_low", "effect_random_high")
        )
        verdict = ""
        if "verdict" in at and "removed_concept" in at:
            removed = at["removed_concept"].values.ravel() == index
            verdict = str(at["verdict"].values.ravel()[removed][0]) if removed.any() else ""
        return Effect(value, low, high, verdict) if math.isfinite(value) else None

    def _value(self, name: str, index: int, default: Any) -> Any:
        if name not in self.at:
            return default
        value = self.at[name]
        found = value.isel(concept=index) if "concept" in value.dims else value
        return found.item()

    def _row(self, name: str, index: int) -> list[Any]:
        return list(self.at[name].isel(concept=index).values.tolist())

    def _step(self, name: str, index: int) -> int | None:
        value = self.number(name, index)
        return int(value) if math.isfinite(value) else None

    def _series(self, name: str, index: int) -> np.ndarray:
        if name not in self.whole or "step" not in self.whole[name].dims:
            return np.zeros(0)
        values = self.whole[name].isel(concept=index).transpose("step").values
        return np.asarray(values, dtype=np.float64)

    def _enrichment(self, index: int) -> dict[str, float]:
        if "enrichment" not in self.at:
            return {}
        values = self.at["enrichment"].isel(concept=index)
        return dict(zip(values["position"].values.tolist(), values.values.tolist(), strict=True))

    def _contexts(self, name: str, index: int) -> tuple[Context, ...]:
        parts = [f"{name}_{part}" for part in ("id", "code", "text", "place")]
        if any(part not in self.at for part in parts):
            return ()
        data = self.at[parts].isel(concept=index)
        places = data["place"].values.tolist()
        made = []
        for number in range(data.sizes["example"]):
            ids, codes, text, place = (
                data[part].isel(example=number).values.tolist() for part in parts
            )
            if not math.isfinite(text) or text < 0:
                continue
            made.append(self._context(int(text), int(place), ids, codes, places))
        return tuple(made)

    def _context(
        self,
        text: int,
        place: int,
        ids: Sequence[float],
        codes: Sequence[float],
        places: Sequence[int],
    ) -> Context:
        kept = [i for i, token in enumerate(ids) if token >= 0]
        return Context(
            text,
            place,
            tuple(self.piece(int(ids[i])) for i in kept),
            tuple(float(codes[i]) for i in kept),
            [places[i] for i in kept].index(0),
            numbers=self._numbers,
        )

    def _neighbours(self, index: int) -> tuple[Neighbour, ...]:
        if "near" not in self.at or "near_cosine" not in self.at:
            return ()
        pairs = zip(self._row("near", index), self._row("near_cosine", index), strict=True)
        return tuple(
            Neighbour(int(other), float(cosine), self.name(int(other))[0])
            for other, cosine in pairs
            if math.isfinite(cosine) and other >= 0
        )
