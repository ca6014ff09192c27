"""The closed lists of what a claim may say: what happened, how sure that is, and why it is open."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How sure a claim is: the same four words for every kind."""

    SURE = "sure"  # beyond noise, chance and controls, as the kind asks
    # What controls or chance give too: as much or more, or within a stated margin.
    AS_CONTROLS = "as controls"
    OPEN = "open"  # not shown, for a reason
    NOT_TESTED = "not tested"  # nothing stands beside it


# How early a reader wants a claim of each certainty; what is sure comes first.
OF_CERTAINTY = {
    Certainty.SURE: 1.0,
    Certainty.AS_CONTROLS: 0.5,
    Certainty.OPEN: 0.25,
    Certainty.NOT_TESTED: 0.1,
}


class Kind(StrEnum):
    """What happened to the subject of a claim."""

    LEARNED = "learned"
    FORGOT = "forgot"
    CHANGED = "changed"
    BEYOND_MOTION = "beyond motion"
    BORN = "born"
    FADED = "faded"
    KEPT = "kept"
    TURNED = "turned"
    GAINED = "gained"
    LOST = "lost"
    CHANGED_ON_ITEMS = "changed on these items"
    ABOVE_CHANCE = "above chance"
    READABLE = "readable"
    NEEDED = "needed"
    STEERS = "steers"
    PASSES = "passes"
    GAINS_FROM = "gains from"
    RISES_AGAIN = "rises again"
    DIFFERS = "differs from chance"
    BEFORE = "before"
    SHARED = "shared"
    AHEAD = "ahead"
    MEMORISED = "memorised"
    GENERALISES = "generalises"
    OVERFITS = "overfits"
    IN_CONTEXT = "learned in context"
    FAR_FROM_RECORD = "far from record"
    MEASURED = "measured"  # a number beside its whole or its null, of which there is no verdict
    DAMAGED = "damaged"
    REPRODUCES = "reproduces"
    CONTRADICTS = "contradicts"


class Reason(StrEnum):
    """Why a claim is open, or was not tested."""

    FEW_CHECKPOINTS = "too few checkpoints"
    FEW_CONTROLS = "too few controls"
    NO_CONTROLS = "no controls"
    NOISE_UNKNOWN = "noise unknown"
    SLOW_NOISE = "slow noise"
    WITHIN_NOISE = "within noise"
    WITHIN_CHANCE = "within chance"
    SMALL = "below the least effect"
    ORDER = "order as by chance"
    SHORT_MEMORY = "course as of noise between checkpoints"
    REFERENCE_MEMORY = "course as of the memory of the reference"
    FEW_TURNED = "too few examples turned"
    FEW_TEXTS = "too few texts"
    FEW_CONTRASTS = "too few contrasts"
    ONE_ANSWER = "one answer is right everywhere"
    SURER = "only surer of what it says"
    LESS_SURE = "only less sure of what it says"
    PREFERENCES = "only which words it prefers"
    NO_GAIN = "no gain"
    WORD_COUNTS = "counts of words answer as well"
    NOT_REACHED = "not reached"
    BELOW_SHARE = "share not reached for good"
    NOT_HELD = "reached and left"
    CONTROLS_SPREAD = "controls differ too much"
    NOTHING_SCORED = "nothing scored"
    NOT_COMPARABLE = "not comparable"
    CASES_DIFFER = "seeds or layers differ"
    PROBABLE = "probable only"
    FAILED = "failed"
    EARLIER_VERSION = "made by an earlier version"


class Reference(StrEnum):
    """What a loss is held against, as claims label it; its own are means of the model's predictions."""

    UNIFORM = "uniform guess"
    FREQUENCIES = "word frequencies"
    BIGRAMS = "bigrams"
    OWN_FREQUENCIES = "its own word frequencies"
    OWN_BIGRAMS = "its own bigrams"
    RENAMED = "renamed words"


@dataclass(frozen=True)
class KindRule:
    """What a claim of one kind must have, and how much it matters.

    Parameters
    ----------
    weight
        Between 0 and 1: how early a reader wants it.
    fields
        Numbers that a sure claim of the kind has.
    beside
        Whether it names what it was judged against.
    """

    weight: float
    fields: tuple[str, ...] = ()
    beside: bool = False


RULES: dict[Kind, KindRule] = {
    Kind.DAMAGED: KindRule(1.0),
    Kind.LEARNED: KindRule(0.95, ("first", "last")),
    Kind.FORGOT: KindRule(0.95, ("first", "last")),
    Kind.GENERALISES: KindRule(0.9, ("first", "last", "since")),
    Kind.MEMORISED: KindRule(0.9, ("first", "last", "since")),
    Kind.OVERFITS: KindRule(0.9, ("since",)),
    Kind.IN_CONTEXT: KindRule(0.7, ("first", "last"), beside=True),
    Kind.FAR_FROM_RECORD: KindRule(0.86, ("value", "last"), beside=True),
    Kind.GAINED: KindRule(0.85, ("first", "last")),
    Kind.LOST: KindRule(0.85, ("first", "last")),
    Kind.ABOVE_CHANCE: KindRule(0.8, ("last",)),
    Kind.READABLE: KindRule(0.78, ("last",), beside=True),
    Kind.NEEDED: KindRule(0.76, ("first", "last"), beside=True),
    Kind.STEERS: KindRule(0.74, ("first", "last"), beside=True),
    Kind.CHANGED_ON_ITEMS: KindRule(0.6, ("first", "last")),
    Kind.BORN: KindRule(0.75),
    Kind.FADED: KindRule(0.7),
    Kind.TURNED: KindRule(0.65),
    Kind.SHARED: KindRule(0.65),
    Kind.PASSES: KindRule(0.6, ("last",), beside=True),
    Kind.RISES_AGAIN: KindRule(0.6, ("value", "since")),
    Kind.GAINS_FROM: KindRule(0.58, ("since",)),
    Kind.AHEAD: KindRule(0.9, ("value",), beside=True),
    Kind.DIFFERS: KindRule(0.5, ("last",), beside=True),
    Kind.BEYOND_MOTION: KindRule(0.55, ("first", "last")),
    Kind.BEFORE: KindRule(0.5, ("since", "last"), beside=True),
    Kind.CHANGED: KindRule(0.45, ("first", "last")),
    Kind.KEPT: KindRule(0.4),
    Kind.REPRODUCES: KindRule(0.4),
    Kind.CONTRADICTS: KindRule(0.4),
    Kind.MEASURED: KindRule(0.3, ("last",)),
}
