"""The claims of one run, or of one model, chosen by what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..claims import Certainty, Claim, Kind, Reason, Reference
from .catalogue.page import HEADINGS
from .content import Content
from .formats import plural
from .phrases import Phrases
from .sentences import OF_ROWS, said, standing_claims
from .statements import Said

NAMED = 2  # of several alike, so many are named
# No learning moved the loss.
ONLY = (Reason.SURER, Reason.LESS_SURE, Reason.PREFERENCES)
# What a loss is held against, the strongest first, with the same of the model's own predictions.
LINES = {
    Reference.BIGRAMS: Reference.OWN_BIGRAMS,
    Reference.FREQUENCIES: Reference.OWN_FREQUENCIES,
}

# What rows come to, the strongest first, by the headings that count them.
_UNSURE = (Certainty.OPEN, Certainty.AS_CONTROLS)
COUNTED: dict[str, tuple[Kind, tuple[Certainty, ...]]] = {
    "learned rows": (Kind.LEARNED, (Certainty.SURE,)),
    "forgot rows": (Kind.FORGOT, (Certainty.SURE,)),
    "beyond": (Kind.BEYOND_MOTION, (Certainty.SURE,)),
    "changed": (Kind.BEYOND_MOTION, (Certainty.NOT_TESTED,)),
    "changed open": (Kind.BEYOND_MOTION, _UNSURE),
    "open rows": (Kind.CHANGED, (Certainty.OPEN,)),
}
MOVED = ("beyond", "changed", "changed open")


def counted(
    rows: Sequence[Claim], keys: Iterable[str] = COUNTED, noun: str = "measure"
) -> Said | None:
    """Return how many rows show the strongest that any of them shows; None of no row."""
    for key in keys:
        kind, certainties = COUNTED[key]
        some = [c for c in rows if c.kind is kind and c.certainty in certainties]
        if some:
            alike = sum(c.certainty is Certainty.AS_CONTROLS for c in some)
            text = HEADINGS[_of_unsure(alike, len(some)) if alike else key].format(
                some=f"{len(some):,}",
                rows=plural(len(rows), noun),
                are="is" if len(some) == 1 else "are",
                as_controls=f"{alike:,}",
                open=f"{len(some) - alike:,}",
            )
            return Said(text, tuple(some))
    return None


def _of_unsure(alike: int, count: int) -> str:
    """Return the heading of changes of which some are as those of control runs.

    Of a random walk "8 of 8 changed; beyond controls is open" stood over five that control runs do.
    """
    return "changed as controls" if alike == count else "changed, some open"


class Selection:
    """The claims of a page that are of no run among several.

    Parameters
    ----------
    content
        Of the page.
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        of_page = [claim for claim in content.claims if not claim.subject.run]
        # Losses of further texts, as of those that a base knows, stand by themselves: what they pass
        # and cost stood among what the loss does.
        further = {node.path for node in content.nodes if node.role == "track"}
        if content.track_node is not None:
            further.discard(content.track_node.path)
        self.every = [c for c in of_page if c.subject.node not in further]
        self.further = [c for c in of_page if c.subject.node in further]
        self.standing = standing_claims(self.every)

    def sure(self, *kinds: Kind) -> list[Claim]:
        """Return the sure claims of some kinds."""
        return [
            c for c in self.every if c.kind in kinds and c.certainty is Certainty.SURE
        ]

    @property
    def loss(self) -> dict[Kind, Claim]:
        """The claims on the row of the loss, by kind; none where it was not measured."""
        of_row = [
            c for c in self.every if self.content.is_loss(c) and c.kind in OF_ROWS
        ]
        return {claim.kind: claim for claim in reversed(of_row)}

    @property
    def standing_loss(self) -> Claim | None:
        """The claim that says the most of the loss."""
        changed = self.loss.get(Kind.CHANGED)
        same = (c for c in self.standing if changed and c.subject == changed.subject)
        return next(same, None)

    @property
    def able(self) -> list[Claim]:
        """The claims of abilities to be above chance."""
        return [claim for claim in self.every if claim.kind is Kind.ABOVE_CHANCE]

    @property
    def able_count(self) -> int:
        """How many abilities are above chance."""
        return sum(claim.certainty is Certainty.SURE for claim in self.able)

    @property
    def rows(self) -> list[Claim]:
        """What is said of each row of the chart."""
        return [claim for claim in self.standing if claim.kind in OF_ROWS]

    def heading_of(self, key: str, *claims: Claim, **given: str) -> Said:
        """Return a heading on claims, some of its phrases given."""
        phrases = Phrases(claims, self.content.spoken, self.content.names)
        return phrases.said(HEADINGS[key], **given)

    def said(self, *claims: Claim) -> Said:
        """Return the sentence on claims that stand alike."""
        return said(claims, self.content.spoken, self.content.names)

    def phrase(self, claim: Claim) -> Phrases:
        """Return the phrases of one claim."""
        return Phrases([claim], self.content.spoken, self.content.names)
