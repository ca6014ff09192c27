"""The parts of an activation: what the token gives, what the first checkpoint gives, what is left.

Each part is predicted on texts that it was not taken from. All is sums over tokens, so that memory
is linear in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy import sparse

from ...quantities import Measured

PRIOR = 3.0  # places of the mean over all tokens, that a token's mean is shrunk by
RIDGE = 1e-3  # of linear predictions, against the mean variance of a feature


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
    return np.asarray(A - A.mean(axis=0, dtype=np.float64), dtype=np.float32)


def scale_of(X: np.ndarray) -> np.ndarray:
    """Return (m,) standard deviations; 1 of features that do not vary."""
    spread = np.sqrt(np.einsum("nm,nm->m", X, X, dtype=np.float64) / len(X))
    return np.where(spread > 1e-6 * max(spread.max(initial=0.0), 1e-30), spread, 1.0)


def scaled(X: np.ndarray) -> np.ndarray:
    """Return rows (n, m) centred, every feature with variance 1; 0 where one does not vary."""
    X = X - X.mean(axis=0)
    return np.asarray(X / scale_of(X), dtype=np.float32)


class Predictor:
    """Linear predictions from rows X (n, m): of each half of the texts by the other one.

    Parameters
    ----------
    X
        (n, m) of `scaled`.
    half
        (n,) True for the tokens of one half of the texts.
    """

    def __init__(self, X: np.ndarray, half: np.ndarray) -> None:
        self.X = X
        self.halves = (half, ~half)
        self._moments = [X[rows].T @ X[rows] for rows in self.halves]

    def weights(self, Y: np.ndarray, side: int | None = None) -> np.ndarray:
        """Return weights (m, r) that predict Y (n, r), from one half of the texts or from all."""
        sides = (0, 1) if side is None else (side,)
        moment = sum(self._moments[i] for i in sides).astype(np.float64)
        moment.flat[:: len(moment) + 1] += (
            RIDGE * max(np.trace(moment), 1e-30) / len(moment)
        )
        products = np.zeros((len(moment), Y.shape[1]))
        for i in sides:
            aim = Y[self.halves[i]]
            products += self.X[self.halves[i]].T @ (aim - aim.mean(axis=0))
        solved = scipy.linalg.solve(
            moment, products, assume_a="pos", check_finite=False
        )
        return np.asarray(solved, dtype=np.float32)

    def of(self, Y: np.ndarray) -> np.ndarray:
        """Return what is predicted of Y (n, r) on texts that the weights do not know."""
        predicted = np.empty_like(Y)
        for side in (0, 1):
            other = self.halves[1 - side]
            predicted[other] = self.X[other] @ self.weights(Y, side)
        return predicted

    def readable(self, Y: np.ndarray) -> np.ndarray:
        """Return the correlation (2, r) of Y with its prediction, on the half not fitted to.

        Row i is on the half of the texts that `halves[i]` names.
        """
        predicted = self.of(Y)
        pairs = [(predicted[rows], Y[rows]) for rows in self.halves]
        return np.stack(
            [np.einsum("nr,nr->r", scaled(P), scaled(Q)) / len(P) for P, Q in pairs]
        )
