"""What an attention head does on a repeated sequence, as numbers between 0 and 1.

A sequence of random tokens says nothing by itself. Where it is repeated, a head that attends to an
earlier copy of a token, or to what followed it, can only have found it by the token. All functions
take NumPy arrays or PyTorch tensors.
"""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, check_whole

SCORES = ("previous-token", "duplicate-token", "induction")
"""What `head_scores` returns, in this order."""


def head_scores(maps: Any, period: int) -> tuple[Any, Any, Any]:
    """Return the three scores of attention maps on sequences whose second half repeats the first.

    Parameters
    ----------
    maps
        (..., 2 p, 2 p) attention of each query (rows) to each key (columns). Tokens around the
        sequence, such as a start token, are cut off; what they are given counts as given elsewhere.
    period
        p, the length of one half.

    Returns
    -------
    tuple of arrays of shape (...)
        Mean attention of a token to the token before it (previous-token score); of a token of the
        second half to its copy in the first (duplicate-token score); and to the token after that
        copy (induction score, also called prefix-matching score).

    Raises
    ------
    ArgumentError
        If the maps are not of that shape, or the period is below 3, where scores coincide.

    Notes
    -----
    C. Olsson et al., *In-context learning and induction heads*, 2022, "Head activation evaluators".

    Examples
    --------
    >>> import numpy as np
    >>> maps = np.zeros((6, 6))
    >>> maps[np.arange(3, 6), np.arange(1, 4)] = 1.0  # each looks at what followed its copy
    >>> [float(score) for score in head_scores(maps, 3)]
    [0.0, 0.0, 1.0]
    """
    check_whole("period", period, 3)
    if tuple(maps.shape[-2:]) != (2 * period, 2 * period):
        raise ArgumentError(
            f"maps must have the shape (..., {2 * period}, {2 * period}) for a period of {period}; "
            f"got {tuple(maps.shape)}."
        )
    before, copy, after = (maps.diagonal(-back, -2, -1) for back in (1, period, period - 1))
    # The first query of the last diagonal belongs to the first half.
    return before.mean(-1), copy.mean(-1), after[..., 1:].mean(-1)
