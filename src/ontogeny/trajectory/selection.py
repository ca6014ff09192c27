"""A thinner trajectory: which of the steps that exist to keep."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError, check_choice, check_whole

SPACINGS = ("log", "linear")


def check_step(name: str, value: object) -> int:
    """Return `value` as a step: an integer, zero or more.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    try:
        step = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        step = -1
    if step < 0:
        raise ArgumentError(f"{name} must be an integer, zero or more; got {value!r}.")
    return step


def spread(steps: Sequence[int], count: int, spacing: str) -> list[int]:
    """Return `count` of the increasing `steps`, spread evenly, the first and the last among them.

    ``"log"`` spreads the positive steps evenly in their logarithm and keeps step 0 beside them;
    ``"linear"`` spreads all of them evenly. The chosen steps are the subset nearest to the ideal
    positions (smallest sum of distances). All steps are kept if there are no more than `count`.

    Raises
    ------
    ArgumentError
        If `count` is below 2 or `spacing` is unknown.

    Examples
    --------
    >>> spread([0, 1, 2, 4, 8, 16, 32, 64], 4, "log")
    [0, 1, 8, 64]
    """
    check_choice("spacing", spacing, SPACINGS)
    check_whole("count", count, 2)  # the first and the last
    if len(steps) <= count:
        return list(steps)
    if spacing == "linear":
        return _nearest(list(steps), np.asarray(steps, dtype=np.float64), count)
    zero = [s for s in steps if s == 0]
    positive = [s for s in steps if s > 0]
    return zero + _nearest(positive, np.log(positive), count - len(zero))


def _nearest(steps: list[int], position: np.ndarray, count: int) -> list[int]:
    """Return the increasing choice of `count` steps nearest to evenly spaced positions.

    Dynamic programme over (targets, steps): the best choice whose j-th member is step i.
    """
    if count == 1:
        return steps[-1:]
    targets = np.linspace(position[0], position[-1], count)
    total = np.abs(position - targets[0])
    came_from = []
    for target in targets[1:]:
        best = np.minimum.accumulate(total)
        first = np.r_[True, total[1:] < best[:-1]]
        origin = np.maximum.accumulate(np.where(first, np.arange(len(steps)), 0))
        came_from.append(np.r_[-1, origin[:-1]])
        total = np.r_[np.inf, best[:-1]] + np.abs(position - target)
    index = len(steps) - 1
    indices = [index]
    for origins in reversed(came_from):
        index = int(origins[index])
        indices.append(index)
    return [steps[i] for i in reversed(indices)]
