"""What a node holds of its concepts, each variable read once, and the facts of one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from .facts import Context, Facts, Life, Neighbour, Token
from .tokens import Pieces

Place = tuple[int, int]
"""Which layer of a node and which of its concepts."""

# Steps of a life; a node's variables are called ``concept_born`` and so on.
LIFE = ("born", "born_after", "born_before", "settled", "gone")

_NUMBERS = (
    "concentration",
    "concentration_limit",
    "name_p",
    "firing",
    "written_random",
)


@dataclass(frozen=True, eq=False)
class ConceptArrays:
    """The variables of a node over its concepts; of those over steps, what they are at one step.

    An opened result is read again with every part of a variable that is asked for, so each variable
    is read whole, once.

    Parameters
    ----------
    data
        The node.
    step
        Which of its steps.

    Examples
    --------
    >>> names = xr.DataArray([["comma", ""]], dims=("layer", "concept"))
    >>> str(ConceptArrays(xr.Dataset({"name": names})).of("name", (0, 0)))
    'comma'
    """

    data: xr.Dataset
    step: int = -1
    _read: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.data.variables

    def dims(self, name: str) -> set[Any]:
        """Return the dimensions of a variable, without the step."""
        return set(self.data.variables[name].dims) - {"step"} if name in self else set()

    def at_step(self, name: str) -> np.ndarray:
        """Return a variable over (layer, concept, ...), or what it has of these."""
        if name not in self._read:
            variable = self.data.variables[name]
            if "step" in variable.dims:
                variable = variable.isel(step=self.step)
            first = [dim for dim in ("layer", "concept") if dim in variable.dims]
            self._read[name] = variable.transpose(*first, ...).values
        return self._read[name]

    def over_steps(self, name: str) -> np.ndarray:
        """Return a number of each concept over (layer, concept, step)."""
        return self.whole(name, ("layer", "concept", "step"))

    def whole(self, name: str, dims: tuple[str, ...]) -> np.ndarray:
        """Return the numbers of a variable over all of its dimensions."""
        key = f"{name} over {dims}"
        if key not in self._read:
            self._read[key] = (
                self.data.variables[name].transpose(*dims).values.astype(float)
            )
        return self._read[key]

    def of(self, name: str, place: Place) -> Any:
        """Return what a variable holds of one concept, or of its layer."""
        values = self.at_step(name)
        return (
            values[place]
            if "concept" in self.data.variables[name].dims
            else values[place[0]]
        )

    def number(self, name: str, place: Place) -> float:
        """Return a number of one concept, NaN where there is none or there are several."""
        single = {"layer"} <= self.dims(name) <= {"layer", "concept"}
        return float(self.of(name, place)) if single else math.nan

    def text(self, name: str, place: Place) -> str:
        """Return a text of one concept, empty where there is none."""
        return str(self.of(name, place)) if name in self else ""

    def course(self, name: str, place: Place) -> np.ndarray:
        """Return a number of one concept over steps, nothing where it is not known over them."""
        is_course = name in self and "step" in self.data.variables[name].dims
        return self.over_steps(name)[place] if is_course else np.zeros(0)

    @cached_property
    def pieces(self) -> Pieces:
        """How the node's tokens are written."""
        return Pieces.of(self.data)

    def life(self, place: Place) -> Life | None:
        """Return when a joint concept was there; None where lives were not read off."""
        kind = self.text("concept_kind", place)
        steps = {key: self.number(f"concept_{key}", place) for key in LIFE}
        whole = {key: int(step) for key, step in steps.items() if math.isfinite(step)}
        return Life(kind, **whole) if kind else None

    def tokens(self, ids: str, values: str, place: Place) -> tuple[Token, ...]:
        """Return the tokens of a concept, each with its number."""
        return tuple(
            Token(token, self.pieces.by_id.get(token, str(token)), value)
            for token, value in self._pairs(ids, values, place)
        )

    def _pairs(self, ids: str, values: str, place: Place) -> list[tuple[int, float]]:
        """Return whole numbers with a value each, without those that stand for nothing."""
        if ids not in self or values not in self:
            return []
        pairs = zip(
            self.of(ids, place).tolist(), self.of(values, place).tolist(), strict=True
        )
        return [
            (int(i), value) for i, value in pairs if i >= 0 and math.isfinite(value)
        ]

    def contexts(self, name: str, place: Place) -> tuple[Context, ...]:
        """Return the places of texts that the variables of a name hold for a concept."""
        parts = [f"{name}_{part}" for part in ("text", "place", "id", "code")]
        if any(part not in self for part in parts):
            return ()
        values = [self.of(part, place) for part in parts]
        if "band" in self.dims(
            f"{name}_id"
        ):  # of several ranges of codes, the top first
            values = [each[0] for each in values]
        examples = zip(*(each.tolist() for each in values), strict=True)
        # NaN is none either.
        return tuple(self._context(*one) for one in examples if one[0] >= 0)

    def _context(
        self, text: float, at: float, ids: Sequence[float], codes: Sequence[float]
    ) -> Context:
        within = [i for i, token in enumerate(ids) if token >= 0]
        return Context(
            int(text),
            int(at),
            tuple(self.pieces.by_id.get(int(ids[i]), str(int(ids[i]))) for i in within),
            tuple(codes[i] for i in within),
            self.data["place"].values[within].tolist().index(0),
            numbers=self.pieces.numbers_only,
        )

    def facts(self, place: Place, make: type[Facts] = Facts, **more: Any) -> Any:
        """Return what the node says of one concept, without its contexts and courses."""
        near = self._pairs("near", "near_cosine", place)
        neighbours = [
            Neighbour(i, cosine, self.text("name", (place[0], i))) for i, cosine in near
        ]
        fields: dict[str, Any] = {
            "layer": str(self.data["layer"].values[place[0]]),
            "index": place[1],
            "name": self.text("name", place),
            "tokens": self.tokens("token_id", "token_share", place),
            "written_up": self.tokens("written_up_id", "written_up", place),
            "written_down": self.tokens("written_down_id", "written_down", place),
            "neighbours": tuple(neighbours),
            "enrichment": self._enrichment(place),
            "life": self.life(place),
            **{name: self.number(name, place) for name in _NUMBERS},
        }
        return make(**{**fields, **more})

    def _enrichment(self, place: Place) -> dict[str, float]:
        if "position" not in self.dims("enrichment"):
            return {}
        names = map(str, self.data["position"].values)
        return dict(zip(names, self.of("enrichment", place).tolist(), strict=True))
