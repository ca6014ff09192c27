"""Which concept of one fit is which of another, by their codes on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Array, matrix, namespace, to_numpy
from ...distances.matching import assignments
from ...errors import ArgumentError


@dataclass(frozen=True, eq=False)
class CodeMatching:
    """A one-to-one assignment of concepts, with signs.

    Parameters
    ----------
    order
        (r,): concept ``order[j]`` of the second fit is concept j of the first.
    signs
        (r,): +1 or -1, so that the matched codes correlate positively.
    correlation
        (r,): absolute correlation of each concept with its match; 0 for a constant code.
    """

    order: np.ndarray
    signs: np.ndarray
    correlation: np.ndarray

    def apply(self, V: Array) -> Array:
        """Return codes of the second fit (n, r) in the order and with the signs of the first."""
        V = matrix("V", V)
        if V.shape[1] != len(self.order):
            raise ArgumentError(f"V must have {len(self.order)} columns; it has {V.shape[1]}.")
        xp = namespace(V)
        signs = xp.asarray(self.signs, dtype=V.dtype, device=V.device)
        return V[:, xp.asarray(self.order, device=V.device)] * signs


def match_codes(U: Array, V: Array) -> CodeMatching:
    """Match the concepts of V to those of U by the absolute correlation of their codes.

    Parameters
    ----------
    U, V
        Codes (n, r) of two fits on the same rows, such as those of an extractor fitted on other
        data and of one fitted on these rows.

    Raises
    ------
    ArgumentError
        If the shapes differ.

    Notes
    -----
    The assignment maximises the sum of absolute correlations (optimal, not greedy). It fits
    chance as well: match once, where both codes belong to one checkpoint, and use that everywhere.

    Examples
    --------
    >>> U = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = match_codes(U, np.stack([U[:, 2], -U[:, 0], U[:, 1]], axis=1))
    >>> found.order.tolist(), found.signs.tolist()
    ([1, 2, 0], [-1.0, 1.0, 1.0])
    """
    first, second = _standard("U", U), _standard("V", V)
    if first.shape != second.shape:
        raise ArgumentError(
            f"U and V must have the same shape (n, r); got {first.shape} and {second.shape}."
        )
    correlation = first.T @ second
    order = assignments(np.abs(correlation)[None])[0]
    chosen = correlation[np.arange(len(order)), order]
    signs = np.where(chosen < 0, -1.0, 1.0)
    return CodeMatching(order, signs, np.clip(np.abs(chosen), 0.0, 1.0))


def _standard(name: str, codes: Array) -> np.ndarray:
    """Return centred columns of length 1; columns that are constant up to rounding become 0."""
    values = to_numpy(matrix(name, codes)).astype(np.float64)
    size = np.abs(values).max(axis=0)
    values = values / np.where(size > 0, size, 1.0)
    centred = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    known = length > 1e-14 * len(values) ** 0.5
    return np.where(known, centred / np.where(known, length, 1.0), 0.0)
