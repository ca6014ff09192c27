"""What predicts a concept's code: the token, its neighbours, or its place."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ....arrays import Array
from ....inputs import Inputs
from ....inputs.sampling import TokenSample
from ....units import Units
from .rows import Kinds, check_units, described

POSITIONS = ("token", "token before", "token after", "place")
EXACT = 8  # places that are distinguished; later ones by their power of two


def enrichment(codes: Array, inputs: Inputs, sample: TokenSample) -> xr.Dataset:
    """Return how much of each code the token, its neighbours and its place predict.

    A code is predicted by its mean over the same token in the other units of texts; a token that
    no other unit holds, by their mean over all tokens. The share of variance explained is 1 -
    (squared error) / (squared error of that mean over all tokens): leaving a unit out, it is
    about 0 for what predicts nothing, and is cut there.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.

    Returns
    -------
    xarray.Dataset
        ``enrichment(concept, position)``, 0 to 1, with `position` ``token``, ``token before``,
        ``token after`` and ``place`` (the first eight places of a text one by one, later ones by
        powers of two).

    Raises
    ------
    ArgumentError
        If codes and sample disagree, or all rows come from one unit of texts.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> inputs = Inputs.from_tokens(np.random.default_rng(0).integers(0, 20, (30, 20)))
    >>> codes = np.zeros((600, 2))
    >>> codes[:, 0] = inputs.ids.ravel() == 7
    >>> codes[1:, 1] = inputs.ids.ravel()[:-1] == 7  # the token before
    >>> enrichment(codes, inputs, inputs.sample()).enrichment.values.round(1).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.9, 0.0, 0.0]]
    """
    values, rows = described(codes, inputs, sample)
    check_units(rows.units)
    predictors = (rows.ids(), rows.ids(-1), rows.ids(1), _bins(sample.position))
    base = _other_means(values, Kinds(np.arange(rows.units.count), rows.units.place))
    error = ((values - base) ** 2).sum(axis=0)
    explained = [
        _explained(values, Kinds.of(p), rows.units, base, error) for p in predictors
    ]
    return xr.Dataset(
        {"enrichment": (("concept", "position"), np.stack(explained, axis=1))},
        coords={"position": list(POSITIONS)},
    )


def _bins(position: np.ndarray) -> np.ndarray:
    """Return the bin of each place; -1 for means of texts."""
    later = EXACT + np.floor(np.log2(np.maximum(position, EXACT) / EXACT)).astype(int)
    return np.where(position < EXACT, position, later)


def _other_means(values: np.ndarray, units: Kinds) -> np.ndarray:
    """Return (n, r) means over the rows of all other units."""
    sums = units.sums(values)
    counts = units.counts()
    means = (sums.sum(axis=0) - sums) / (counts.sum() - counts)[:, None]
    return np.asarray(means[units.place])


def _explained(
    values: np.ndarray, kinds: Kinds, units: Units, base: np.ndarray, error: np.ndarray
) -> np.ndarray:
    """Return (r,) the share of `error` that the means of each kind in other units take away."""
    cells = Kinds.of(kinds.place * units.count + units.place)  # a kind in a unit
    kind = cells.values // units.count
    others = (kinds.counts()[kind] - cells.counts())[cells.place]
    has_others = others > 0
    sums = (kinds.sums(values)[kind] - cells.sums(values))[cells.place]
    predicted = np.where(
        has_others[:, None], sums / np.where(has_others, others, 1)[:, None], base
    )
    residual = ((values - predicted) ** 2).sum(axis=0)
    return np.where(
        error > 0, np.maximum(1 - residual / np.where(error > 0, error, 1.0), 0.0), 0.0
    )
