"""What was asked for and could not be had, in words: a proposal never changes it in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def not_as_asked(
    sets: Sequence[str],
    length: int | None,
    asked: Mapping[str, Any],
    had: Mapping[str, Any],
) -> list[str]:
    """Return a line for each value that was said and is another one in the study file.

    Parameters
    ----------
    sets
        What was set, as ``"controls.count=3"``.
    length
        The length of texts that was said otherwise.
    asked, had
        The content of the study file as it was asked for, and as it is.

    Examples
    --------
    >>> asked, had = ({"controls": {"count": count}, "inputs": {}} for count in (3, 4))
    >>> not_as_asked(["controls.count=3"], None, asked, had)
    ['controls.count is 4, not 3 as asked: controls of a run that begins trained are pairs']
    """
    said = {assignment.partition("=")[0].strip() for assignment in sets}
    lines = []
    wished = asked["controls"].get("count")
    count = had["controls"].get("count")
    if "controls.count" in said and wished != count:
        pairs = "controls of a run that begins trained are pairs"
        why = pairs if count else "one model has no course that a control could follow"
        lines.append(f"controls.count is {count}, not {wished} as asked: {why}")
    if "inputs.max_length" in said:
        length = asked["inputs"].get("max_length")
    longest = had["inputs"].get("max_length")
    if isinstance(length, int) and isinstance(longest, int) and longest < length:
        lines.append(
            f"inputs.max_length is {longest}, not {length} as asked: the model takes no longer text"
        )
    return lines
