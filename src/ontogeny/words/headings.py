"""The heading of a page: what its claims come to, in at most twelve words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..claims import Certainty, Claim, Kind, Reason, Reference
from ..claims.places import PLACE_LOSS, answered, learned_places
from .catalogue import HEADINGS, MOST_WORDS, PARTS
from .formats import first_of, joined, plural, sentence_start
from .known_texts import heading_of_sets
from .selection import LINES, NAMED, ONLY, Selection
from .sentences import reproduced


@dataclass(frozen=True)
class Heading:
    """What a page comes to, the claims that it says it of, and which of `PARTS` it gives of them."""

    text: str
    claims: tuple[Claim, ...] = ()
    parts: tuple[str, ...] = ()

    def tells(self, claims: Sequence[Claim]) -> bool:
        """Return whether it says what happened in all of some claims."""
        told = {(claim.kind, claim.subject) for claim in self.claims}
        return bool(claims) and {(c.kind, c.subject) for c in claims} <= told


class Headings(Selection):
    """What may be said above all, what matters most first."""

    def heading(self) -> Heading:
        """Return what matters most, in at most twelve words."""
        every = (
            Heading(one) if isinstance(one, str) else one for one in self._headings()
        )
        short = (one for one in every if 0 < len(one.text.split()) <= MOST_WORDS)
        chosen = next(short)
        text = sentence_start(chosen.text) + self.content.doubted
        return replace(chosen, text=text)

    def _headings(self) -> Iterator[Heading | str]:
        yield reproduced(self.every)
        if self.content.one_model:
            yield self._better_than()
            yield HEADINGS["one model"]
        yield self._of_sets()
        yield self._of_further_loss()
        if self.content.based:
            yield from map(self._since_base, (NAMED, 1, 0))
        yield self._of_places()
        yield self._learned()
        # An ability that was surely gained is no change that cannot be told.
        yield from ("; ".join(self._turned(named)) for named in (NAMED, 1, 0))
        yield from self._loss_is_open()
        yield Heading(self.able_words(), tuple(self.able))
        yield self._rows()
        yield HEADINGS["untested"]

    def _of(self, claim: Claim, key: str) -> Heading:
        """Return a heading that says what a sentence on a claim begins with."""
        parts = [part for part in PARTS if f"{{{part}}}" in HEADINGS[key]]
        return Heading(self.phrase(claim).filled(HEADINGS[key]), (claim,), tuple(parts))

    def _better_than(self) -> str:
        """Return the strongest reference that the loss is surely below."""
        passed = {c.subject.label: c for c in self.sure(Kind.PASSES)}
        tested = [
            c for c in self.every if c.kind is Kind.PASSES and c.subject.label in LINES
        ]
        for label, own in LINES.items():
            if label in passed and own in passed:
                return self.phrase(passed[label]).filled(HEADINGS["better"])
        return self.phrase(tested[0]).filled(HEADINGS["not better"]) if tested else ""

    def _of_sets(self) -> str:
        """Return since when the training texts are known, and since when others."""
        return heading_of_sets(self.every, self.content.spoken, self.content.names)

    def _of_further_loss(self) -> str:
        """Return which further texts are predicted worse, beside what became of those studied."""
        forgot = [
            c
            for c in self.further
            if c.kind is Kind.FORGOT and c.certainty is Certainty.SURE
        ]
        if not forgot:
            return ""
        loss = self.loss
        other = self.content.names.title(forgot[0])
        for kind, key in (
            (Kind.LEARNED, "learned, forgot"),
            (Kind.FORGOT, "forgot both"),
        ):
            if kind in loss and loss[kind].certainty is Certainty.SURE:
                own = self.content.names.title(loss[kind])
                return HEADINGS[key].format(name=own, other=other)
        return self.phrase(forgot[0]).filled(HEADINGS["forgot"])

    def _of_places(self) -> Heading | str:
        """Return what was learned at one place of the texts, where the mean loss hides it."""
        right = [
            c for c in answered(self.every) if c.subject.quantity == "place_accuracy"
        ]
        if right:
            best = max(right, key=lambda claim: claim.last)
            return self._of(best, "answered")
        learned = [c for c in learned_places(self.every) if c.kind is Kind.LEARNED]
        return self._of(learned[0], "place") if learned else ""

    def _since_base(self, named: int) -> Heading:
        """Return what further training gained and lost, with so many names of each."""
        parts = self._turned(named)
        learned = self._learned() if len(parts) < 2 else Heading("")
        text = "; ".join(filter(None, [learned.text, *parts]))
        if text:
            return replace(learned, text=text)
        return next(
            (one for one in self._loss_is_open() if one.text),
            Heading(HEADINGS["none gained"]),
        )

    def _turned(self, named: int) -> list[str]:
        """Return which abilities were gained and which were lost, with so many names of each."""
        parts = []
        if gained := [self.phrase(c).subject for c in self.sure(Kind.GAINED)]:
            parts.append(HEADINGS["gained"].format(gained=_some(gained, named)))
        if lost := [self.phrase(c).subject for c in self.sure(Kind.LOST)]:
            parts.append(HEADINGS["lost"].format(lost=_some(lost, named)))
        return parts

    def _learned(self) -> Heading:
        forgot = self.sure(Kind.FORGOT)
        if forgot:
            return self._of(forgot[0], "forgot")
        learned = [claim for claim in self.standing if claim.kind is Kind.LEARNED]
        learned = [
            claim
            for claim in learned
            if claim.certainty is Certainty.SURE
            and claim.subject.quantity != PLACE_LOSS
        ]
        track = self.content.track_node
        learned.sort(
            key=lambda claim: track is None or claim.subject.node != track.path
        )
        names = list(
            dict.fromkeys(self.content.names.title(claim) for claim in learned)
        )
        if len(names) == NAMED:
            return Heading(HEADINGS["learned both"].format(names=joined(names)))
        if len(names) > NAMED:
            return Heading(HEADINGS["learned several"].format(count=len(names)))
        if not learned:
            return Heading("")
        gains = self._gains()
        return Heading(gains) if gains else self._of(learned[0], "learned")

    def _gains(self) -> str:
        """Return what the loss gained from, in order where their steps are apart."""
        gains = sorted(self.sure(Kind.GAINS_FROM), key=lambda claim: claim.since_high)
        passed = {claim.subject.label for claim in self.sure(Kind.PASSES)}
        if not gains or gains[0].subject.label != "frequencies":
            return ""
        if (
            self.content.based
            or not {Reference.FREQUENCIES, Reference.OWN_FREQUENCIES} <= passed
        ):
            return ""
        words = [self.phrase(claim).label for claim in gains]
        in_order = all(a.since_high <= b.since_low for a, b in pairwise(gains))
        if not in_order or len(gains) < 2:
            return HEADINGS["learned in order"].format(gains=joined(words))
        text = f"{words[0]} first, then {joined(words[1:])}"
        return HEADINGS["learned in order"].format(gains=text)

    def _loss_is_open(self) -> Iterator[Heading]:
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
        only = learned.reason in ONLY
        if standing.kind is Kind.CHANGED and not only:
            yield from self._unchanged(standing)
        elif only or learned.certainty is Certainty.SURE or not self.able_count:
            yield from map(Heading, self._moved(learned))

    def _moved(self, claim: Claim) -> Iterator[str]:
        """Give how a loss moved, and what is open about that, at last without the reason."""
        if claim.reason in ONLY:
            yield self.phrase(claim).filled(HEADINGS["only"])
        key = "fell" if claim.kind is Kind.LEARNED else "moved"
        keys = {
            Certainty.OPEN: (key, f"{key}, open"),
            Certainty.NOT_TESTED: (f"{key}, not tested",),
            Certainty.AS_CONTROLS: ("as controls",),
        }
        texts = [HEADINGS[each] for each in keys.get(claim.certainty, ())]
        yield from map(self.phrase(claim).filled, [*texts, "{Subject} {verb}"])

    def _unchanged(self, standing: Claim) -> Iterator[Heading]:
        """Give what is said of a loss whose change is not shown."""
        if standing.reason is Reason.FEW_CHECKPOINTS:
            count = plural(len(self.content.steps), "checkpoint")
            text = HEADINGS["too few"].format(count=count)
            yield Heading(text, (standing,), ("reason",))
        yield Heading(self._better_at_end())
        yield Heading(self.said(standing).text.rstrip("."), (standing,), (*PARTS,))
        yield self._of(standing, "change open")

    def _better_at_end(self) -> str:
        passed = {claim.subject.label for claim in self.sure(Kind.PASSES)}
        both = any(passed >= {label, own} for label, own in LINES.items())
        return self._better_than() if both else ""

    def able_words(self) -> str:
        """Return how many abilities are above chance, if any are."""
        if not self.able_count:
            return ""
        abilities = plural(len(self.able), "ability")
        are = "is" if self.able_count == 1 else "are"
        return HEADINGS["able"].format(
            some=self.able_count, abilities=abilities, are=are
        )

    def _rows(self) -> Heading:
        """Return how many rows changed, by the strongest that can be said of them."""
        rows = self.rows
        if not rows:
            return Heading(HEADINGS["untested"])
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
                text = HEADINGS[key].format(
                    some=f"{len(some):,}", rows=plural(len(rows), "measure")
                )
                return Heading(text, tuple(rows))
        if all(claim.reason is Reason.FEW_CHECKPOINTS for claim in rows):
            count = plural(len(self.content.steps), "checkpoint")
            return Heading(HEADINGS["too few"].format(count=count))
        return Heading(HEADINGS["nothing"])


def _some(names: Sequence[str], named: int) -> str:
    """Return names, or of many the first and how many more there are; at last their count."""
    if not named:
        return plural(len(names), "ability")
    return joined(first_of(names, named))
