"""What a page says first of two sets of texts: since when each is known, and what overfits."""

from __future__ import annotations

from collections.abc import Sequence

from ..claims import Certainty, Claim, Kind
from .catalogue.page import HEADINGS
from .phrases import Phrases
from .sentences import said
from .statements import Said
from .subjects import Names
from .voice import Voice

OF_SETS = (Kind.MEMORISED, Kind.GENERALISES, Kind.OVERFITS)


def heading_of_sets(claims: Sequence[Claim], voice: Voice, names: Names) -> Said | None:
    """Return since when the training texts are known, and since when others; without intervals.

    None where nothing is sure. Where held-out texts are known as early as the training texts,
    nothing was memorised apart from what generalises. What overfits in the end is said with it.

    Examples
    --------
    >>> from ..claims import Subject
    >>> training = Subject("training-texts", "set_accuracy", label="training")
    >>> ends = {"first": 0.1, "last": 1.0, "since": 60.0}
    >>> known = Claim(Kind.MEMORISED, training, Certainty.SURE, **ends)
    >>> heading_of_sets([known], Voice(), Names()).text
    'It memorised its training texts from step 60'
    """
    sure = {
        claim.kind: claim
        for claim in claims
        if claim.kind in OF_SETS and claim.certainty is Certainty.SURE
    }
    memorised = sure.get(Kind.MEMORISED)
    generalises = sure.get(Kind.GENERALISES)
    overfits = sure.get(Kind.OVERFITS)
    known = generalises or memorised
    if overfits:
        key = f"{known.kind.value}, overfits" if known else "overfits"
        return _filled(key, [known, overfits] if known else [overfits], voice, names)
    if memorised and generalises and memorised.since < generalises.since:
        return _filled("both sets", [memorised, generalises], voice, names)
    if known is None:
        return None
    is_asked = any(claim.kind is Kind.GENERALISES for claim in claims)
    is_open = known is memorised and is_asked
    key = "memorised, open" if is_open else known.kind.value
    return _filled(key, [known], voice, names)


def _filled(key: str, claims: Sequence[Claim], voice: Voice, names: Names) -> Said:
    """Return a heading with the first steps of its claims."""
    other = Phrases(claims[1:] or claims, voice, names).begin
    return Phrases(claims, voice, names).said(HEADINGS[key], other=other)


def sentences_of_sets(
    claims: Sequence[Claim], voice: Voice, names: Names
) -> list[Said]:
    """Return a sentence for each claim on both sets, in the order of training."""
    told = (claim for kind in OF_SETS for claim in claims if claim.kind is kind)
    return [said([claim], voice, names) for claim in told]
