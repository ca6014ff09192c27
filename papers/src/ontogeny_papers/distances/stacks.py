"""Stacks of dictionaries, one a step: labels of steps, and parts of a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ontogeny.arrays import Array, namespace
from ontogeny.distances.pair import Factors
from ontogeny.errors import ArgumentError


def prepared(factors: Factors, *, svd: bool) -> Factors:
    """Compute now what `part` hands on: norms and, if asked for, the SVD."""
    _ = (factors.squares, factors.lengths, factors.svd if svd else None)
    return factors


def part(factors: Factors, index: Any) -> Factors:
    """Return some members of the stack, with what is already computed of them."""
    return _changed(factors, lambda array: array[index])


def repeated(factors: Factors, row: int, count: int) -> Factors:
    """Return one member `count` times, without copying it."""
    xp = namespace(factors.stack)
    return _changed(factors, lambda x: xp.broadcast_to(x[row], (count, *x.shape[1:])))


def _changed(factors: Factors, change: Callable[[Array], Array]) -> Factors:
    result = Factors(change(factors.stack), factors.floor)
    for name in ("squares", "lengths"):
        if name in factors.__dict__:
            result.__dict__[name] = change(factors.__dict__[name])
    if "svd" in factors.__dict__:
        result.__dict__["svd"] = tuple(change(array) for array in factors.svd)
    return result


def step_labels(steps: Sequence[int] | np.ndarray | None, count: int) -> np.ndarray:
    """Return labels of `count` steps, 0 to count - 1 if `steps` is None.

    Raises
    ------
    ArgumentError
        If there are more or fewer of them, two are equal, or numbers do not increase.

    Examples
    --------
    >>> step_labels([0, 100, 50], 3)
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: steps must increase; 50 follows 100. Sort the stack by its steps.
    """
    labels = np.arange(count) if steps is None else np.asarray(steps)
    if labels.shape != (count,):
        raise ArgumentError(f"steps must name the {count} steps; its shape is {labels.shape}.")
    distinct, times = np.unique(labels, return_counts=True)
    if len(distinct) < count:
        twice, often = distinct[times > 1][0], times[times > 1][0]
        raise ArgumentError(f"steps must differ; {twice} stands there {often} times.")
    if labels.dtype.kind in "iuf" and (at := np.flatnonzero(~(labels[1:] > labels[:-1]))).size:
        before, after = labels[at[0]], labels[at[0] + 1]
        raise ArgumentError(
            f"steps must increase; {after} follows {before}. Sort the stack by its steps."
        )
    return labels
