"""What activations and weight matrices look like: dimensions, similarity, distances."""

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment


def participation_ratio(A):
    """Return (Σλ)² / Σλ² of the variances λ of centred rows."""
    variances = np.linalg.svd(A - A.mean(axis=0), compute_uv=False) ** 2
    return variances.sum() ** 2 / (variances**2).sum()


def stable_rank(A):
    """Return the sum of the variances over the largest."""
    variances = np.linalg.svd(A - A.mean(axis=0), compute_uv=False) ** 2
    return variances.sum() / variances[0]


def entropy_rank(values):
    """Return exp of the entropy of singular values as shares (Roy and Vetterli 2007)."""
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def effective_rank(A):
    """Return the entropy rank of centred rows."""
    return entropy_rank(np.linalg.svd(A - A.mean(axis=0), compute_uv=False))


def anisotropy(A):
    """Return the mean cosine of two different rows."""
    unit = A / np.linalg.norm(A, axis=1, keepdims=True)
    cosines = unit @ unit.T
    return (cosines.sum() - np.trace(cosines)) / (len(A) * (len(A) - 1))


def blocks(unit, count=10):
    """Return the rows of blocks of neighbouring units with about as many rows each."""
    units, sizes = np.unique(unit, return_counts=True)
    middles = np.cumsum(sizes) - sizes / 2
    block = np.minimum((middles * count / sizes.sum()).astype(int), count - 1)
    of_row = block[np.searchsorted(units, unit)]
    return [np.flatnonzero(of_row == number) for number in np.unique(of_row)]


def jackknife(measure, unit, *sides):
    """Return the standard error of a measure of rows, by leaving out one block at a time."""
    parts = blocks(unit)
    without = [
        measure(*(np.delete(side, rows, axis=0) for side in sides)) for rows in parts
    ]
    return np.sqrt((len(parts) - 1) * np.var(without))


def outliers(A):
    """Return which rows are more than 20 times as long as the (lower) median."""
    lengths = np.linalg.norm(A, axis=1)
    return lengths > 20 * np.sort(lengths)[(len(A) - 1) // 2]


def unbiased_cka(X, Y):
    """Return the unbiased estimate of linear CKA, by its n x n kernels (Song et al. 2012)."""
    kernels = [side @ side.T for side in (X, Y)]
    for kernel in kernels:
        np.fill_diagonal(kernel, 0)
    one, two = kernels
    return _hsic(one, two) / np.sqrt(_hsic(one, one) * _hsic(two, two))


def _hsic(K, L):
    n = len(K)
    sums = K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (K.sum(0) @ L.sum(0))
    return ((K * L).sum() + sums) / (n * (n - 3))  # both are symmetric


def shuffled_cka(X, Y, draws=5):
    """Return CKA with the rows of Y out of order: permutations of a generator of seeds 0 and 6."""
    rng = np.random.default_rng([0, 6])
    return np.array([unbiased_cka(X, Y[rng.permutation(len(Y))]) for _ in range(draws)])


def rotation(A, B):
    """Return the orthogonal map R for which A R is nearest to B."""
    return orthogonal_procrustes(A, B)[0]


def sum_stderr(values, unit):
    """Return the standard error of a sum over rows, over units."""
    totals = np.array([values[unit == number].sum() for number in np.unique(unit)])
    return np.sqrt(len(totals)) * totals.std(ddof=1)


def matched(W, V):
    """Return W with its columns in the order and with the signs that bring it nearest to V."""
    products = V.T @ W
    place = linear_sum_assignment(-np.abs(products))[1]
    return W[:, place] * np.where(products[np.arange(len(place)), place] < 0, -1, 1)


class Change:
    """How a weight matrix moved from the first one.

    What has more dimensions is read as (first, all other).
    """

    def __init__(self, first, matrix):
        self.first, self.matrix = (
            np.asarray(W).reshape(len(W), -1) for W in (first, matrix)
        )
        self.change = self.matrix - self.first
        # Directions are of the shorter side.
        if self.first.shape[0] > self.first.shape[1]:
            self.first, self.matrix, self.change = (
                self.first.T,
                self.matrix.T,
                self.change.T,
            )
        self.directions, self.values = np.linalg.svd(self.first)[:2]

    @property
    def leading(self):
        """How many directions of the first matrix hold half of its energy."""
        energy = np.cumsum(self.values**2)
        return int((energy < energy[-1] / 2).sum()) + 1

    @property
    def leading_share(self):
        """Share of the energy of the change in these directions."""
        inside = self.directions[:, : self.leading].T @ self.change
        return (
            (inside**2).sum() / (self.change**2).sum() if self.change.any() else np.nan
        )

    @property
    def rank(self):
        """Entropy rank of the change."""
        values = np.linalg.svd(self.change, compute_uv=False)
        return entropy_rank(values) if self.change.any() else 0.0

    def intruders(self, leading=10, threshold=0.5):
        """Return how many leading directions have a cosine below 0.5 with all first ones."""
        if not self.change.any():
            return 0
        now = np.linalg.svd(self.matrix)[0][:, :leading]
        return int((np.abs(self.directions.T @ now).max(axis=0) < threshold).sum())
