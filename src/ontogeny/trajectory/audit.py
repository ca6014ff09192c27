"""What digests and file listings prove about a trajectory."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import CheckpointError
from .configuration import changes
from .digests import non_finite
from .findings import Finding, Findings, join_steps
from .layout import Catalogue
from .tokenizers import changed_files

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .trajectory import Trajectory

__all__ = ["audit", "holes"]

_ENOUGH = 2  # equal differences between steps that make a stretch evenly spaced
_SHOWN = 5  # names in one sentence


def audit(trajectory: Trajectory) -> Findings:
    """Return the findings on `trajectory`, those about weights first."""
    catalogue = trajectory.catalogue
    found: list[Finding] = []
    reach = (trajectory.checkpoints[0].step, trajectory.checkpoints[-1].step)
    checkpoints, broken = _readable(trajectory.checkpoints)
    found.extend(broken)
    for check in (_identical, _non_finite, _configuration, _tokenizer):
        found.extend(check(checkpoints))
    found.extend(_missing(catalogue, reach))
    found.extend(_left_behind(catalogue))
    return Findings(found)


def _readable(checkpoints: Sequence[Checkpoint]) -> tuple[list[Checkpoint], list[Finding]]:
    """Return the checkpoints that can still be read, and a finding for each other one."""
    readable, broken = [], []
    for checkpoint in checkpoints:
        try:
            checkpoint.digests()
            checkpoint.configuration()
        except (CheckpointError, OSError) as error:
            text = f"step {checkpoint.step} cannot be read: {error}"
            broken.append(Finding("unreadable", "certain", (checkpoint.step,), text))
        else:
            readable.append(checkpoint)
    return readable, broken


def _identical(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    groups: dict[tuple, list[int]] = {}
    for checkpoint in checkpoints:
        content = tuple(sorted(checkpoint.digests().items()))
        groups.setdefault(content, []).append(checkpoint.step)
    for steps in groups.values():
        if len(steps) > 1:
            text = f"{join_steps(steps)} hold the same weights, byte for byte"
            yield Finding("identical", "certain", tuple(steps), text)


def _non_finite(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    for checkpoint in checkpoints:
        names = non_finite(checkpoint.weights)
        if names:
            text = f"step {checkpoint.step} holds NaN or infinity in {_some(names)}"
            yield Finding("non-finite", "certain", (checkpoint.step,), text)


def _configuration(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    for before, after in itertools.pairwise(checkpoints):
        changed = changes(before.configuration(), after.configuration())
        if changed:
            text = f"the configuration changes at step {after.step}: {_some(changed, '; ')}"
            yield Finding("configuration", "certain", (after.step,), text)
            continue
        old, new = _signature(before), _signature(after)
        if old != new:
            names = sorted(name for name in old | new if old.get(name) != new.get(name))
            text = f"name, shape or dtype changes at step {after.step} in {_some(names)}"
            yield Finding("configuration", "certain", (after.step,), text)


def _signature(checkpoint: Checkpoint) -> dict[str, tuple]:
    with checkpoint.open() as reader:
        return {name: (reader.shape(name), reader.dtype(name)) for name in reader.names()}


def _tokenizer(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    for before, step, names in changed_files(checkpoints):
        text = f"the tokenizer changes between steps {before} and {step} ({_some(names)})"
        yield Finding("tokenizer", "certain", (step,), text)


def _missing(catalogue: Catalogue, reach: tuple[int, int]) -> Iterator[Finding]:
    there = set(catalogue.steps) | {step for step, _ in catalogue.incomplete}
    if catalogue.planned is not None:
        absent, certainty = sorted(set(catalogue.planned) - there), "certain"
        why = "which the recorder had planned"
    else:
        absent, certainty = holes(sorted(there)), "likely"
        why = "in an otherwise evenly spaced stretch"
    absent = [step for step in absent if reach[0] <= step <= reach[1]]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        text = f"{join_steps(absent)}, {why}, {verb} missing"
        yield Finding("missing", certainty, tuple(absent), text)


def holes(steps: Sequence[int]) -> list[int]:
    """Return the steps absent from the evenly spaced stretch of increasing `steps`.

    The stretch reaches from the first to the last occurrence of the commonest difference, if
    that occurs at least twice and every step in between lies on its grid.

    Examples
    --------
    >>> holes([0, 100, 200, 400, 500])
    [300]
    >>> holes([0, 1, 2, 4, 8, 16])
    []
    """
    pairs = list(itertools.pairwise(steps))
    counts = Counter(after - before for before, after in pairs)
    gap, count = max(counts.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
    if count < _ENOUGH:
        return []
    first = next(before for before, after in pairs if after - before == gap)
    last = next(after for before, after in reversed(pairs) if after - before == gap)
    stretch = [step for step in steps if first <= step <= last]
    if any((step - first) % gap for step in stretch):
        return []
    return sorted(set(range(first, last, gap)) - set(stretch))


def _left_behind(catalogue: Catalogue) -> Iterator[Finding]:
    for step, why in catalogue.incomplete:
        yield Finding("incomplete", "certain", (step,), f"step {step} is left out: {why}")
    if catalogue.temporary:
        text = f"an interrupted save left {_some(catalogue.temporary)} behind"
        yield Finding("temporary", "certain", (), text)


def _some(names: Sequence[str], separator: str = ", ") -> str:
    more = len(names) - _SHOWN
    return separator.join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
