"""What a page says first, chosen from its claims: a heading, and a few sentences under it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..claims import Certainty, Claim, Kind, Reason
from ..claims.places import answered, learned_places
from .catalogue import CONTROLS, HEADINGS, MOST_WORDS
from .content import Content
from .control_kinds import kind_of
from .formats import joined, plural, sentence_start, value_range
from .phrases import Phrases
from .sentences import OF_ROWS, Said, reproduced, said, standing_claims

MOST = 4  # sentences on the first screen
_NAMED = 2
# No learning moved the loss.
_ONLY = (Reason.SURER, Reason.LESS_SURE, Reason.PREFERENCES)
_OF_MODEL = ("its own bigrams", "its own word frequencies")
_LINES = ("bigrams", "word frequencies")


@dataclass(frozen=True)
class Line:
    """One line of the first screen: what matters in bold, and what it rests on.

    ``link`` is the place of the page that shows it. ``direction`` is where the loss went, of the
    line that says so.
    """

    lead: str
    text: str = ""
    link: str = ""
    direction: str = ""


class Story:
    """What the claims of one run, or of one model, come to.

    Parameters
    ----------
    content
        Of the page.
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        self.every = [claim for claim in content.claims if not claim.subject.run]
        self.standing = standing_claims(self.every)

    # Selections.

    def sure(self, *kinds: Kind) -> list[Claim]:
        """Return the sure claims of some kinds."""
        return [
            c for c in self.every if c.kind in kinds and c.certainty is Certainty.SURE
        ]

    @property
    def loss(self) -> dict[Kind, Claim]:
        """The claims on the row of the loss, by kind; none where it was not measured."""
        node = self.content.track_node
        if node is None:
            return {}
        of_row = [
            c for c in self.every if c.subject.node == node.path and c.kind in OF_ROWS
        ]
        return {claim.kind: claim for claim in reversed(of_row)}

    @property
    def able(self) -> list[Claim]:
        """The claims of abilities to be above chance."""
        return [claim for claim in self.every if claim.kind is Kind.ABOVE_CHANCE]

    @property
    def rows(self) -> list[Claim]:
        """What is said of each row of the chart."""
        return [claim for claim in self.standing if claim.kind in OF_ROWS]

    def said(self, *claims: Claim) -> Said:
        """Return the sentence on claims that stand alike."""
        return said(claims, self.content.spoken, self.content.names)

    def phrase(self, claim: Claim) -> Phrases:
        """Return the phrases of one claim."""
        return Phrases([claim], self.content.spoken, self.content.names)

    # The heading.

    def heading(self) -> str:
        """Return what matters most, in at most twelve words."""
        texts = filter(None, self._headings())
        text = next(text for text in texts if len(text.split()) <= MOST_WORDS)
        return sentence_start(text) + self.content.doubted

    def _headings(self) -> Iterator[str]:
        yield reproduced(self.every)
        if self.content.one_model:
            yield self._better_than()
            yield HEADINGS["one model"]
        yield self._of_sets()
        if self.content.based:
            yield from map(self._since_base, (_NAMED, 1, 0))
        yield self._of_places()
        yield self._learned()
        yield from self._loss_is_open()
        yield self._able()
        yield self._rows()
        yield HEADINGS["untested"]

    def _better_than(self) -> str:
        """Return the strongest reference that the loss is surely below."""
        passed = {c.subject.label: c for c in self.sure(Kind.PASSES)}
        tested = [
            c for c in self.every if c.kind is Kind.PASSES and c.subject.label in _LINES
        ]
        for label in _LINES:
            own = f"its own {label}"
            if label in passed and own in passed:
                return self.phrase(passed[label]).filled(HEADINGS["better"])
        return self.phrase(tested[0]).filled(HEADINGS["not better"]) if tested else ""

    def _of_sets(self) -> str:
        """Return since when the training texts are known, and since when others."""
        memorised = self.sure(Kind.MEMORISED)
        generalises = self.sure(Kind.GENERALISES)
        if memorised and generalises:
            other = self.phrase(generalises[0]).date
            text = HEADINGS["both sets"].replace("{other}", other)
            return self.phrase(memorised[0]).filled(text)
        for claims, key in ((generalises, "generalises"), (memorised, "memorised")):
            if claims:
                return self.phrase(claims[0]).filled(HEADINGS[key])
        return ""

    def _of_places(self) -> str:
        """Return what was learned at one place of the texts, where the mean loss hides it."""
        right = [
            c for c in answered(self.every) if c.subject.quantity == "place_accuracy"
        ]
        if right:
            best = max(right, key=lambda claim: claim.last)
            return self.phrase(best).filled(HEADINGS["answered"])
        learned = [c for c in learned_places(self.every) if c.kind is Kind.LEARNED]
        return self.phrase(learned[0]).filled(HEADINGS["place"]) if learned else ""

    def _since_base(self, named: int) -> str:
        """Return what further training gained and lost, with so many names of each."""
        gained = [self.phrase(c).subject for c in self.sure(Kind.GAINED)]
        lost = [self.phrase(c).subject for c in self.sure(Kind.LOST)]
        parts = []
        if gained:
            parts.append(HEADINGS["gained"].format(gained=_some(gained, named)))
        if lost:
            parts.append(HEADINGS["lost"].format(lost=_some(lost, named)))
        if len(parts) < 2:
            parts.insert(0, self._learned())
        if any(parts):
            return "; ".join(filter(None, parts))
        return next(filter(None, self._loss_is_open()), HEADINGS["none gained"])

    def _learned(self) -> str:
        forgot = self.sure(Kind.FORGOT)
        if forgot:
            return self.phrase(forgot[0]).filled(HEADINGS["forgot"])
        learned = [claim for claim in self.standing if claim.kind is Kind.LEARNED]
        learned = [claim for claim in learned if claim.certainty is Certainty.SURE]
        track = self.content.track_node
        learned.sort(
            key=lambda claim: track is None or claim.subject.node != track.path
        )
        names = list(
            dict.fromkeys(self.content.names.title(claim) for claim in learned)
        )
        if len(names) == _NAMED:
            return HEADINGS["learned both"].format(names=joined(names))
        if len(names) > _NAMED:
            return HEADINGS["learned several"].format(count=len(names))
        if not learned:
            return ""
        return self._gains() or self.phrase(learned[0]).filled(HEADINGS["learned"])

    def _gains(self) -> str:
        """Return what the loss gained from, in order where their steps are apart."""
        gains = sorted(self.sure(Kind.GAINS_FROM), key=lambda claim: claim.since_high)
        passed = {claim.subject.label for claim in self.sure(Kind.PASSES)}
        if not gains or gains[0].subject.label != "frequencies":
            return ""
        if (
            self.content.based
            or not {"word frequencies", "its own word frequencies"} <= passed
        ):
            return ""
        words = [self.phrase(claim).label for claim in gains]
        in_order = all(a.since_high <= b.since_low for a, b in pairwise(gains))
        if not in_order or len(gains) < 2:
            return HEADINGS["learned in order"].format(gains=joined(words))
        text = f"{words[0]} first, then {joined(words[1:])}"
        return HEADINGS["learned in order"].format(gains=text)

    def _loss_is_open(self) -> Iterator[str]:
        """Give what became of a loss that is not shown to be learned, with and without reason."""
        loss = self.loss
        if not loss:
            return
        standing = next(
            c for c in self.standing if c.subject == loss[Kind.CHANGED].subject
        )
        learned = loss.get(Kind.LEARNED, standing)
        if learned.reason is Reason.NO_GAIN:
            learned = standing
        only = learned.reason in _ONLY
        if standing.kind is Kind.CHANGED and not only:
            yield from self._unchanged(standing)
        elif only or learned.certainty is Certainty.SURE or not self.able_count:
            yield from self._moved(learned)

    def _moved(self, claim: Claim) -> Iterator[str]:
        """Give how a loss moved, and what is open about that, at last without the reason."""
        if claim.reason in _ONLY:
            yield self.phrase(claim).filled(HEADINGS["only"])
        key = "fell" if claim.kind is Kind.LEARNED else "moved"
        keys = {
            Certainty.OPEN: (key, f"{key}, open"),
            Certainty.NOT_TESTED: (f"{key}, not tested",),
            Certainty.AS_CONTROLS: ("as controls",),
        }
        texts = [HEADINGS[each] for each in keys.get(claim.certainty, ())]
        yield from map(self.phrase(claim).filled, [*texts, "{Subject} {verb}"])

    def _unchanged(self, standing: Claim) -> Iterator[str]:
        """Give what is said of a loss whose change is not shown."""
        if standing.reason is Reason.FEW_CHECKPOINTS:
            count = plural(len(self.content.steps), "checkpoint")
            yield HEADINGS["too few"].format(count=count)
        yield self._better_at_end()
        yield self.said(standing).text.rstrip(".")
        yield self.phrase(standing).filled(HEADINGS["change open"])

    def _better_at_end(self) -> str:
        passed = {claim.subject.label for claim in self.sure(Kind.PASSES)}
        both = any(label in passed and f"its own {label}" in passed for label in _LINES)
        return self._better_than() if both else ""

    @property
    def able_count(self) -> int:
        """How many abilities are above chance."""
        return sum(claim.certainty is Certainty.SURE for claim in self.able)

    def _able(self) -> str:
        if not self.able_count:
            return ""
        abilities = plural(len(self.able), "ability")
        are = "is" if len(self.able) == 1 else "are"
        return HEADINGS["able"].format(
            some=self.able_count, abilities=abilities, are=are
        )

    def _rows(self) -> str:
        """Return how many rows changed, by the strongest that can be said of them."""
        rows = self.rows
        if not rows:
            return HEADINGS["untested"]
        for key, kind, certainties in (
            ("beyond", Kind.BEYOND_MOTION, (Certainty.SURE,)),
            ("changed", Kind.BEYOND_MOTION, (Certainty.NOT_TESTED,)),
            (
                "changed open",
                Kind.BEYOND_MOTION,
                (Certainty.OPEN, Certainty.AS_CONTROLS),
            ),
        ):
            some = [c for c in rows if c.kind is kind and c.certainty in certainties]
            if some:
                return HEADINGS[key].format(
                    some=f"{len(some):,}", rows=plural(len(rows), "row")
                )
        if all(claim.reason is Reason.FEW_CHECKPOINTS for claim in rows):
            count = plural(len(self.content.steps), "checkpoint")
            return HEADINGS["too few"].format(count=count)
        return HEADINGS["nothing"]

    # The sentences.

    def lines(self) -> list[Line]:
        """Return the sentences of the first screen that are made of claims."""
        lines = [
            self._of_loss(),
            *self._of_performance(),
            self._of_changes(),
            self._of_abilities(),
        ]
        if not self.content.one_model:
            lines.append(self._of_rows())
        return [line for line in lines if line is not None]

    def _of_loss(self) -> Line | None:
        """Say what became of the loss, and what it passed."""
        loss = self.loss
        further = [*self._of_context(), *map(self.said, self.sure(Kind.RISES_AGAIN))]
        further += map(self.said, self.renamed)
        text = " ".join(one.text for one in further)
        if self.content.one_model:
            passed = [
                claim
                for claim in self.sure(Kind.PASSES)
                if claim.subject.label in _LINES
            ]
            if not passed:
                return self._only_further(further)
            return self._line(self.said(passed[-1]), text)
        if not loss:
            return None
        standing = next(
            c for c in self.standing if c.subject == loss[Kind.CHANGED].subject
        )
        chosen = standing
        learned = loss.get(Kind.LEARNED)
        is_moved = standing.kind is Kind.BEYOND_MOTION
        is_why = learned is not None and learned.reason not in (None, Reason.NO_GAIN)
        if learned is not None and is_why and (is_moved or learned.reason in _ONLY):
            chosen = learned
        side = {"fell": "falls", "rose": "rises"}.get(self.phrase(standing).verb, "")
        return replace(self._line(self.said(chosen), text), direction=side)

    def _line(self, one: Said, further: str = "") -> Line:
        """Return a sentence as a line, with its date and further ones behind it."""
        text = " ".join(filter(None, [one.rest, further]))
        return Line(one.lead, text, self.content.link(one.claims[0]))

    def _only_further(self, further: Sequence[Said]) -> Line | None:
        """Return the first of some sentences as a line, with the others behind it."""
        text = " ".join(one.text for one in further[1:])
        return self._line(further[0], text) if further else None

    def _of_performance(self) -> Iterator[Line]:
        """Say what else was learned or forgotten, where no loss says so: answers or labels."""
        if not self.loss:
            for claim in self.sure(Kind.LEARNED, Kind.FORGOT)[:_NAMED]:
                yield self._line(self.said(claim))

    @property
    def renamed(self) -> list[Claim]:
        """What renamed texts cost, where that was measured."""
        return [
            c for c in self.sure(Kind.DIFFERS) if c.subject.label == "renamed words"
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
        more = f"{len(texts) - _NAMED:,} more changed." if len(texts) > _NAMED else ""
        text = " ".join(filter(None, [*texts[1:_NAMED], more]))
        return Line(texts[0], text, self.content.link(changes[0]))

    def _of_abilities(self) -> Line | None:
        """Say how many abilities are above chance, and which is best."""
        above = [claim for claim in self.able if claim.certainty is Certainty.SURE]
        if not above:  # a zero is told in its section
            return None
        best = max(
            above, key=lambda claim: (math.isfinite(claim.low), claim.low, claim.last)
        )
        return Line(f"{self._able()}.", self.said(best).text, self.content.link(best))

    def _of_rows(self) -> Line | None:
        """Say how many other rows changed, and which layer did first."""
        track = self.content.track_node
        rows = [c for c in self.rows if track is None or c.subject.node != track.path]
        orders = self.sure(Kind.BEFORE)
        order = self.said(orders[0]).text if orders else ""
        counts = dict.fromkeys(("beyond", "changed", "changed open"), 0)
        for claim in rows:
            if claim.kind is Kind.BEYOND_MOTION:
                key = {Certainty.SURE: "beyond", Certainty.NOT_TESTED: "changed"}
                counts[key.get(claim.certainty, "changed open")] += 1
        told = next((key for key, count in counts.items() if count), None)
        if told is None:
            return Line(order, link=self.content.link(orders[0])) if order else None
        text = HEADINGS[told].format(
            some=f"{counts[told]:,}", rows=plural(len(rows), "row")
        )
        return Line(f"{text}.", order, "#chart")

    def of_controls(self) -> Line | None:
        """Say what control runs do, and by how much the loss changes in them."""
        runs = self.content.controls
        if not runs:
            return None
        kinds = list(
            dict.fromkeys(CONTROLS.get(kind_of(run), CONTROLS[""]) for run in runs)
        )
        lead = f"{sentence_start(plural(len(runs), 'control run'))} {kinds[0]}."
        told = []
        if len(kinds) > 1:
            lead = f"{sentence_start(plural(len(runs), 'control run'))} of {len(kinds)} kinds."
            told = [f"They {joined(kinds, ' or ')}."]
        claim = self.loss.get(Kind.BEYOND_MOTION)
        besides = claim.beside if claim is not None else ()
        changes = [beside.value for beside in besides if math.isfinite(beside.value)]
        if claim is None or not changes:
            return Line(lead, " ".join(told), "#verdict")
        told.append(
            f"Their loss changes by {value_range(changes, lambda v: f'{v:+.2g}', ' to ')}."
        )
        return Line(lead, " ".join(told), self.content.link(claim))


def _some(names: Sequence[str], named: int) -> str:
    """Return names, or of many the first and how many more there are; at last their count."""
    if not named:
        return plural(len(names), "ability")
    more = len(names) - named
    return joined([*names[:named], *([f"{more:,} more"] if more > 0 else [])])
