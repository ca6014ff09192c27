"""The tokens that carry most of a concept."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ....arrays import Array
from ....errors import check_whole
from ....inputs import Inputs
from ....inputs.sampling import TokenSample
from .rows import BEYOND, Kinds, described, squared


def strongest_tokens(
    codes: Array, inputs: Inputs, sample: TokenSample, n_tokens: int = 5
) -> xr.Dataset:
    """Return the tokens that carry most of each concept's squared code.

    Only the positive side of a code counts, after `orientation`.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    n_tokens
        How many tokens.

    Returns
    -------
    xarray.Dataset
        ``token_id(concept, rank)``, most first, of equals the smaller id first; -1 where fewer
        tokens fire, and for rows that are means of texts. ``token_share(concept, rank)``, their
        shares of the squared code, 0 to 1. ``firing(concept)``, the share of rows where the code
        is above 0.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, or `n_tokens` is no positive whole number.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[7, 8, 7], [9, 7, 8]])
    >>> tokens = strongest_tokens(
    ...     [[3], [0], [3], [1], [3], [0]], inputs, inputs.sample(), 2
    ... )
    >>> tokens.token_id.values.tolist(), tokens.token_share.values.round(2).tolist()
    ([[7, 9]], [[0.96, 0.04]])
    >>> tokens.firing.values.round(2).tolist()
    [0.67]
    """
    n_tokens = check_whole("n_tokens", n_tokens)
    values, rows = described(codes, inputs, sample)
    kinds = Kinds.of(rows.ids())
    ids, shares = leading_tokens(kinds, kinds.sums(squared(values)), n_tokens)
    return xr.Dataset(
        {
            "token_id": (("concept", "rank"), ids),
            "token_share": (("concept", "rank"), shares),
            "firing": ("concept", (values > 0).mean(axis=0)),
        }
    )


def leading_tokens(
    kinds: Kinds, carried: np.ndarray, n_tokens: int
) -> tuple[np.ndarray, ...]:
    """Return ids (r, n_tokens) and shares of the tokens that carry most of (kinds, r)."""
    total = carried.sum(axis=0)
    order = np.argsort(-carried, axis=0, kind="stable")[:n_tokens].T
    amount = np.take_along_axis(carried.T, order, axis=1)
    fires = (amount > 0) & (kinds.values[order] != BEYOND)
    shares = np.where(fires, amount / np.where(total > 0, total, 1.0)[:, None], 0.0)
    ids = np.where(fires, kinds.values[order], BEYOND)
    missing = ((0, 0), (0, n_tokens - order.shape[1]))
    return np.pad(ids, missing, constant_values=BEYOND), np.pad(shares, missing)
