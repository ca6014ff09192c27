"""Dictionaries averaged over the checkpoints of a regime, three ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ontogeny.arrays import Array, matrix, numpy_matrix, to_numpy
from ontogeny.errors import ArgumentError, check_choice

from ..distances.alignment import aligned_to

AVERAGES = ("aligned", "unaligned", "report-code")


def average_dictionary(
    stack: Array,
    how: str = "aligned",
    *,
    reference: Array | None = None,
    group: int = 24,
) -> np.ndarray:
    """Average the dictionaries of several checkpoints into one cloud of concepts.

    Parameters
    ----------
    stack
        Dictionaries W_t, (T, m, r).
    how
        ``"aligned"``: each W_t is permuted and signed to fit `reference` first, so that a concept
        is averaged with itself; ``"unaligned"``: concept j with whatever the solver returned
        j-th, the mean of Algorithm 4; ``"report-code"``: what the report's code computes, means
        of `group` *consecutive concepts* of the dictionaries laid end to end, which averages
        neighbouring concepts of one checkpoint and no concept over checkpoints.
    reference
        Dictionary (m, r) that fixes order and signs; the last of the stack by default.
    group
        Concepts that ``"report-code"`` averages (24 in the report); fewer than two groups are
        refused.

    Returns
    -------
    numpy.ndarray
        Averaged concepts, one a row, (r, m) or (number of groups, m), float64.

    Raises
    ------
    ArgumentError
        If `stack` is not (T, m, r), `how` is unknown, or too few concepts are there to group.

    Notes
    -----
    Algorithm 4 as printed extracts each W_t from the mean activation of its checkpoint, which is
    one vector and has no r concepts. None of these do so: the dictionaries are those of all tokens.

    References
    ----------
    Bernas (2025), Algorithm 4, Table 3 and footnote 45.

    Examples
    --------
    >>> W = np.random.default_rng(0).normal(size=(6, 4))
    >>> turned = np.stack([W, -W[:, [1, 0, 3, 2]]])
    >>> bool(np.allclose(average_dictionary(turned, reference=W), W.T))
    True
    """
    W = numpy_matrix("stack", stack, ndim=3)
    check_choice("how", how, AVERAGES)
    if how == "unaligned":
        return W.mean(axis=0).T
    if how == "report-code":
        return _consecutive(W, group)
    base = W[-1] if reference is None else to_numpy(matrix("reference", reference))
    if base.shape != W.shape[1:]:
        raise ArgumentError(
            f"reference must have the shape {W.shape[1:]} of a dictionary; got {base.shape}."
        )
    return aligned_to(base.astype(float), W).mean(axis=0).T


def _consecutive(W: np.ndarray, group: int) -> np.ndarray:
    rows = W.transpose(0, 2, 1).reshape(-1, W.shape[1])
    count = len(rows) // group if group >= 1 else 0
    if count < 2:
        raise ArgumentError(
            f"group must leave at least two groups of the {len(rows)} concepts of all steps; "
            f"got {group}."
        )
    return rows[: count * group].reshape(count, group, -1).mean(axis=1)


def window_steps(
    steps: Sequence[int] | np.ndarray, window: tuple[float, float]
) -> np.ndarray:
    """Return which of `steps` lie in the closed interval `window`, as truth values (T,).

    Raises
    ------
    ArgumentError
        If the window is no pair, is reversed, or holds no step.

    Examples
    --------
    >>> window_steps([0, 10, 20], (5, 20)).tolist()
    [False, True, True]
    """
    try:
        low, high = (float(end) for end in window)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"a window must be a pair of steps; got {window!r}."
        ) from None
    steps = np.asarray(steps)
    if not low <= high:
        raise ArgumentError(
            f"a window must go from a lower to a higher step; got {window}."
        )
    inside = (steps >= low) & (steps <= high)
    if not inside.any():
        raise ArgumentError(
            f"the window {low:g} to {high:g} holds none of the steps {steps[0]} to {steps[-1]}."
        )
    return inside
