"""Phrases of claims that stand alike, as the templates of `words.catalogue.sentences` take them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..claims import Claim, Kind, Reason
from ..claims.places import OF_TOKENS
from .catalogue.sentences import BEYOND, COUNTS, DAMAGES, NEEDED, REASONS, SINGLE
from .dated_phrases import DatedPhrases
from .formats import (
    from_to,
    joined,
    mid_sentence,
    number,
    plural,
    sentence_start,
    three_digits,
    value_range,
    values_words,
)
from .measured_phrases import RIVALS, MeasuredPhrases, beside_of, whole_number
from .rows import LAYERS, MEASURES
from .statements import Said
from .subjects import SHARES, Names
from .voice import Voice

# Claims of one row of the chart, which has a name of its own.
_OF_ROWS = (Kind.LEARNED, Kind.FORGOT, Kind.BEYOND_MOTION, Kind.CHANGED)
_MOST_NAMES = 3
_PLACED = (Kind.BEFORE,)  # whose templates name the layer


@dataclass(frozen=True)
class Phrases(MeasuredPhrases, DatedPhrases):
    """The phrases of claims of one kind and certainty on one quantity.

    Parameters
    ----------
    claims
        At least one; each of another layer or label.
    voice
        What places on the axis and tokens are called.
    names
        Of the page.
    """

    claims: Sequence[Claim]
    voice: Voice
    names: Names

    def filled(self, template: str, **given: str) -> str:
        """Return a template with the phrases that it asks for, some of them given."""
        return self.said(template, **given).text

    def said(self, template: str, **given: str) -> Said:
        """Return the same as a sentence on these claims."""
        asked = _Asked(self, given)
        text = template.format_map(asked)
        named = frozenset(name.lower() for name, phrase in asked.items() if phrase)
        return Said(text, tuple(self.claims), phrases=named)

    @property
    def first(self) -> Claim:
        """The first of the claims."""
        return self.claims[0]

    @property
    def subject(self) -> str:
        """Whose change it is, within a sentence."""
        if self._is_labelled:
            return mid_sentence(self.first.subject.label)
        title = self.names.title(self.first)
        layer = self.first.subject.layer
        alone = (
            len(self.claims) == 1
            and layer
            and self._rows < 2
            and self.first.kind not in _PLACED
        )
        return f"{title} of {self.names.layer(layer)}" if alone else title

    @property
    def is_(self) -> str:
        """Is or are, by the name of the quantity."""
        subject = self.first.subject
        is_several = (subject.node, subject.quantity) in self.names.several
        return "are" if is_several else "is"

    @property
    def Subject(self) -> str:
        """The same at the beginning of a sentence."""
        return sentence_start(self.subject)

    @property
    def title(self) -> str:
        """The label, or the subject where there is none."""
        return mid_sentence(self.first.subject.label) or self.subject

    @property
    def where(self) -> str:
        """In how many layers or runs, or for which labels."""
        if self.names.runs > 1:
            return f"{self._layers_of_runs()} in {self._of_runs()}"
        total = self._rows
        if total < 2 or (self._is_labelled and not self.first.subject.layer):
            return ""
        layers = [claim.subject.layer for claim in self.claims]
        if self._places == {("", "")}:
            return ""
        if len(self.claims) == 1 and layers[0]:
            return f" in {self.names.layer(layers[0])}"
        if len(layers) == total:
            return f" in {_all(total)} {self._kind}"
        count = f"{len(layers)} of {total} {self._kind}"
        if self._is_of_layers or not self.first.subject.label:
            return f" in {count}"
        return f" for {self.named} ({count})"

    @property
    def in_runs(self) -> str:
        """In how many runs, in however many layers."""
        return f" in {self._of_runs()}"

    @property
    def _is_labelled(self) -> bool:
        """Whether one row is told that has a name of its own, such as a class of words."""
        is_row = self.first.kind in _OF_ROWS
        return is_row and bool(self.first.subject.label) and len(self._places) == 1

    @property
    def _places(self) -> set[tuple[str, str]]:
        return {(claim.subject.layer, claim.subject.label) for claim in self.claims}

    @property
    def _rows(self) -> int:
        subject = self.first.subject
        return self.names.totals.get((subject.node, subject.quantity), 1)

    @property
    def _is_of_layers(self) -> bool:
        """Whether each of the rows is another layer."""
        layers = [(claim.subject.run, claim.subject.layer) for claim in self.claims]
        return all(layer for _, layer in layers) and len({*layers}) == len(layers)

    @property
    def _kind(self) -> str:
        subject = self.first.subject
        alone = LAYERS if self._is_of_layers else MEASURES
        return self.names.called.get((subject.node, subject.quantity), alone)

    def _of_runs(self) -> str:
        count = len({claim.subject.run for claim in self.claims})
        return f"{count} of {self.names.runs} runs"

    def _layers_of_runs(self) -> str:
        """Return in how many of its rows it holds in each run, such as " in 4–6 of 6 layers"."""
        if self._rows < 2 or self._is_labelled:
            return ""
        counts = Counter(claim.subject.run for claim in self.claims)
        if {*counts.values()} == {self._rows}:
            return f" in {_all(self._rows)} {self._kind}"
        return f" in {value_range(counts.values(), whole_number)} of {self._rows} {self._kind}"

    @property
    def count(self) -> str:
        """How many concepts or features are told."""
        one = SINGLE.get(self.first.subject.quantity, "concept")
        return plural(len(self.claims), one)

    @property
    def were(self) -> str:
        """The verb of one or several."""
        return "was" if len(self.claims) == 1 else "were"

    @property
    def named(self) -> str:
        """The first labels, and how many more there are."""
        labels = [f"“{claim.subject.label}”" for claim in self.claims]
        # Two of one name are two: one of them is named, and the other counts among the rest.
        shown = list(dict.fromkeys(labels))[:_MOST_NAMES]
        more = len(labels) - len(shown)
        return joined([*shown, *([f"{more:,} more"] if more else [])])

    @property
    def kind(self) -> str:
        """What happened, as the table of claims has it."""
        return self.first.kind.value

    @property
    def layer(self) -> str:
        """The layer in short."""
        return self.names.layer(self.first.subject.layer)

    @property
    def label(self) -> str:
        """The part of the subject that is told."""
        return self.called(self.first.subject.label)

    @property
    def held_against(self) -> str:
        """The null that a value is held against, or its label where none stands beside it."""
        first = self.first
        return self.called(self.names.null(first)) if first.beside else self.label

    @property
    def damage(self) -> str:
        """What is wrong with a checkpoint."""
        label = self.first.subject.label
        return self.voice.fill(DAMAGES.get(label, label))

    @property
    def next_layer(self) -> str:
        """Of an order the layer that came later."""
        return self.names.layer(self.first.beside[0].name)

    @property
    def verb(self) -> str:
        """In which direction they went."""
        changes = [claim.last - claim.first for claim in self.claims]
        if all(change > 0 for change in changes):
            return "rose"
        return "fell" if all(change < 0 for change in changes) else "changed"

    @property
    def beyond(self) -> str:
        """Whether they went farther than control runs, or otherwise."""
        return BEYOND[all(map(_goes_farther, self.claims))]

    @property
    def ends(self) -> str:
        """From what to what, with units."""
        firsts = [claim.first for claim in self.claims]
        lasts = [claim.last for claim in self.claims]
        if self.first.kind in SHARES:
            return f"{_percent(firsts[0])} to {_percent(lasts[0])}"
        if len(self.claims) > 1:
            return from_to(firsts, lasts, self.voice.fill(self.first.units) or "1")
        return self._in_units(f"from {values_words(firsts[0], lasts[0])}")

    def _in_units(self, number: str) -> str:
        return f"{number} {self._units}".rstrip()

    @property
    def _units(self) -> str:
        units = self.voice.fill(self.first.units)
        return "" if units in ("", "1") else units

    @property
    def controls(self) -> str:
        """By how much control runs changed, or how many they have, in brackets."""
        return f" (controls {self.changes})" if self.changes else ""

    @property
    def changes(self) -> str:
        """By how much control runs changed, or how many they have."""
        beside = (beside_of(claim, "control") for claim in self.claims)
        values = [one.value for one in chain.from_iterable(beside)]
        known = list(filter(math.isfinite, values))
        if not known:
            return ""
        if self.first.kind in COUNTS:
            return value_range(known, whole_number)
        least = max(map(abs, known)) / 1000  # smaller ones are written as 0
        signed = [value if abs(value) > least else 0.0 for value in known]
        return value_range(signed, _signed, " to ")

    @property
    def value(self) -> str:
        """The size of what happened."""
        claim = self.first
        if not claim.units and claim.value == round(claim.value):
            return f"{claim.value:,.0f}"
        noise = (claim.high - claim.low) / 2
        is_known = math.isfinite(noise)
        value = number(claim.value, noise) if is_known else three_digits(claim.value)
        return self._in_units(value.replace("-", "−"))

    @property
    def values(self) -> str:
        """Of several the range of their last values."""
        return self._in_units(value_range(claim.last for claim in self.claims))

    @property
    def beside(self) -> str:
        """What it was judged against."""
        references = (beside_of(claim, *RIVALS) for claim in self.claims)
        values = [one.value for one in chain.from_iterable(references)]
        return value_range(values) if values else "not known"

    @property
    def levels(self) -> str:
        """In brackets what chance and other ways of answering reach."""
        named = [
            f"{one.name}{' up to' if one.role == 'null' else ''} {_percent(one.value)}"
            for one in beside_of(self.first, *RIVALS)
        ]
        return f" ({joined(named)})" if named else ""

    @property
    def direction(self) -> str:
        """The direction that is removed or added; a label may name examples behind it."""
        parts = beside_of(self.first, "part")
        return parts[0].name if parts else self.first.subject.label

    @property
    def what(self) -> str:
        """What a direction was asked of: the loss, or a group of examples."""
        named = beside_of(self.first, "reference")
        return f"“{named[0].name}”" if named else "the loss"

    @property
    def null(self) -> str:
        """The largest of the nulls, and what that is."""
        nulls = beside_of(self.first, "null")
        if not nulls:
            return "no null"
        largest = max(nulls, key=lambda b: b.value)
        return f"{largest.name} ({largest.value:.3g})"

    @property
    def last(self) -> str:
        """The last value, as a share."""
        return _percent(self.first.last)

    @property
    def measured(self) -> str:
        """The last value, with units."""
        return self._in_units(f"{self.first.last:.3g}".replace("-", "−"))

    @property
    def known(self) -> str:
        """How much of a set of texts is known in the end: right answers, or what they cost."""
        if self.first.units != "1":
            return self.ends
        whole = f"{self.last} right in the end"
        of_tokens = [of for of in self.first.beside if of.name == OF_TOKENS]
        return (
            f"{whole} ({_percent(of_tokens[0].value)} of {OF_TOKENS})"
            if of_tokens
            else whole
        )

    @property
    def reason(self) -> str:
        """Why it is open."""
        reasons = dict.fromkeys(claim.reason for claim in self.claims)
        return joined([self._reason(reason) for reason in reasons if reason])

    def _reason(self, reason: Reason) -> str:
        needed = [
            c.needed
            for c in self.claims
            if c.reason is reason and math.isfinite(c.needed)
        ]
        would_do = NEEDED.format(needed=f"{max(needed):,.0f}") if needed else ""
        return REASONS[reason].format(word=self.voice.word, needed=would_do)


class _Asked(dict[str, str]):
    """Phrases by their names in a template, each made when it is asked for."""

    def __init__(self, phrases: Phrases, given: Mapping[str, str]) -> None:
        voice = phrases.voice
        words = {"word": voice.word, "token": voice.token}
        super().__init__({**words, "checkpoint": voice.checkpoint, **given})
        self._phrases = phrases

    def __missing__(self, name: str) -> str:
        one, _, several = name.partition("|")
        if several:
            return one if self._phrases.is_one else several
        self[name] = str(getattr(self._phrases, name))
        return self[name]


def _all(count: int) -> str:
    return "both" if count == 2 else f"all {count:,}"


def _signed(value: float) -> str:
    return f"{value:+.2g}" if value else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _goes_farther(claim: Claim) -> bool:
    """Return whether no control run goes as far in the same direction.

    The learned share of three seeds rose by .12 to .15 and that of their controls by .28 to .46:
    they differed by when it rose, which "beyond" says wrongly.
    """
    change = claim.last - claim.first
    others = [one.value for one in beside_of(claim, "control")]
    return not any(other * change > 0 and abs(other) >= abs(change) for other in others)
