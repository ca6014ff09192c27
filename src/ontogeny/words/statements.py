"""A sentence or heading, with the claims that it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims import Certainty, Claim


@dataclass(frozen=True)
class Said:
    """One sentence or heading, the claims that it is made of, and how it ends.

    ``rest`` is its end, a date or a doubt, and ``phrases`` are the names of those before it.
    """

    text: str
    claims: tuple[Claim, ...] = ()
    rest: str = ""
    phrases: frozenset[str] = frozenset()

    @property
    def lead(self) -> str:
        """What happened, before `rest`."""
        return self.text.removesuffix(self.rest).rstrip()

    @property
    def is_sure(self) -> bool:
        """Whether any of its claims is sure."""
        return any(claim.certainty is Certainty.SURE for claim in self.claims)

    def tells(self, other: Said) -> bool:
        """Return whether it says what happened in all claims of another one."""
        own, others = ({(c.kind, c.subject) for c in s.claims} for s in (self, other))
        return bool(others) and others <= own

    def covers(self, other: Said) -> bool:
        """Return whether it is another one, or has all its phrases on the same claims."""
        return self is other or (self.tells(other) and other.phrases <= self.phrases)
