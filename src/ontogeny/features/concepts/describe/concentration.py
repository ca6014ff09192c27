"""How much of a concept lies on three tokens."""

from __future__ import annotations

import numpy as np

from ....arrays import Array
from ....inputs import Inputs
from ....inputs.sampling import TokenSample
from .halves import confirmations
from .rows import described


def concentration(
    codes: Array, inputs: Inputs, sample: TokenSample, random_state: int = 0
) -> np.ndarray:
    """Return the share of each concept's squared code that three tokens carry.

    The three tokens that carry most are chosen on one half of the units of texts, and their share
    is measured on the other half; the mean of both directions. A concept that fires on three rows
    in all therefore gets a high share only if they are of the same tokens in both halves. Only
    the positive side of a code counts, after `orientation`.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    random_state
        Seed of the halves.

    Returns
    -------
    numpy.ndarray
        (r,) 0 to 1; 0 for a concept that fires in one half alone or nowhere; NaN for rows that
        are means of texts, which have no token.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, or all rows come from one unit of texts.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[7, 8, 9], [9, 7, 8], [6, 5, 7]])
    >>> codes = (inputs.ids == 7).reshape(-1, 1)
    >>> concentration(codes, inputs, inputs.sample())
    array([1.])
    """
    values, rows = described(codes, inputs, sample)
    if not rows.has_tokens:
        return np.full(values.shape[1], np.nan)
    halves = confirmations(values, rows, random_state)
    return np.asarray(np.mean([half.share for half in halves], axis=0))
