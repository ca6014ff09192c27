"""Why a change is not called one: a sentence names the test that decided, and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..dynamics.reasons import Reason
from .formats import p_words


class Row(Protocol):
    """What is asked of a row here (`ontogeny.words.rows`, which reads this file)."""

    @property
    def reason(self) -> str:
        """Which test decided that it did not change."""

    @property
    def steps(self) -> np.ndarray:
        """Its steps."""

    @property
    def p_value(self) -> float:
        """Of the corrected test."""

    @property
    def p_order(self) -> float:
        """Against any order."""

    @property
    def p_slow(self) -> float:
        """Against slow noise."""


# States of rows of which nothing can be said, the least known last, with their reasons.
STATES_OF = {
    Reason.SLOW: "slow",
    Reason.REFERENCE: "memory",
    Reason.MANY: "many",
    Reason.FEW: "few",
    Reason.UNMEASURED: "unmeasured",
}
UNJUDGED = {
    "slow": "slow noise, such as a random walk, could look the same",
    "memory": "noise that is correlated between checkpoints could look the same",
    "many": "too few checkpoints to tell a change from chance in so many rows",
    "few": "too few checkpoints to tell a change from chance",
    "unmeasured": "the noise was not measured",
}

# Of rows that are judged and did not change: what their change is, in a few words.
NOT_CHANGED = {
    Reason.WITHIN: "within noise",
    Reason.ORDER: "by more than noise, in an order of checkpoints that chance may give",
    Reason.SHORT: "by more than noise, on a course that noise between checkpoints may give",
    Reason.EXAMPLES: "in no more examples than turn by chance (exact test)",
}

# The same of a row that went from one value to another, and of one that cannot be judged.
MAY_GIVE = {
    Reason.ORDER: "chance may give {steps:,} checkpoints such an order",
    Reason.SHORT: "noise between checkpoints may give such a course",
    Reason.EXAMPLES: "by the exact test of the same examples, chance may turn as many",
    Reason.SLOW: "slow noise of the run, such as a random walk, may give such a course",
}


def reason_p(row: Row) -> float:
    """Return the p-value of the test that decided that a row did not change."""
    tests = {Reason.ORDER: row.p_order, Reason.SLOW: row.p_slow}
    return tests.get(Reason(row.reason), row.p_value)


def may_give(rows: Sequence[Row], reason: Reason) -> str:
    """Say what may give the course of rows that moved; of one row with its p-value."""
    words = MAY_GIVE[reason].format(steps=len(rows[0].steps))
    return words if len(rows) > 1 else f"{words} ({p_words(reason_p(rows[0]))})"


def not_changed(rows: Sequence[Row]) -> str:
    """Say of how many rows what decided that they did not change; of one row only what."""
    counts = Counter(row.reason for row in rows)
    alike = [(counts[reason], words) for reason, words in NOT_CHANGED.items() if counts[reason]]
    if len(rows) == 1:
        return f"it moved {alike[0][1]}"
    return "; ".join(f"{count:,} moved {words}" for count, words in alike)
