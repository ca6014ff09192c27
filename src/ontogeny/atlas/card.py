"""One concept of a result: a card that can be read, shown and passed on."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from ..report.concepts.facts import Facts
from .html import concept_card
from .terminal import as_text, concept_lines
from .words import prompt_of


@dataclass(frozen=True, repr=False)
class Concept(Facts):
    """One concept of one layer at one step; see `ontogeny.atlas.ConceptAccessor`.

    Printed, it is a card of text; in a notebook it is a card of HTML. Its attributes are those of
    `ontogeny.atlas.Facts`.
    """

    def __repr__(self) -> str:
        return as_text(concept_lines(self))

    def __rich__(self) -> Any:
        return concept_lines(self)

    def _repr_html_(self) -> str:
        return concept_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold; numbers that are not known are None."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    def prompt(self) -> str:
        """Return a text that asks a language model for a description of the concept.

        Nothing here sends it anywhere. It holds the contexts, with the code of every token from 0
        to 9, and the strongest tokens.
        """
        return prompt_of(self)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
