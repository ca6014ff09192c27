"""Trend and fluctuation of series over unevenly spaced steps.

Two views, both linear in the values and cheap for many series at once: a natural cubic smoothing
spline whose smoothness is chosen by generalised cross-validation (trend), and the difference of a
value from the cubic through its four neighbours (noise, without choosing anything).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.arrays import numbers
from ontogeny.dynamics.series import checked_steps, checked_values
from ontogeny.errors import ArgumentError, NonFiniteError

FEWEST_FOR_A_TREND = 10
NEIGHBOURS = 4
# A spline with more than half as many degrees of freedom as points would follow the noise.
STIFFEST = 3.0
SOFTEST = 0.5
FLEXIBLE = 0.8
# What a noise-like fluctuation keeps when the spline may bend far more: white noise about 0.4,
# a random walk about 0.15, a smooth curve without noise less than 0.02.
LEAST_KEPT = 0.1


@dataclass(frozen=True, eq=False)
class Detrended:
    """A series as trend and fluctuation, see `detrend`.

    Parameters
    ----------
    trend, fluctuation
        (..., T): their sum is the series.
    degrees_of_freedom
        (...,): of the spline, from 3 to half the number of steps.
    noisy
        (...,): the fluctuation is noise of some kind. False where a more flexible spline explains
        nearly all of it: then it is trend that the stiffer one could not follow.
    """

    trend: np.ndarray
    fluctuation: np.ndarray
    degrees_of_freedom: np.ndarray
    noisy: np.ndarray


def detrend(steps: ArrayLike, values: ArrayLike) -> Detrended:
    """Return a smoothing spline through each series, and what is left of it.

    A natural cubic spline over the logarithm of the step (see `step_coordinate`), smoothed as
    generalised cross-validation says, with 3 to T / 2 degrees of freedom.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0; at least 10.
    values
        Series (..., T), without gaps.

    Returns
    -------
    Detrended
        Arrays as described there.

    Raises
    ------
    ArgumentError
        If there are fewer than 10 steps, they do not increase, or shapes do not fit.
    NonFiniteError
        If a value is NaN or infinite.

    References
    ----------
    P. Craven, G. Wahba, Numer. Math. 31, 1979; P. J. Green, B. W. Silverman, Nonparametric
    Regression and Generalized Linear Models, 1994, ch. 2.

    Examples
    --------
    >>> steps = np.arange(50) * 100
    >>> noise = 0.02 * np.random.default_rng(0).normal(size=50)
    >>> trend = detrend(steps, np.exp(-steps / 1000) + noise)
    >>> bool(np.corrcoef(trend.fluctuation, noise)[0, 1] > 0.8), bool(trend.noisy)
    (True, True)
    """
    steps = checked_steps(steps)
    series = checked_values(values, len(steps))
    if len(steps) < FEWEST_FOR_A_TREND:
        raise ArgumentError(
            f"a trend needs at least {FEWEST_FOR_A_TREND} steps; got {len(steps)}."
        )
    if np.isnan(series).any():
        raise NonFiniteError(f"values holds {np.sum(np.isnan(series))} NaN values.")
    roughness, basis = _demmler_reinsch(step_coordinate(steps))
    smoothing, freedom = _smoothing_grid(roughness)
    flexible = int(np.argmin(np.abs(freedom - FLEXIBLE * len(steps))))
    allowed = np.flatnonzero((freedom >= STIFFEST) & (freedom <= SOFTEST * len(steps)))
    shrink = smoothing[:, None] * roughness / (1 + smoothing[:, None] * roughness)
    coefficients = series @ basis
    rss = coefficients**2 @ (shrink**2).T
    score = rss[..., allowed] / (len(steps) - freedom[allowed]) ** 2
    best = allowed[np.argmin(score, axis=-1)]
    fluctuation = (coefficients * shrink[best]) @ basis.T
    softest = allowed[0]
    noisy = (best != softest) | (rss[..., flexible] >= LEAST_KEPT * rss[..., softest])
    size = np.abs(series).max(axis=-1)
    measurable = np.abs(fluctuation).max(axis=-1) > 1e-10 * size  # else it is rounding
    return Detrended(
        series - fluctuation, fluctuation, freedom[best], noisy & measurable
    )


def step_coordinate(steps: np.ndarray) -> np.ndarray:
    """Return log(step + g), g the smallest gap between steps (or the first step, if smaller).

    In it, what training does early and late is about equally smooth, and step 0 has its place.

    Examples
    --------
    >>> step_coordinate(np.array([0.0, 1.0, 3.0, 7.0])) / np.log(2)
    array([0., 1., 2., 3.])
    """
    gap = min(np.diff(steps).min(), steps[steps > 0].min())
    return np.log(steps + gap)


def neighbour_residuals(steps: np.ndarray) -> np.ndarray:
    """Return the matrix (T − 4, T) that gives each value's difference from its neighbours' cubic.

    The cubic over `step_coordinate` goes through the two values before and the two after. Rows
    have unit norm, so that independent noise of standard deviation σ gives residuals of standard
    deviation σ; a cubic trend gives 0. Row i belongs to step i + 2.

    References
    ----------
    T. Gasser, L. Sroka, C. Jennen-Steinmetz, Biometrika 73, 1986 (with two neighbours).

    Examples
    --------
    >>> matrix = neighbour_residuals(np.arange(8.0))
    >>> matrix.shape, bool(np.allclose(matrix @ np.log(np.arange(8) + 1) ** 3, 0))
    ((4, 8), True)
    """
    u = step_coordinate(steps)
    half = NEIGHBOURS // 2
    matrix = np.zeros((len(u) - NEIGHBOURS, len(u)))
    for row, centre in enumerate(range(half, len(u) - half)):
        around = [j for j in range(centre - half, centre + half + 1) if j != centre]
        matrix[row, centre] = 1.0
        for j in around:
            others = [k for k in around if k != j]
            matrix[row, j] = -np.prod((u[centre] - u[others]) / (u[j] - u[others]))
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def _demmler_reinsch(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (T,) and eigenvectors (T, T) of a natural cubic spline's roughness.

    The roughness ∫f'' of the spline through values y is yᵀQR⁻¹Qᵀy (Green and Silverman, 2.1.2).
    """
    gaps = np.diff(u)
    inner = len(u) - 2
    j = np.arange(inner)
    Q = np.zeros((len(u), inner))
    Q[j, j] = 1 / gaps[:-1]
    Q[j + 2, j] = 1 / gaps[1:]
    Q[j + 1, j] = -1 / gaps[:-1] - 1 / gaps[1:]
    R = np.diag((gaps[:-1] + gaps[1:]) / 3)
    R[j[:-1], j[1:]] = R[j[1:], j[:-1]] = gaps[1:-1] / 6
    roughness, basis = np.linalg.eigh(Q @ np.linalg.solve(R, Q.T))
    roughness[:2] = 0.0  # straight lines are not rough; rounding says otherwise
    return roughness, basis


def _smoothing_grid(roughness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return smoothing parameters, growing, and the degrees of freedom that each leaves."""
    smoothing = np.geomspace(1e-4 / roughness[-1], 1e3 / roughness[2], 200)
    return smoothing, (1 / (1 + smoothing[:, None] * roughness)).sum(axis=1)


def checked_table(
    name: str, values: ArrayLike, steps: np.ndarray, reference_index: int | None
) -> np.ndarray:
    """Return a copy of one series (T,), or of K series (T, K), as a table (T, K)."""
    table = numbers(name, values)
    if table.ndim not in (1, 2) or len(table) != len(steps) or not table.size:
        raise ArgumentError(
            f"{name} must have shape ({len(steps)},) or ({len(steps)}, series), one row for each "
            f"step; its shape is {table.shape}."
        )
    return checked_values(table.T, len(steps), reference_index).T.reshape(
        len(steps), -1
    )
