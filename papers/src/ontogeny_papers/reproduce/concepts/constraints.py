"""What each extractor asks of a solution, and whether a map of a solution still meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_SAME = 1e-4  # relative, of fits in double precision that end at a tolerance
ALPHA = 0.5  # of dictionary learning


@dataclass(frozen=True)
class Fit:
    """A solution: codes (n, r), dictionary (m, r), and coefficients of convex NMF."""

    U: np.ndarray
    W: np.ndarray
    H: np.ndarray | None = None

    def mapped(self, R: np.ndarray) -> Fit:
        """Return the solution with U R and W R⁻ᵀ, which has the same product."""
        inverse = np.linalg.inv(R)
        H = None if self.H is None else inverse @ self.H
        return Fit(self.U @ R, self.W @ inverse.T, H)


def _diagonal(G: np.ndarray) -> bool:
    """Return whether a matrix is diagonal with entries that do not rise."""
    values = np.diagonal(G)
    off = np.abs(G - np.diag(values)).max()
    return bool(
        off <= _SAME * values.max() and (np.diff(values) <= _SAME * values.max()).all()
    )


def _unit(W: np.ndarray) -> bool:
    return bool(np.allclose(np.linalg.norm(W, axis=0), 1, atol=_SAME))


def _positive(*arrays: np.ndarray) -> bool:
    return all(bool((a >= -_SAME * np.abs(a).max()).all()) for a in arrays)


def _of_svd(fit: Fit) -> bool:
    grams = fit.U.T @ fit.U, fit.W.T @ fit.W
    equal = np.allclose(np.diagonal(grams[0]), np.diagonal(grams[1]), rtol=_SAME)
    return equal and all(map(_diagonal, grams))


def _of_pca(fit: Fit) -> bool:
    return _unit(fit.W) and _diagonal(fit.W.T @ fit.W) and _diagonal(np.cov(fit.U.T))


def _of_ica(fit: Fit) -> bool:
    return bool(np.allclose(np.cov(fit.U.T, ddof=0), np.eye(fit.U.shape[1]), atol=1e-2))


def _of_strict(fit: Fit) -> bool:
    assert fit.H is not None
    return _positive(fit.U, fit.H) and bool(
        np.allclose(fit.H.sum(axis=1), 1, atol=_SAME)
    )


def _of_convex(fit: Fit) -> bool:
    assert fit.H is not None
    return _positive(fit.U, fit.H)


def _of_kmeans(fit: Fit) -> bool:
    return bool(
        np.isin(np.round(fit.U, 6), (0.0, 1.0)).all() and np.allclose(fit.U.sum(1), 1)
    )


ASKS: dict[str, Callable[[Fit], bool]] = {
    "svd": _of_svd,
    "pca": _of_pca,
    "nmf": lambda fit: _positive(fit.U, fit.W),
    "semi-nmf": lambda fit: _positive(fit.U),
    "convex-nmf": _of_strict,
    "convex-nmf, not strict": _of_convex,
    "dictionary": lambda fit: _unit(fit.W),
    "kmeans": _of_kmeans,
    "ica": _of_ica,
}


def _objective(name: str, fit: Fit) -> float:
    """Return what the extractor minimises beside the error, which no map changes; 0: nothing."""
    if name == "dictionary":
        return ALPHA * float(np.abs(fit.U).sum())
    if name == "ica":  # its contrast: how far from Gaussian the codes are
        gaussian = 0.37457  # mean of log cosh of a standard normal number
        return float(np.square(np.log(np.cosh(fit.U)).mean(axis=0) - gaussian).sum())
    return 0.0


def kept(name: str, fit: Fit, R: np.ndarray) -> bool:
    """Return whether U R and W R⁻ᵀ solve the same problem as well."""
    other = fit.mapped(R)
    before = _objective(name, fit)
    after = _objective(name, other)
    return ASKS[name](other) and abs(after - before) <= _SAME * abs(before)
