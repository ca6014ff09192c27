"""Where the change of a weight matrix lies, beside the matrix that it began with."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ...arrays import check_finite
from ...errors import ArgumentError, check_number, check_whole

HELD = 0.5  # the leading directions are those that hold this share of the first matrix's energy


def share_in_leading(
    base: np.ndarray, change: np.ndarray, held: float = HELD
) -> tuple[float, int]:
    """Return the share of a change's energy that lies in the leading directions of a matrix.

    Directions are singular vectors of the shorter side. Where the change has nothing to do with the
    matrix, k of s directions hold the share k / s of it on average.

    Parameters
    ----------
    base
        Matrix W₀ (n, m).
    change
        Matrix W_t − W₀ (n, m).
    held
        Share of the squared norm of W₀ that the leading directions hold: the least k that do.

    Returns
    -------
    float, int
        ‖P ΔW‖² / ‖ΔW‖², NaN of no change; and k.

    Raises
    ------
    ArgumentError, NonFiniteError
        If the shapes differ, `held` is not within (0, 1], or a number is not finite.

    Examples
    --------
    >>> base = np.diag([3.0, 1.0, 1.0])
    >>> (
    ...     share_in_leading(base, np.diag([2.0, 0.0, 0.0])),
    ...     share_in_leading(base, np.eye(3))[1],
    ... )
    ((1.0, 1), 1)
    """
    base, change = _pair(base, change)
    check_number("held", held, 0, 1, above=True)
    return Base(_gram(base)).share(_gram(change), held)


def intruder_dimensions(
    base: np.ndarray, tuned: np.ndarray, n_leading: int = 10, threshold: float = 0.5
) -> int:
    """Return how many leading directions of a tuned matrix are none of the first matrix.

    A leading singular vector of W_t, of its shorter side, is an intruder where its cosine with
    every singular vector of W₀ stays below the threshold.

    Parameters
    ----------
    base, tuned
        Matrices W₀ and W_t (n, m).
    n_leading
        How many leading directions of the tuned matrix are looked at.
    threshold
        The largest cosine that an intruder has with any direction of W₀.

    Raises
    ------
    ArgumentError, NonFiniteError
        If the shapes differ, an argument is out of range, or a number is not finite.

    References
    ----------
    R. Shuttleworth and others, LoRA vs full fine-tuning: an illusion of equivalence, 2024.

    Examples
    --------
    >>> base = np.diag([4.0, 3.0, 2.0, 1.0])
    >>> stripe = np.full((4, 4), 9.0)
    >>> (
    ...     intruder_dimensions(base, base + 0.1, 1),
    ...     intruder_dimensions(base, base + stripe, 1, 0.6),
    ... )
    (0, 1)
    """
    base, tuned = _pair(base, tuned)
    check_whole("n_leading", n_leading)
    check_number("threshold", threshold, 0, 1, above=True)
    return Base(_gram(base)).intruders(_gram(tuned), n_leading, threshold)


class Base:
    """The first matrix of a series, decomposed once; it and later ones come as Gram matrices."""

    def __init__(self, gram: np.ndarray) -> None:
        energy, vectors = eigh(gram)
        self.energy = np.maximum(energy[::-1], 0)
        self.vectors = vectors[:, ::-1]

    def leading(self, held: float) -> int:
        """Return how many directions hold a share of the energy; 0 of a matrix of zeros."""
        total = self.energy.sum()
        return (
            int(np.searchsorted(self.energy.cumsum(), held * total) + 1) if total else 0
        )

    def share(self, change: np.ndarray, held: float) -> tuple[float, int]:
        """Return the share of a Gram matrix of changes in the leading directions; their number."""
        k = self.leading(held)
        total = float(np.trace(change))
        leading = self.vectors[:, :k]
        return float(np.sum(leading * (change @ leading))) / total if total else float(
            "nan"
        ), k

    def intruders(self, tuned: np.ndarray, n_leading: int, threshold: float) -> int:
        """Return how many leading directions of a Gram matrix are none of the first one's."""
        size = len(tuned)
        # Eigenvalues are in increasing order.
        top = (max(size - n_leading, 0), size - 1)
        leading = eigh(tuned, subset_by_index=top)[1]
        return int(np.sum(np.abs(self.vectors.T @ leading).max(axis=0) < threshold))


def singular_values(gram: np.ndarray) -> np.ndarray:
    """Return the singular values of a matrix by its Gram matrix, to 1e-8 of the largest."""
    return np.sqrt(np.maximum(eigh(gram, eigvals_only=True), 0))


def _gram(matrix: np.ndarray) -> np.ndarray:
    """Return the Gram matrix of the shorter side."""
    return (
        matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    )


def _pair(base: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = np.asarray(base, dtype=np.float64)
    second = np.asarray(other, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise ArgumentError(
            f"both matrices must have one shape (n, m); got {first.shape} and {second.shape}."
        )
    check_finite("the first matrix", first)
    check_finite("the second matrix", second)
    return first, second
