"""Claims that state a number, for observables that say more than their rows do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..control_kinds import judging
from .claim import Beside, Claim, Subject
from .vocabulary import Certainty, Kind, Reason


def of_controls(values: Any, own: float = math.nan) -> list[Beside]:
    """Return what stands beside a claim: the finite numbers of the control runs that judge.

    Parameters
    ----------
    values
        An xarray.DataArray (run,).
    own
        The run's own number, where it is another one than the claim's.
    """
    judges = judging(values)
    pairs = zip(judges["run"].values, judges.values.tolist(), strict=True)
    return [
        Beside("control", str(run), float(value), own)
        for run, value in pairs
        if math.isfinite(value)
    ]


def measurement(
    subject: Subject,
    last: float,
    *,
    whole: float = math.nan,
    parts: Iterable[str] = (),
    beside: Iterable[Beside] = (),
    certainty: Certainty = Certainty.SURE,
    **more: Any,
) -> Claim:
    """Return a claim on one number of an observable; one that is NaN is not tested, as it failed.

    Parameters
    ----------
    subject
        Whose ``quantity`` is the variable that holds it.
    last
        The number, in ``units``: ``"1"`` of a share, none of a count.
    whole
        How many there are, of which a count is a part.
    parts
        What it counts, by name.
    beside
        What else it stands beside.
    **more
        Further fields of `Claim`.

    Raises
    ------
    ArgumentError
        As by `Claim`.

    Examples
    --------
    >>> claim = measurement(Subject("weight-change", "distance_moved"), 2, whole=24)
    >>> claim.last, claim.beside[0].role, claim.beside[0].value, claim.evidence
    (2, 'whole', 24, ('weight-change/distance_moved',))
    """
    of = [Beside("whole", "", whole)] if math.isfinite(whole) else []
    named = [Beside("part", name) for name in parts]
    if certainty is Certainty.SURE and math.isnan(last):
        certainty = Certainty.NOT_TESTED
        more["reason"] = Reason.FAILED
    more.setdefault("evidence", (f"{subject.node}/{subject.quantity}",))
    return Claim(
        Kind.MEASURED,
        subject,
        certainty,
        last=last,
        beside=(*beside, *of, *named),
        **more,
    )
