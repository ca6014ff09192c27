"""How a row of the chart stands, as a value: its kind, and what that kind has beside."""

from __future__ import annotations

from dataclasses import dataclass

# Of what several runs show together.
EVERY, SOME, NO = "every", "some", "no"

# No more than motion gives, or not shown to be more.
NO_MORE = ("within", "outside")


@dataclass(frozen=True)
class State:
    """One way to stand.

    Parameters
    ----------
    kind
        ``"learned"``, ``"lost"``, ``"beyond"``; ``"outside"`` all control runs on one side, which
        does not show that it is beyond motion; ``"within"`` what controls give, ``"too few
        controls"``, ``"uncontrolled"``, ``"none"`` (noise or chance), ``"motion"``, or why it is
        not judged (`ontogeny.words.reasons.UNJUDGED`). Of several runs `EVERY`, `SOME` or `NO`.
    of
        On which side of the controls it lies (`ontogeny.words.rows.Row.side`), or what the runs
        show: ``"learned"``, ``"beyond"``, ``"mixed"``, ``"changed"``.
    few
        Whether more control runs would decide.
    """

    kind: str
    of: str = ""
    few: bool = False
