"""Activations without the current token: what the mean of a token's other places leaves.

All is sums over tokens, so that memory is linear in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..quantities import Measured

PRIOR = 3.0  # places of the mean over all tokens, that a token's mean is shrunk by
# Shares of the usual size of a code, above which a place is strong, and a concept is there at all.
STRONG = 0.75
THERE = 1 / 3


def indicator(labels: np.ndarray) -> sparse.csr_array:
    """Return (kinds, n) float32, 1 where a row has the kind.

    Examples
    --------
    >>> indicator(np.array([5, 7, 5])).toarray()
    array([[1., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """
    kinds, place = np.unique(labels, return_inverse=True)
    ones = np.ones(len(labels), dtype=np.float32)
    rows = np.arange(len(labels))
    return sparse.csr_array((ones, (place, rows)), shape=(len(kinds), len(labels)))


@dataclass(frozen=True, eq=False)
class Tokens:
    """Which token stands at each row, and which unit of texts the row comes from.

    Parameters
    ----------
    token
        (n,) ids.
    unit
        (n,) units of texts.
    """

    token: np.ndarray
    unit: np.ndarray

    def left(self, H: np.ndarray) -> np.ndarray:
        """Return centred activations (n, m) without the mean of the token's places in other texts.

        The mean is shrunk to that of all tokens, so that a token of one text loses nothing. With
        the mean of all its places a rare token would explain itself.

        Examples
        --------
        >>> same = Tokens(np.array([1, 1, 2]), np.array([0, 1, 2]))
        >>> same.left(np.array([[1.0], [1.0], [-2.0]])).ravel().tolist()
        [0.75, 0.75, -2.0]
        """
        _, kind = np.unique(self.token, return_inverse=True)
        _, pair = np.unique(
            kind * (self.unit.max() + 1) + self.unit, return_inverse=True
        )
        of_kind = indicator(kind)
        of_pair = indicator(pair)
        others = np.bincount(kind)[kind] - np.bincount(pair)[pair]
        sums = (of_kind @ H)[kind]
        sums -= (of_pair @ H)[pair]
        sums /= (others + PRIOR)[:, None].astype(H.dtype)
        return np.asarray(H - sums)

    def frequent(self, count: int) -> np.ndarray:
        """Return the ids of the tokens that stand at most rows, the commonest first."""
        kinds, places = np.unique(self.token, return_counts=True)
        return np.asarray(kinds[np.argsort(-places, kind="stable")[:count]])

    def of_each(self, H: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return the share of the squared length of H (n, m) that the mean of each token has.

        The mean is shrunk as in `left`.

        Examples
        --------
        >>> same = Tokens(np.array([1, 1, 2]), np.array([0, 1, 2]))
        >>> same.of_each(np.array([[3.0], [3.0], [-6.0]]), np.array([1, 2])).tolist()
        [0.05333333333333333, 0.041666666666666664]
        """
        kinds, kind, places = np.unique(
            self.token, return_inverse=True, return_counts=True
        )
        means = (indicator(kind) @ H) / (places + PRIOR)[:, None]
        squares = np.einsum("km,km->k", means, means, dtype=np.float64) * places
        whole = np.einsum("nm,nm->", H, H, dtype=np.float64)
        by_kind = dict(zip(kinds.tolist(), squares / max(whole, 1e-30), strict=True))
        return np.array([by_kind.get(token, 0.0) for token in tokens.tolist()])

    def share(self, part: np.ndarray, whole: np.ndarray) -> Measured:
        """Return the share of the squared length of `whole` (n, m) that `part` (n, m) has."""
        shares, total = self._shares(part, whole)
        value = float(shares @ total / total.sum())
        return Measured(value, of_text=("text", shares), weights=("text", total))

    def explained(self, left: np.ndarray, whole: np.ndarray) -> Measured:
        """Return the share of the squared length of `whole` (n, m) that is not in `left`."""
        shares, total = self._shares(left, whole)
        value = 1 - float(shares @ total / total.sum())
        return Measured(value, of_text=("text", 1 - shares), weights=("text", total))

    def _shares(
        self, part: np.ndarray, whole: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        sums = [_by_unit(values, self.unit) for values in (part, whole)]
        total = np.maximum(sums[1], 1e-30)
        return sums[0] / total, total


def _by_unit(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    squares = np.einsum("nm,nm->n", values, values, dtype=np.float64)
    return np.asarray(indicator(unit).astype(np.float64) @ squares)


def centred(A: np.ndarray) -> np.ndarray:
    """Return activations (n, m) as float32, less their mean."""
    rows = A.astype(np.float32)
    rows -= A.mean(axis=0, dtype=np.float64)
    return np.asarray(rows)


def strong(codes: np.ndarray, share: float = STRONG) -> np.ndarray:
    """Return (n, r) where codes are near their usual size, the mean weighted by their cubes.

    Weighted by squares, most strong places of a real model are those that several components are
    weakly at: of SmolLM2 a reader found the idea of the strongest places in 38 of 40 components, and
    in the middle of the strong ones in 19.

    Parameters
    ----------
    codes
        (n, r).
    share
        How near: of that size, the share that they have at least.

    Examples
    --------
    >>> strong(np.array([[0.0], [0.1], [2.0], [3.0], [-3.0]])).ravel().tolist()
    [False, False, False, True, False]
    """
    above = np.maximum(codes, 0).astype(np.float64)
    size = (above**4).sum(axis=0) / np.maximum((above**3).sum(axis=0), 1e-30)
    return np.asarray((codes > share * size) & (codes > 0))
