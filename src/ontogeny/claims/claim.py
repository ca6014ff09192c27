"""One thing that a study says, as a value: who did what, when, how sure, beside what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import ArgumentError
from .vocabulary import OF_CERTAINTY, RULES, Certainty, Kind, Reason


@dataclass(frozen=True)
class Subject:
    """What a claim is about; what does not apply is empty.

    Parameters
    ----------
    node
        The observable, as the result names it.
    quantity
        The variable of the node.
    layer
        Module path.
    label
        A concept, an ability, a reference, or what else stands for one part of the quantity.
    run
        One of several runs; empty in the study of one.
    step
        The step that it is about, as of a damaged checkpoint; NaN where it is about the whole run.
    """

    node: str = ""
    quantity: str = ""
    layer: str = ""
    label: str = ""
    run: str = ""
    step: float = math.nan

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from other subjects of a run: by it the claims of several runs join."""
        step = "" if math.isnan(self.step) else f"{self.step:g}"
        return (self.node, self.quantity, self.layer, self.label, step)


@dataclass(frozen=True)
class Beside:
    """What a claim was judged against: a null, a reference or one control run.

    Parameters
    ----------
    role
        ``"null"``, ``"reference"`` or ``"control"``; of a count also ``"whole"``, of which it is a
        part, and ``"part"``, one of what it counts, or the direction that is asked about.
    name
        As the result names it.
    value
        What it gives where the claim has its `value`.
    own
        What the run itself gives at the same steps, where those are fewer.
    """

    role: str
    name: str
    value: float = math.nan
    own: float = math.nan


@dataclass(frozen=True)
class Claim:
    """One finding with its certainty, and all that it rests on.

    Parameters
    ----------
    kind
        What happened.
    subject
        To what.
    certainty
        How sure that is.
    reason
        Why it is open or was not tested; None of any other.
    value
        The size of what happened, such as a change, in `units`, with its interval `low` to `high`.
    first, last
        Values at the ends of the run.
    since
        The step from which on it holds, in the run's own clock, between `since_low` and
        `since_high`.
    beside
        What it was judged against.
    p_value
        Corrected over `corrected_over` tests.
    needed
        How many of what `reason` lacks would do, such as control runs; NaN where it is unknown.
    evidence
        Paths ``"node/variable"`` of the numbers that it is computed from.
    figure
        Path ``"node/figure"`` of the figure that shows it.

    Raises
    ------
    ArgumentError
        If `reason` is missing where the claim is open, or given where it is not, or a field that
        the kind asks of a sure claim is NaN or empty.

    Examples
    --------
    >>> loss = Subject("loss", "loss")
    >>> claim = Claim(
    ...     Kind.LEARNED, loss, Certainty.SURE, first=6.0, last=4.3, p_value=0.001
    ... )
    >>> claim.kind.value, claim.certainty.value, round(claim.weight, 2)
    ('learned', 'sure', 0.95)
    >>> Claim(Kind.LEARNED, loss, Certainty.OPEN)
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: reason must be given of a claim that is open; got None.
    """

    kind: Kind
    subject: Subject
    certainty: Certainty
    reason: Reason | None = None
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    first: float = math.nan
    last: float = math.nan
    units: str = ""
    since: float = math.nan
    since_low: float = math.nan
    since_high: float = math.nan
    p_value: float = math.nan
    corrected_over: int = 0
    needed: float = math.nan
    beside: Sequence[Beside] = field(default=())
    evidence: Sequence[str] = field(default=())
    figure: str = ""

    def __post_init__(self) -> None:
        unsettled = self.certainty in (Certainty.OPEN, Certainty.NOT_TESTED)
        if unsettled and self.reason is None:
            raise ArgumentError(
                f"reason must be given of a claim that is {self.certainty.value}; got None."
            )
        if not unsettled and self.reason is not None:
            raise ArgumentError(
                f"reason must be None of a claim that is {self.certainty.value}; "
                f"got {self.reason.value!r}."
            )
        if self.certainty is Certainty.SURE:
            missing = [
                n for n in RULES[self.kind].fields if math.isnan(getattr(self, n))
            ]
            if missing:
                raise ArgumentError(
                    f"{missing[0]} must be a number in a sure claim of kind "
                    f"{self.kind.value!r}; got nan."
                )
            if RULES[self.kind].beside and not self.beside:
                raise ArgumentError(
                    "beside must hold what it was judged against in a sure claim of kind "
                    f"{self.kind.value!r}; it is empty."
                )

    @property
    def weight(self) -> float:
        """How early a reader wants it, between 0 and 1: that of its kind times its certainty's."""
        return RULES[self.kind].weight * OF_CERTAINTY[self.certainty]
