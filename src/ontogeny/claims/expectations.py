"""What somebody expects of a run, one line each, beside what its study claims.

learned loss
above-chance agreement by 2000
changed attention-entropy above 0.2
no damaged
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ArgumentError, suggestion
from .claim import Claim, Subject
from .vocabulary import Certainty, Kind

KINDS = {kind.value.replace(" ", "-"): kind for kind in Kind}
_BOUNDS = ("above", "below", "by")
_NUMBER = re.compile(
    r"[+-]?(\d{1,3}(,\d{3})+(\.\d*)?|\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?",
    re.ASCII | re.I,
)


@dataclass(frozen=True)
class Expectation:
    """One line: a sure claim of a kind on a subject, or none.

    Parameters
    ----------
    line
        As it was written.
    kind
        Of the claim.
    subject
        Words of a node, quantity, layer or label; empty for any.
    absent
        Whether no such claim may be sure.
    above, below
        Bounds of the last value, or of the size where there is none; NaN for none.
    by
        The step at which it must hold; NaN for any.
    """

    line: str
    kind: Kind
    subject: str = ""
    absent: bool = False
    above: float = math.nan
    below: float = math.nan
    by: float = math.nan

    def fits(self, claim: Claim) -> bool:
        """Return whether a claim is of this kind and subject, whatever it says."""
        return claim.kind is self.kind and (
            not self.subject or self.subject.casefold() in names_of(claim.subject)
        )


def names_of(subject: Subject) -> set[str]:
    """Return by which words an expectation may name a subject, without regard to case.

    Examples
    --------
    >>> sorted(names_of(Subject("minimal-pairs", "accuracy", label="agreement")))
    ['accuracy', 'agreement', 'minimal-pairs', 'minimal-pairs/agreement']
    """
    parts = [subject.node, subject.quantity, subject.layer, subject.label]
    names = {part for part in parts if part}
    if subject.label:
        names.add(f"{subject.node}/{subject.label}")
    if subject.layer:
        names.add(f"{subject.node}/{subject.layer}")
    if subject.run:
        names |= {f"{subject.run}/{name}" for name in names}
    return {name.casefold() for name in names}


def read(path: Path) -> list[Expectation]:
    """Return the expectations of a file.

    Raises
    ------
    ArgumentError
        If the file or one of its lines cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(
            f"--expect must be a file of expectations that can be read; {path}: {error}."
        ) from None
    return parse(text)


def parse(text: str) -> list[Expectation]:
    """Return the expectations of a file; empty lines and what follows ``#`` do not count.

    Raises
    ------
    ArgumentError
        If a line cannot be read; the message names it.

    Examples
    --------
    >>> [expected] = parse("above-chance agreement by 2000  # of verbs")
    >>> expected.kind.value, expected.subject, expected.by
    ('above chance', 'agreement', 2000.0)
    """
    found: list[Expectation] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            found.append(_parsed(number, words))
    if not found:
        raise ArgumentError(
            "the file of expectations must hold at least one line; it holds none."
        )
    return found


def _parsed(number: int, words: list[str]) -> Expectation:
    line = " ".join(words)
    absent = words[0] == "no"
    rest = words[1:] if absent else words
    if not rest or rest[0] not in KINDS:
        given = rest[0] if rest else ""
        raise ArgumentError(
            f"line {number} of the expectations must begin with what happened, such as "
            f"'learned' or 'no damaged'; got {line!r}.{suggestion(given, KINDS)}"
        )
    bounds: dict[str, float] = {}
    subject = rest[1:]
    while len(subject) > 1 and subject[-2] in _BOUNDS:
        bound = subject[-2]
        if bound in bounds:
            raise ArgumentError(
                f"line {number} of the expectations must give {bound!r} once; got {line!r}."
            )
        bounds[bound] = _number(number, line, subject[-1])
        subject = subject[:-2]
    if subject and subject[-1] in _BOUNDS:
        _number(number, line, "nothing")
    if absent and bounds:
        raise ArgumentError(
            f"line {number} of the expectations begins with 'no', which allows no above, below or "
            f"by: no such claim may be sure, whatever its numbers; got {line!r}."
        )
    return Expectation(line, KINDS[rest[0]], " ".join(subject), absent, **bounds)


def _number(number: int, line: str, word: str) -> float:
    """Return a number; commas stand between thousands only, as "4,5" is 4.5 to others."""
    if not _NUMBER.fullmatch(word):
        raise ArgumentError(
            f"line {number} of the expectations must hold a number after above, below or by, as "
            f"0.25, 1e4 or 12,000; got {word!r} in {line!r}."
        )
    return float(word.replace(",", ""))


def failures(
    claims: Sequence[Claim],
    expectations: Iterable[Expectation],
    *,
    allow_open: bool = False,
) -> list[str]:
    r"""Return a line for each expectation that the claims do not meet.

    Parameters
    ----------
    claims
        Of a study.
    expectations
        What is expected of it.
    allow_open
        Whether a claim that is open for a reason meets an expectation. What was not tested never
        does.

    Raises
    ------
    ArgumentError
        If no claim of any kind is on a subject that a line names.

    Examples
    --------
    >>> claim = Claim(
    ...     Kind.LEARNED, Subject("loss"), Certainty.SURE, first=6.0, last=4.3
    ... )
    >>> failures([claim], parse("learned loss below 5\nno learned loss"))
    ['no learned loss: it is sure']
    """
    known = (
        set().union(*(names_of(claim.subject) for claim in claims)) if claims else set()
    )
    lines = [_failure(claims, expected, known, allow_open) for expected in expectations]
    return [line for line in lines if line]


def _failure(
    claims: Sequence[Claim], expected: Expectation, known: set[str], allow_open: bool
) -> str:
    if expected.subject and expected.subject.casefold() not in known:
        raise ArgumentError(
            f"the expectation {expected.line!r} must name something that this study measured; "
            f"there is no {expected.subject!r}.{suggestion(expected.subject.casefold(), known)}"
        )
    fitting = [claim for claim in claims if expected.fits(claim)]
    sure = [claim for claim in fitting if claim.certainty is Certainty.SURE]
    if expected.absent:
        return f"{expected.line}: it is sure{_where(sure)}" if sure else ""
    if not fitting:
        return f"{expected.line}: not tested"
    misses = [_miss(expected, claim) for claim in sure]
    if not sure:
        return _unsure(expected, fitting, allow_open)
    return "" if not all(misses) else f"{expected.line}: {misses[0]}"


def _where(claims: Sequence[Claim]) -> str:
    places = [", ".join(_place(claim.subject)) for claim in claims]
    return f" ({'; '.join(places)})" if all(places) else ""


def _place(subject: Subject) -> Iterator[str]:
    if subject.label:
        yield subject.label
    if not math.isnan(subject.step):
        yield f"step {subject.step:,.0f}"


def _unsure(expected: Expectation, fitting: Sequence[Claim], allow_open: bool) -> str:
    """Return why nothing sure is claimed; what is open may be let pass."""
    is_open = [claim for claim in fitting if claim.certainty is Certainty.OPEN]
    if is_open and allow_open:
        return ""
    chosen = (is_open or fitting)[0]
    said = chosen.certainty.value
    if chosen.reason is not None:
        said += f" ({chosen.reason.value}"
        said += (
            f"; {chosen.needed:g} would do)" if math.isfinite(chosen.needed) else ")"
        )
    return f"{expected.line}: {said}"


def _miss(expected: Expectation, claim: Claim) -> str:
    """Return what a sure claim lacks of what is expected; empty if nothing."""
    value = claim.last if math.isfinite(claim.last) else claim.value
    since = claim.since_high if math.isfinite(claim.since_high) else claim.since
    if not math.isnan(expected.above) and not value > expected.above:
        return f"it is {value:.4g}"
    if not math.isnan(expected.below) and not value < expected.below:
        return f"it is {value:.4g}"
    if not math.isnan(expected.by) and not since <= expected.by:
        return (
            "since when is unknown"
            if math.isnan(since)
            else f"it holds surely from {since:g}"
        )
    return ""
