"""Phrases of when: the steps of claims, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..claims import Claim, Kind
from .catalogue.sentences import HALF
from .formats import fine_step, interval_text, value_range
from .subjects import Names
from .voice import Voice


class DatedPhrases:
    """What templates of `words.catalogue.sentences` ask for of steps, of claims that stand alike."""

    claims: Sequence[Claim]
    voice: Voice
    names: Names

    @property
    def dates(self) -> str:
        """Since when it holds of the first and of the last of them."""
        steps = [claim.since for claim in self.claims if math.isfinite(claim.since)]
        return f" by {self.voice.unit} {value_range(steps, fine_step)}" if steps else ""

    @property
    def half(self) -> str:
        """When half of the change was over."""
        steps = [claim.since for claim in self.claims if math.isfinite(claim.since)]
        if not steps:
            return ""
        if len(steps) > 1:
            return f"{HALF} {self.voice.unit} {value_range(steps, fine_step)}"
        return f"{HALF} {self._dated(self.claims[0])}"

    @property
    def since(self) -> str:
        """From which step on it holds."""
        claim = self.claims[0]
        if not math.isfinite(claim.since):
            return ""
        if claim.kind in (Kind.GAINS_FROM, Kind.BORN):
            return f" by {self._dated(claim)}"
        if claim.kind is Kind.RISES_AGAIN:
            return f" at {self._dated(claim)}"
        if claim.kind is Kind.ABOVE_CHANCE and claim.since <= self.names.first_step:
            return f" at every {self.voice.checkpoint}"
        return f" from {self._dated(claim)}"

    @property
    def at(self) -> str:
        """At which step it is so."""
        claim = self.claims[0]
        return f" at {self._dated(claim)}" if math.isfinite(claim.since) else ""

    @property
    def dated(self) -> str:
        """The step with its interval."""
        return self._dated(self.claims[0])

    @property
    def begin(self) -> str:
        """The step from which on it holds, without its interval: of headings, which are short."""
        return f"{self.voice.unit} {fine_step(self.claims[0].since)}"

    def _dated(self, claim: Claim) -> str:
        """Return a step with its interval: ``step 127 (108–135)``."""
        spread = interval_text(claim.since_low, claim.since_high)
        step = f"{self.voice.unit} {fine_step(claim.since)}"
        return f"{step} ({spread})" if spread else step

    @property
    def step(self) -> str:
        """The step that it is about."""
        step = self.claims[0].subject.step
        if not math.isfinite(step):
            return f"an unknown {self.voice.unit}"
        return f"{self.voice.unit} {fine_step(step)}"

    @property
    def next_step(self) -> str:
        """Of an order the step of the layer that came later."""
        return fine_step(self.claims[0].last)
