"""Which latents follow a factor of the text, beside what the best of many shows by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ontogeny.units import Units


@dataclass(frozen=True)
class Correlations:
    """Correlations of latents with factors, and what chance gives.

    Parameters
    ----------
    observed
        (latents, factors).
    limit
        95 % quantile of the largest absolute one when texts are shuffled.
    """

    observed: np.ndarray
    limit: float

    @property
    def of_latent(self) -> np.ndarray:
        """Largest absolute correlation of each latent, (latents,)."""
        return np.abs(self.observed).max(1)


def correlations(
    codes: np.ndarray,
    factors: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
    units: Units | None = None,
) -> Correlations:
    """Return `latent_correlations` with `largest_correlation_null`.

    Examples
    --------
    >>> codes = np.arange(40.0)[:, None]
    >>> matches = correlations(codes, codes, 100, np.random.default_rng(0))
    >>> bool(matches.of_latent[0] > matches.limit)
    True
    """
    return Correlations(
        latent_correlations(codes, factors),
        largest_correlation_null(codes, factors, n_draws, rng, units),
    )


def latent_correlations(codes: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation of each latent with each factor, (latents, factors).

    Parameters
    ----------
    codes
        (texts, latents).
    factors
        (texts, factors), numbers or yes/no. A constant latent or factor correlates with nothing: 0.

    Examples
    --------
    >>> latent_correlations(np.array([[0.0], [1.0], [2.0]]), np.array([[1], [2], [3]]))
    array([[1.]])
    """
    a = _standardised(codes)
    b = _standardised(factors)
    return np.clip(a.T @ b, -1, 1)


def largest_correlation_null(
    codes: np.ndarray,
    factors: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
    units: Units | None = None,
) -> float:
    """Return the 95 % quantile of the largest |correlation| when texts are shuffled.

    With `units`, of the texts, they are shuffled as far as they are exchangeable.

    The largest over all latents and factors: what the best of so many shows by chance, so no
    further correction for the number of latents is needed (Westfall and Young 1993).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> limit = largest_correlation_null(
    ...     rng.random((400, 50)), rng.random((400, 1)), 100, rng
    ... )
    >>> 0.1 < limit < 0.25
    True
    """
    a = _standardised(codes)
    factors = np.asarray(factors)
    units = Units(np.arange(len(factors))) if units is None else units
    orders = units.shuffles(factors, rng, max(n_draws, 100))
    largest = [np.abs(a.T @ _standardised(factors[rows])).max() for rows in orders]
    return float(np.quantile(largest, 0.95))


def _standardised(values: np.ndarray) -> np.ndarray:
    centred = np.asarray(values, dtype=float)
    centred = centred - centred.mean(0)
    norm = np.linalg.norm(centred, axis=0)
    return np.divide(centred, norm, out=np.zeros_like(centred), where=norm > 1e-12)
