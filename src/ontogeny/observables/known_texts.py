"""Texts as keys of a cache: what depends on them alone is computed once in a process."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..inputs import Inputs


@dataclass(frozen=True)
class KnownTexts:
    """An input set that is known by its fingerprint.

    Examples
    --------
    >>> one, same = (KnownTexts.of(Inputs.from_tokens([[1, 2]])) for _ in range(2))
    >>> one == same, hash(one) == hash(same)
    (True, True)
    """

    fingerprint: str
    inputs: Inputs = field(compare=False, repr=False)

    @classmethod
    def of(cls, inputs: Inputs) -> KnownTexts:
        """Return an input set with its fingerprint."""
        return cls(inputs.fingerprint, inputs)
