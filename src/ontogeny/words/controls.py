"""What a control run is, said once where controls first appear."""

from __future__ import annotations

from .content import Content

_START = "start from the same weights and"
_NOT_LEARNED = ": what changes there too is not learning"
WHAT_THEY_DO = {
    "turned": f"{_START} move as far at every step, in random directions{_NOT_LEARNED}",
    "mirrored": f"{_START} move as far at every step, in random directions and back{_NOT_LEARNED}",
    "walk": f"{_START} take random steps as long as the run’s{_NOT_LEARNED}",
    "line": "go straight from the run’s first weights to its last",
    "shuffled": f"{_START} move as far at every step, in the run’s directions in another order",
}
"""What control runs of each computed kind do; others are trained, on texts without sense."""

_TRAINED = "are trained in the same way on tokens without sense" + _NOT_LEARNED


def explained(content: Content, subject: str = "They") -> str:
    """Say what the control runs of a study do; nothing where there are none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> explained(SimpleNamespace(controls=["walk 0"]))  # doctest: +ELLIPSIS
    'They start from the same weights and take random steps as long as the run’s: what changes ...'
    """
    kinds = dict.fromkeys(_kind(name) for name in content.controls)
    words = dict.fromkeys(WHAT_THEY_DO.get(kind, _TRAINED) for kind in kinds)
    return f"{subject} {'; or '.join(words)}." if words else ""


def _kind(name: str) -> str:
    start, _, number = name.rpartition(" ")
    return start if number.isdigit() else name
