"""What a run counts and what a token is, and texts that leave both open until that is known.

A text that speaks of steps or words holds marks, such as ``"by {step} 20"``. They are filled where
the run is known: when nodes are merged into a result, and where a page makes sentences of its own.
Names of models and users have no marks, so that a module called ``step`` keeps its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

STEPS = "training step"
_WORD = "word"
_TOKEN = "token"
_LABELS = "select"  # what a figure selects are labels of the data
LABELS = "labels"
"""Attribute of a coordinate: a JSON object of what is shown for some of its labels, with marks."""


@dataclass(frozen=True)
class Voice:
    """What a place of the step axis and a token are called.

    Parameters
    ----------
    clock
        Words of the step axis: ``"training step"``, ``"training epoch"``, ``"training tokens"``.
    token_unit
        What a token is: ``"character"``, ``"move"``; empty where it is unknown: ``{word}`` is then
        a word, and ``{token}`` a token.

    Examples
    --------
    >>> Voice("training epoch").fill(
    ...     "Half by {step} 4, at every {checkpoint}: the half-way {point}."
    ... )
    'Half by epoch 4, at every checkpoint: the half-way point.'
    >>> Voice().fill("Half by {step} 4, at every {checkpoint}: the half-way {point}.")
    'Half by step 4, at every step: the half-way step.'
    >>> text = "{Word} frequencies in nats per {token}; it knows these {word}s."
    >>> Voice(token_unit="amino acid").fill(text)
    'Amino acid frequencies in nats per amino acid; it knows these amino acids.'
    >>> Voice().fill(text)
    'Word frequencies in nats per token; it knows these words.'
    """

    clock: str = STEPS
    token_unit: str = ""

    @classmethod
    def of(cls, clock: Any, inputs: Iterable[Any] = ()) -> Voice:
        """Return the voice of a result by its attribute ``clock`` and its parsed ``inputs``.

        Of inputs whose tokens are different things, a token is a token.
        """
        units = {str(each["token_unit"]) for each in inputs if "token_unit" in each}
        unit = units.pop() if len(units) == 1 else ""
        return cls(str(clock or STEPS), _TOKEN if units else unit)

    @property
    def unit(self) -> str:
        """What a place is called beside its number: a step, an epoch or a token."""
        return self.clock.removeprefix("training ").removesuffix("s")

    @property
    def point(self) -> str:
        """What a half-change or half-way one is called."""
        return "step" if self.unit == "step" else "point"

    @property
    def checkpoint(self) -> str:
        """What a place without a number is called."""
        return "step" if self.unit == "step" else "checkpoint"

    @property
    def word(self) -> str:
        """What a token is called."""
        return self.token_unit or _WORD

    @property
    def token(self) -> str:
        """What a token is called where it is no word of ours: a token, if nothing is known."""
        return self.token_unit or _TOKEN

    def fill(self, text: str) -> str:
        """Return a text with its marks filled; an ``s`` behind a mark makes it several."""
        if "{" not in text:
            return text
        for mark, word in self._marks():
            text = text.replace(mark, word)
        return text

    def _marks(self) -> Iterator[tuple[str, str]]:
        for name in ("step", "checkpoint", "point", "word", "token"):
            word = self.unit if name == "step" else getattr(self, name)
            yield f"{{{name}}}", word
            yield f"{{{name.capitalize()}}}", word[:1].upper() + word[1:]

    def filled(self, value: Any) -> Any:
        """Return plain data with the marks of all its texts filled; labels of the data stay."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, Mapping):
            return {k: v if k == _LABELS else self.filled(v) for k, v in value.items()}
        return (
            [self.filled(item) for item in value]
            if isinstance(value, list | tuple)
            else value
        )

    def filled_json(self, text: Any) -> Any:
        """Return an attribute with its marks filled, also inside of JSON."""
        if not isinstance(text, str) or self.fill(text) == text:
            return text
        try:
            return json.dumps(self.filled(json.loads(text)))
        except json.JSONDecodeError:
            return self.fill(text)

    def filled_node(self, data: xr.Dataset) -> xr.Dataset:
        """Return a node whose attributes, and those of its variables, have their marks filled."""
        data = data.copy()
        data.attrs = {
            name: self.filled_json(value) for name, value in data.attrs.items()
        }
        for variable in data.variables.values():
            variable.attrs = {
                key: self.filled_json(value) for key, value in variable.attrs.items()
            }
        return data


OF_STEPS = Voice()
"""Of a run of training steps whose tokens are words, or that does not say what it counts."""
