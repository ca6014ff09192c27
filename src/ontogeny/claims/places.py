"""What claims of single places and gaps forbid a heading to say of the mean over all of them.

A mean over places hides what is learned at one of them: of sums *a, b, (a + b) mod 23* the loss of
the second token, which nothing predicts, rose from 3.1 to 7.7 nats while that of the third fell to
0.
"""

from __future__ import annotations

from collections.abc import Iterable

from .claim import Claim
from .vocabulary import Certainty, Kind

PLACE_LOSS = "place_loss"  # the quantity of claims of single places
OF_TOKENS = (
    "answer tokens"  # which of these are right, beside how many whole answers are
)
RIGHT = 0.9  # probability, or share of texts, from which an answer counts as right


def learned_places(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims of places whose loss surely fell, the learned ones first.

    Examples
    --------
    >>> from ontogeny.claims import Subject
    >>> third = Subject("place-losses", "place_loss", label="place 3")
    >>> fell = Claim(
    ...     Kind.CHANGED, third, Certainty.SURE, value=-3.1, first=3.1, last=0.0
    ... )
    >>> [claim.subject.label for claim in learned_places([fell])]
    ['place 3']
    """
    fell = [
        claim
        for claim in claims
        if claim.subject.quantity == PLACE_LOSS
        and claim.certainty is Certainty.SURE
        and claim.kind in (Kind.LEARNED, Kind.CHANGED)
        and claim.value < 0
    ]
    return sorted(fell, key=lambda claim: claim.kind is not Kind.LEARNED)


def answered(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims of places and gaps that went from wrong to right, above 90 %."""
    return [
        claim
        for claim in claims
        if claim.kind is Kind.GAINED
        and claim.subject.quantity in ("place_accuracy", "right_probability")
        and claim.last >= RIGHT
    ]
