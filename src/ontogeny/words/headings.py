"""The heading of a page: what its claims come to, in at most twelve words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from ..claims import Certainty, Claim, Kind, Reason, Reference
from ..claims.places import PLACE_LOSS, answered, learned_places
from .catalogue.page import MOST_WORDS
from .formats import first_of, joined, plural, sentence_start
from .known_texts import heading_of_sets
from .selection import LINES, MOVED, NAMED, ONLY, Selection, counted
from .sentences import reproduced
from .statements import Said


class Headings(Selection):
    """What may be said above all, what matters most first."""

    @cached_property
    def heading(self) -> Said:
        """What matters most, in at most twelve words."""
        every = filter(None, self._headings())
        one = next(one for one in every if len(one.text.split()) <= MOST_WORDS)
        return replace(one, text=sentence_start(one.text) + self.content.doubted)

    def _headings(self) -> Iterator[Said | None]:
        yield reproduced(self.every)
        if self.content.one_model:
            yield self._better_than()
            yield self.heading_of("one model")
        yield heading_of_sets(self.every, self.content.spoken, self.content.names)
        yield self._of_further_loss()
        if self.content.based:
            yield from map(self._since_base, (NAMED, 1, 0))
        yield self._of_places()
        yield self._learned()
        # An ability that was surely gained is no change that cannot be told.
        yield from (_together(self._turned(named)) for named in (NAMED, 1, 0))
        yield from self._loss_is_open()
        yield self.able_words()
        yield self._rows()

    def _better_than(self) -> Said | None:
        """Return the strongest reference that the loss is surely below."""
        passed = {c.subject.label: c for c in self.sure(Kind.PASSES)}
        tested = [
            c for c in self.every if c.kind is Kind.PASSES and c.subject.label in LINES
        ]
        for label, own in LINES.items():
            if label in passed and own in passed:
                return self.heading_of("better", passed[label])
        return self.heading_of("not better", tested[0]) if tested else None

    def _of_further_loss(self) -> Said | None:
        """Return which further texts are predicted worse, beside what became of those studied."""
        forgot = [
            c
            for c in self.further
            if c.kind is Kind.FORGOT and c.certainty is Certainty.SURE
        ]
        if not forgot:
            return None
        other = self.content.names.title(forgot[0])
        for kind, key in (
            (Kind.LEARNED, "learned, forgot"),
            (Kind.FORGOT, "forgot both"),
        ):
            own = self.loss.get(kind)
            if own is not None and own.certainty is Certainty.SURE:
                name = self.content.names.title(own)
                return self.heading_of(key, own, forgot[0], name=name, other=other)
        return self.heading_of("forgot", forgot[0])

    def _of_places(self) -> Said | None:
        """Return what was learned at one place of the texts, where the mean loss hides it."""
        right = [
            c for c in answered(self.every) if c.subject.quantity == "place_accuracy"
        ]
        if right:
            best = max(right, key=lambda claim: claim.last)
            return self.heading_of("answered", best)
        learned = [c for c in learned_places(self.every) if c.kind is Kind.LEARNED]
        return self.heading_of("place", learned[0]) if learned else None

    def _since_base(self, named: int) -> Said:
        """Return what further training gained and lost, with so many names of each."""
        parts = self._turned(named)
        learned = self._learned()
        if len(parts) < 2 and learned is not None:
            parts.insert(0, learned)
        is_open = filter(None, self._loss_is_open())
        return _together(parts) or next(is_open, None) or self.heading_of("none gained")

    def _turned(self, named: int) -> list[Said]:
        """Return which abilities were gained and which were lost, with so many names of each."""
        parts = []
        for key, kind in (("gained", Kind.GAINED), ("lost", Kind.LOST)):
            if claims := self.sure(kind):
                names = _some([self.phrase(c).subject for c in claims], named)
                parts.append(self.heading_of(key, *claims, names=names))
        return parts

    def _learned(self) -> Said | None:
        """Return what was forgotten, else what was learned, the loss before all others."""
        forgot = self.sure(Kind.FORGOT)
        if forgot:
            return self.heading_of("forgot", forgot[0])
        learned = [
            claim
            for claim in self.standing
            if claim.kind is Kind.LEARNED
            and claim.certainty is Certainty.SURE
            and claim.subject.quantity != PLACE_LOSS
        ]
        if not learned:
            return None
        learned.sort(key=lambda claim: not self.content.is_loss(claim))
        names = list(dict.fromkeys(map(self.content.names.title, learned)))
        if len(names) == NAMED:
            return self.heading_of("learned both", *learned, names=joined(names))
        if len(names) > NAMED:
            return self.heading_of("learned several", *learned, count=str(len(names)))
        return self._gains() or self.heading_of("learned", learned[0])

    def _gains(self) -> Said | None:
        """Return what the loss gained from, in order where their steps are apart."""
        gains = sorted(self.sure(Kind.GAINS_FROM), key=lambda claim: claim.since_high)
        passed = {claim.subject.label for claim in self.sure(Kind.PASSES)}
        needed = {Reference.FREQUENCIES, Reference.OWN_FREQUENCIES}
        if self.content.based or not gains or not needed <= passed:
            return None
        if gains[0].subject.label != "frequencies":
            return None
        one, *others = (self.phrase(claim).label for claim in gains)
        is_ordered = all(a.since_high <= b.since_low for a, b in pairwise(gains))
        if is_ordered and others:
            more = {"one": one, "others": joined(others)}
            return self.heading_of("learned in order", *gains, **more)
        return self.heading_of("learned together", *gains, names=joined([one, *others]))

    def _loss_is_open(self) -> Iterator[Said | None]:
        """Give what became of a loss that is not shown to be learned, with and without reason."""
        standing = self.standing_loss
        if standing is None:
            return
        learned = self.loss.get(Kind.LEARNED, standing)
        if learned.reason is Reason.NO_GAIN:
            learned = standing
        only = learned.reason in ONLY
        if standing.kind is Kind.CHANGED and not only:
            yield from self._unchanged(standing)
        elif only or learned.certainty is Certainty.SURE or not self.able_count:
            yield from self._moved(learned)

    def _moved(self, claim: Claim) -> Iterator[Said]:
        """Give how a loss moved, and what is open about that, at last without the reason."""
        key = "fell" if claim.kind is Kind.LEARNED else "moved"
        keys = {
            Certainty.OPEN: (key, f"{key}, open"),
            Certainty.NOT_TESTED: (f"{key}, not tested",),
            Certainty.AS_CONTROLS: ("as controls",),
        }
        only = ["only"] if claim.reason in ONLY else []
        for each in (*only, *keys.get(claim.certainty, ()), "went"):
            yield self.heading_of(each, claim)

    def _unchanged(self, standing: Claim) -> Iterator[Said | None]:
        """Give what is said of a loss whose change is not shown."""
        if standing.reason is Reason.FEW_CHECKPOINTS:
            yield self._too_few()
        passed = {claim.subject.label for claim in self.sure(Kind.PASSES)}
        if any(passed >= {label, own} for label, own in LINES.items()):
            yield self._better_than()
        whole = self.said(standing)
        yield replace(whole, text=whole.text.rstrip("."))
        yield self.heading_of("change open", standing)

    def _too_few(self) -> Said:
        count = plural(len(self.content.steps), "checkpoint")
        return self.heading_of("too few", count=count)

    def able_words(self) -> Said | None:
        """Return how many abilities are above chance; None if no one is."""
        if not self.able_count:
            return None
        given = {
            "some": str(self.able_count),
            "abilities": plural(len(self.able), "ability"),
            "are": "is" if self.able_count == 1 else "are",
        }
        return self.heading_of("able", *self.sure(Kind.ABOVE_CHANCE), **given)

    def _rows(self) -> Said:
        """Return how many rows changed, by the strongest that can be said of them."""
        rows = self.rows
        if not rows:
            only = any(row.to_last for row in self.content.rows)
            return self.heading_of("only distances" if only else "untested")
        if some := counted(rows, MOVED):
            return some
        if all(claim.reason is Reason.FEW_CHECKPOINTS for claim in rows):
            return self._too_few()
        return self.heading_of("nothing")


def _together(parts: Sequence[Said]) -> Said | None:
    """Return several headings as one."""
    if len(parts) < 2:
        return next(iter(parts), None)
    claims = [claim for part in parts for claim in part.claims]
    return Said("; ".join(part.text for part in parts), tuple(claims))


def _some(names: Sequence[str], named: int) -> str:
    """Return names, or of many the first and how many more there are; at last their count."""
    if not named:
        return plural(len(names), "ability")
    return joined(first_of(names, named))
