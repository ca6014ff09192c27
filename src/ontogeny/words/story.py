"""What a page says first under its heading: a few sentences, chosen from its claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..claims import Certainty, Claim, Kind, Reason, Reference
from ..control_kinds import kind_of
from .abilities import example_of
from .basis import is_over_page
from .catalogue.page import BY_CHANCE, CONTROLS, LOSS, NO_LOSS
from .catalogue.sentences import EXAMPLES
from .content import Content
from .formats import joined, plural, sentence_start
from .headings import Headings
from .known_texts import OF_SETS, sentences_of_sets
from .labels import truncate
from .selection import LINES, MOVED, NAMED, ONLY, counted
from .sentences import OF_ROWS, left_of, standing_claims
from .statements import Said

_LONGEST = 60  # characters of an example on the first screen
_OF_MODEL = tuple(LINES.values())


@dataclass(frozen=True)
class Line:
    """One line of the first screen: what matters first, in bold where it is sure.

    ``link`` is the place of the page that shows it. ``direction`` is where the loss went, of the
    line that says so. ``said`` is the sentence that it is, where it is one on claims. A ``note`` is
    no finding, and has no number.
    """

    lead: str
    text: str = ""
    link: str = ""
    direction: str = ""
    said: Said | None = None
    note: bool = False
    sure: bool = True


def line_of(
    content: Content, one: Said, heading: Said, further: Iterable[str] = ()
) -> Line | None:
    """Return a sentence as a line, with its date and further ones behind it.

    What a heading says of the same claims is said no second time; None where nothing is left.
    """
    link = content.link(one.claims[0])
    left = left_of(one, heading, content.spoken, content.names)
    if left is None:
        text = " ".join(filter(None, [one.rest, *further]))
        return Line(one.lead, text, link, said=one, sure=one.is_sure)
    left += further
    if not left:
        return None
    return Line(left[0], " ".join(left[1:]), link, sure=one.is_sure)


class Story(Headings):
    """The heading and the sentences on one run, or on one model."""

    def lines(self) -> list[Line]:
        """Return the sentences of the first screen that are made of claims."""
        lines = [
            self._without_loss(),
            *self._in_order(self._of_known_texts(), self._of_loss()),
            *self._of_further_losses(),
            self._of_record(),
            *self._of_performance(),
            self._of_changes() or self._of_abilities(),
        ]
        if not self.content.one_model:
            lines.append(self._of_rows())
        return [line for line in lines if line is not None]

    def _without_loss(self) -> Line | None:
        """Say why there is no loss: what a page says without one is half of what was asked."""
        why = self.content.left_out.get(LOSS)
        return None if why is None else Line(NO_LOSS, f"{why.rstrip('.')}.", "#verdict")

    def _of_known_texts(self) -> Line | None:
        """Say since when training texts and held-out ones are known."""
        told = sentences_of_sets(self.every, self.content.spoken, self.content.names)
        if not told:
            return None
        text = " ".join(one.text for one in told[1:])
        link = self.content.link(told[0].claims[0])
        return Line(told[0].text, text, link, sure=told[0].is_sure)

    def _in_order(self, *lines: Line | None) -> Iterator[Line | None]:
        """Give what is known of both sets of texts before the loss, where any of it is sure."""
        yield from lines if self.sure(*OF_SETS) else reversed(lines)

    def _of_record(self) -> Line | None:
        """Say that the loss is far from what the run wrote down.

        Where training texts are measured as well, these answer to a training loss.
        """
        known = any(claim.kind in OF_SETS for claim in self.every)
        far = [
            claim
            for claim in self.sure(Kind.FAR_FROM_RECORD)
            if not (known and claim.subject.label == "training")
        ]
        return self._line(self.said(far[0])) if far else None

    def _of_loss(self) -> Line | None:
        """Say what became of the loss, and what it passed."""
        standing = self.standing_loss
        further = [*self._of_context(), *map(self.said, self.sure(Kind.RISES_AGAIN))]
        further += map(self.said, self.renamed)
        further += map(self.said, self.sure(Kind.IN_CONTEXT))
        texts = [one.text for one in further]
        if self.content.one_model:
            passed = [
                claim
                for claim in self.sure(Kind.PASSES)
                if claim.subject.label in LINES
            ]
            if not passed:
                return self._only_further(further)
            return self._line(self.said(passed[-1]), texts)
        if standing is None:
            return None
        learned = self.loss.get(Kind.LEARNED)
        chosen = standing
        if learned is not None and learned.reason not in (None, Reason.NO_GAIN):
            spoken, names = self.content.spoken, self.content.names
            left = left_of(self.said(learned), self.heading, spoken, names)
            is_moved = standing.kind is Kind.BEYOND_MOTION
            if learned.reason in ONLY or (is_moved and left is None):
                chosen = learned
            elif learned.certainty is Certainty.OPEN:
                texts = [*(left or ()), *texts]
        side = {"fell": "falls", "rose": "rises"}.get(self.phrase(standing).verb, "")
        line = self._line(self.said(chosen), texts)
        return None if line is None else replace(line, direction=side)

    def _of_further_losses(self) -> Iterator[Line | None]:
        """Say what became of the loss on each further set of texts."""
        for claim in standing_claims(self.further):
            if claim.kind in OF_ROWS:
                yield self._line(self.said(claim))

    def _line(self, one: Said, further: Iterable[str] = ()) -> Line | None:
        return line_of(self.content, one, self.heading, further)

    def _only_further(self, further: Sequence[Said]) -> Line | None:
        """Return the first of some sentences as a line, with the others behind it."""
        texts = [one.text for one in further[1:]]
        return self._line(further[0], texts) if further else None

    def _of_performance(self) -> Iterator[Line | None]:
        """Say what else was learned or forgotten, where no loss says so: answers or labels."""
        if not self.loss:
            for claim in self.sure(Kind.LEARNED, Kind.FORGOT)[:NAMED]:
                yield self._line(self.said(claim))

    @property
    def renamed(self) -> list[Claim]:
        """What renamed texts cost, where that was measured."""
        return [
            c for c in self.sure(Kind.DIFFERS) if c.subject.label == Reference.RENAMED
        ]

    def _of_context(self) -> Iterator[Said]:
        """Say since when the loss is below the strongest use of context that is sure."""
        passed = {claim.subject.label: claim for claim in self.sure(Kind.PASSES)}
        for label in _OF_MODEL:
            if label in passed:
                yield self.said(passed[label])
                return
        tested = [
            c
            for c in self.every
            if c.kind is Kind.PASSES and c.subject.label in _OF_MODEL
        ]
        yield from map(self.said, tested[:1])

    def _of_changes(self) -> Line | None:
        """Say what became of abilities since a base, or on their own items."""
        changes = self.sure(Kind.LOST, Kind.GAINED, Kind.CHANGED_ON_ITEMS)
        if not changes:
            return None
        texts = [self.said(claim).text for claim in changes]
        more = f"{len(texts) - NAMED:,} more changed." if len(texts) > NAMED else ""
        able = self._of_abilities()
        rest = f"{able.lead} {able.text}" if able else ""
        text = " ".join(filter(None, [*texts[1:NAMED], more, rest]))
        return Line(texts[0], text, self.content.link(changes[0]))

    def _of_abilities(self) -> Line | None:
        """Say how many abilities are above chance, and which is best."""
        count = self.able_words()
        if count is None:  # a zero is told in its section
            return None
        best = max(count.claims, key=lambda claim: claim.last)
        text = " ".join(filter(None, [self.said(best).text, self._example(best)]))
        return Line(f"{count.text}.", text, self.content.link(best))

    def _example(self, claim: Claim) -> str:
        """Return an example of an ability; empty where the result keeps none."""
        node = next(n for n in self.content.nodes if n.path == claim.subject.node)
        texts = [
            truncate(text, _LONGEST)
            for text in example_of(node.dataset, claim.subject.label)
        ]
        if not texts:
            return ""
        return EXAMPLES["pair" if len(texts) > 1 else "answer"].format(
            right=texts[0], wrong=texts[-1]
        )

    def _of_rows(self) -> Line | None:
        """Say how many other rows changed, and which layer did first."""
        rows = [c for c in self.rows if not self.content.is_loss(c)]
        orders = self.sure(Kind.BEFORE)
        noun = "measure" if len(rows) == len(self.rows) else "other measure"
        some = counted(rows, MOVED, noun)
        if some is None:
            return self._line(self.said(orders[0])) if orders else None
        order = self.said(orders[0]).text if orders else ""
        level = self.content.levels.control
        if some.is_sure and math.isfinite(level) and is_over_page(self.content):
            text = some.text + BY_CHANCE.format(level=f"{100 * level:g} %")
            some = replace(some, text=text, phrases=frozenset({"level"}))
        return Line(f"{some.text}.", order, "#chart", said=some, sure=some.is_sure)

    def of_controls(self) -> Line | None:
        """Say what control runs do; by how much the loss changes in them stands beside the run's."""
        runs = self.content.controls
        if not runs:
            return None
        forms = [CONTROLS.get(kind_of(run), CONTROLS[""]) for run in runs]
        kinds = [
            f"{one if len(runs) == 1 else several} {what}"
            for one, several, what in dict.fromkeys(forms)
        ]
        lead = f"{sentence_start(plural(len(runs), 'control run'))} {kinds[0]}."
        told = []
        if len(kinds) > 1:
            lead = f"{sentence_start(plural(len(runs), 'control run'))} of {len(kinds)} kinds."
            told = [f"They {joined(kinds, ' or ')}."]
        claim = self.loss.get(Kind.BEYOND_MOTION)
        link = "#verdict" if claim is None else self.content.link(claim)
        return Line(lead, " ".join(told), link, note=True)
