"""What the first checkpoint gives of activations, and what is left.

Each part is predicted on texts that it was not taken from. All is sums over tokens, so that memory
is linear in them.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

RIDGE = 1e-3  # of linear predictions, against the mean variance of a feature


def scale_of(X: np.ndarray) -> np.ndarray:
    """Return (m,) standard deviations; 1 of features that do not vary."""
    spread = np.sqrt(np.einsum("nm,nm->m", X, X, dtype=np.float64) / len(X))
    return np.where(spread > 1e-6 * max(spread.max(initial=0.0), 1e-30), spread, 1.0)


def scaled(X: np.ndarray) -> np.ndarray:
    """Return rows (n, m) centred, every feature with variance 1; 0 where one does not vary."""
    X = X - X.mean(axis=0)
    # In place, as a quotient in double precision would take twice the memory.
    X /= scale_of(X)
    return np.asarray(X, dtype=np.float32)


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

    def left(self, Y: np.ndarray) -> np.ndarray:
        """Return what is not predicted of Y (n, r) on texts that the weights do not know.

        All of Y where the prediction is worse than none, as that from more features than tokens.
        """
        rest = self.of(Y)
        np.subtract(Y, rest, out=rest)
        return rest if np.vdot(rest, rest) < np.vdot(Y, Y) else Y

    def readable(self, Y: np.ndarray) -> np.ndarray:
        """Return the correlation (2, r) of Y with its prediction, on the half not fitted to.

        Row i is on the half of the texts that `halves[i]` names.
        """
        return np.stack([self._agreement(Y, side) for side in (0, 1)])

    def _agreement(self, Y: np.ndarray, side: int) -> np.ndarray:
        """Return the correlation (r,) on one half of the texts; of it alone codes are in memory."""
        rows = self.halves[side]
        predicted = scaled(self.X[rows] @ self.weights(Y, 1 - side))
        true = scaled(Y[rows])
        return np.einsum("nr,nr->r", predicted, true) / len(true)
