"""Phrases of numbers that observables claim: the number, its whole, and what stands beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..claims import Beside, Claim
from .catalogue.sentences import LABELS
from .formats import first_of, joined, three_digits, value_range
from .voice import Voice

_MOST_PARTS = 3
RIVALS = ("null", "reference")
_LABELS = ("{label}", "{damage}", "{direction}")
# What must stand beside a claim whose template asks for these.
_ASKED = {"{whole}": ("whole",), "{chance}": RIVALS, "{own}": RIVALS, "{other}": RIVALS}


def beside_of(claim: Claim, *roles: str) -> list[Beside]:
    """Return what stands beside a claim in some roles."""
    return [beside for beside in claim.beside if beside.role in roles]


def can_fill(template: str, claim: Claim) -> bool:
    """Return whether a claim has what a template asks for.

    Observables of others may have variables of the same name and other things beside them.
    """
    asked = [roles for phrase, roles in _ASKED.items() if phrase in template]
    is_called = bool(claim.subject.label) or not any(one in template for one in _LABELS)
    return is_called and all(beside_of(claim, *roles) for roles in asked)


class MeasuredPhrases:
    """What templates of `ontogeny.words.measured` ask for, of claims that stand alike."""

    claims: Sequence[Claim]
    voice: Voice

    @property
    def number(self) -> str:
        """The number in its units."""
        return self._written(self.claims[0].last)

    @property
    def number_first(self) -> str:
        """The same at the first step."""
        return self._written(self.claims[0].first)

    @property
    def interval(self) -> str:
        """The number, with the range of several in brackets."""
        first = self.claims[0]
        if not math.isfinite(first.low):
            return self.number
        low, high = map(self._written, (first.low, first.high))
        return f"{self.number} ({low} to {high})"

    @property
    def whole(self) -> str:
        """Of how many it is a part."""
        return whole_number(beside_of(self.claims[0], "whole")[0].value)

    @property
    def of_whole(self) -> str:
        """The same behind the number, where it is a part."""
        return f" of {self.whole}" if beside_of(self.claims[0], "whole") else ""

    @property
    def chance(self) -> str:
        """What chance or a reference gives."""
        return self._null_of(self.claims[0])

    @property
    def own(self) -> str:
        """The value of the run that belongs to what stands beside it."""
        return self._written(beside_of(self.claims[0], *RIVALS)[0].own)

    @property
    def other(self) -> str:
        """The name of what stands beside it."""
        names = [beside.name for beside in beside_of(self.claims[0], *RIVALS)]
        return self.called(names[0] if names else "the others")

    def called(self, label: str) -> str:
        """Return a label of a claim in words."""
        return self.voice.fill(LABELS.get(label, label))

    @property
    def against(self) -> str:
        """In brackets all that stands beside it, control runs as one."""
        claim = self.claims[0]
        named = [
            f"{beside.name} {self._written(beside.value)}"
            for beside in beside_of(claim, *RIVALS)
        ]
        controls = [beside.value for beside in beside_of(claim, "control")]
        if any(map(math.isfinite, controls)):
            named.append(f"controls {value_range(controls, self._written, ' to ')}")
        return f" ({'; '.join(named)})" if named else ""

    @property
    def parts(self) -> str:
        """Behind a colon what it counts, the first of many."""
        names = [f"“{beside.name}”" for beside in beside_of(self.claims[0], "part")]
        return f": {joined(first_of(names, _MOST_PARTS))}" if names else ""

    @property
    def list(self) -> str:
        """What it counts as it was written, the first of many."""
        names = [part.name for part in beside_of(self.claims[0], "part")]
        return "; ".join(first_of(names, _MOST_PARTS))

    @property
    def is_one(self) -> bool:
        """Whether the number counts one thing."""
        first = self.claims[0]
        count = first.value if math.isnan(first.last) else first.last
        return count == 1 and not self._is_share

    @property
    def each(self) -> str:
        """Each label with its number and what chance gives."""
        return joined([self._each(claim) for claim in self.claims])

    def _each(self, claim: Claim) -> str:
        text = f"{self._written(claim.last)} with {claim.subject.label}"
        is_beside = bool(beside_of(claim, *RIVALS))
        return f"{text} (by chance {self._null_of(claim)})" if is_beside else text

    def _null_of(self, claim: Claim) -> str:
        values = [beside.value for beside in beside_of(claim, *RIVALS)]
        percent = " %" if self._is_share else ""
        return f"{value_range(values, self._bare, ' to ')}{percent}"

    @property
    def _is_share(self) -> bool:
        return self.claims[0].units == "1"

    def _written(self, value: float) -> str:
        """Return a number in the units of the claims: a share, a count or a value."""
        units = "%" if self._is_share else self.voice.fill(self.claims[0].units)
        return " ".join(filter(None, [self._bare(value), units]))

    def _bare(self, value: float) -> str:
        """Return a number without its units; of shares below a tenth with a digit more."""
        if self._is_share:
            return f"{100 * value:.2g}" if abs(value) < 0.1 else f"{100 * value:.0f}"
        text = whole_number(value) if value == round(value) else three_digits(value)
        return text.replace("-", "−")


def whole_number(value: float) -> str:
    """Return a number without decimals."""
    return f"{value:,.0f}"
