"""Decays fitted to series over training steps, with what is known of their parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from ontogeny.dynamics.series import checked_series, checked_steps
from ontogeny.errors import check_flag

from .decay_shapes import FASTEST, SHAPES, SLOWEST, Shape
from .fit import Fit, finished_fit, inverse_diagonal, no_fit, refusal, smallest_rss

STARTS = 3


def fit_exponential(
    steps: ArrayLike,
    values: ArrayLike,
    offset: bool = True,
    *,
    reference_index: int | None = None,
) -> Fit:
    """Fit A exp(c t) + b by least squares, the best of all local minima on a grid of rates.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0, in any spacing.
    values
        Series (T,); NaN where a step is missing.
    offset
        Fit b; otherwise it is 0.
    reference_index
        Position of the reference checkpoint where values are distances to it; left out.

    Returns
    -------
    Fit
        ``.amplitude`` A, ``.rate`` c per step (negative for a decay), ``.offset`` b, ``.r2``,
        ``.stderr``, ``.residual_p``. Where the data do not determine the rate (constant or
        straight series, too few values, a fall between two checkpoints), ``.determined`` is
        False and ``.reason`` says why.

    Raises
    ------
    ArgumentError
        If steps do not increase, or shapes do not fit.
    NonFiniteError
        If a value is infinite.

    References
    ----------
    Bernas 2025, Annex F.3, Fig. 16. G. H. Golub, V. Pereyra, SIAM J. Numer. Anal. 10, 1973.

    Examples
    --------
    >>> steps = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128])
    >>> fit = fit_exponential(steps, 3 * np.exp(-0.1 * steps) + 1)
    >>> (
    ...     round(fit.amplitude, 6),
    ...     round(fit.rate, 6),
    ...     round(fit.offset, 6),
    ...     round(fit.r2, 6),
    ... )
    (3.0, -0.1, 1.0, 1.0)
    """
    return fit_shape(
        "exponential", steps, values, offset, reference_index=reference_index
    )


def fit_power(
    steps: ArrayLike,
    values: ArrayLike,
    offset: bool = True,
    *,
    reference_index: int | None = None,
) -> Fit:
    """Fit A (1 + t/τ)^−p + b, a power law beyond τ; parameters and errors as `fit_exponential`.

    ``parameters`` has ``scale`` τ in steps and ``exponent`` p. For p → ∞ it is an exponential.

    Examples
    --------
    >>> steps = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128])
    >>> fit = fit_power(steps, 3 / (1 + steps / 5))
    >>> round(fit.parameters["scale"], 4), round(fit.parameters["exponent"], 4)
    (5.0, 1.0)
    """
    return fit_shape("power", steps, values, offset, reference_index=reference_index)


def fit_stretched_exponential(
    steps: ArrayLike,
    values: ArrayLike,
    offset: bool = True,
    *,
    reference_index: int | None = None,
) -> Fit:
    """Fit A exp(−(t/τ)^β) + b; parameters and errors as `fit_exponential`.

    ``parameters`` has ``scale`` τ in steps and ``exponent`` β; β = 1 is an exponential.

    Examples
    --------
    >>> steps = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128])
    >>> fit = fit_stretched_exponential(steps, 3 * np.exp(-((steps / 9) ** 0.5)))
    >>> round(fit.parameters["scale"], 4), round(fit.parameters["exponent"], 4)
    (9.0, 0.5)
    """
    name = "stretched-exponential"
    return fit_shape(name, steps, values, offset, reference_index=reference_index)


def fit_shape(
    model: str,
    steps: ArrayLike,
    values: ArrayLike,
    offset: bool = True,
    *,
    reference_index: int | None = None,
) -> Fit:
    """Fit a shape by its name, see `fit_exponential`.

    Examples
    --------
    >>> fit_shape("power", np.arange(3), [3.0, 2.0, 1.0]).reason
    '3 values are too few for 4 parameters and their noise'
    """
    check_flag("offset", offset)
    shape = SHAPES[model]
    steps = checked_steps(steps)
    series = checked_series("values", values, steps, reference_index)
    there = ~np.isnan(series)
    t = steps[there]
    y = series[there]
    reason = refusal(y, len(shape.parameters) + 1 + offset)
    if reason:
        return no_fit(
            shape.name, ("amplitude", "offset", *shape.parameters), series, reason
        )
    gap = float(np.diff(t).min() / t[-1])
    theta = _best(shape, t / t[-1], y, offset, gap)
    return _described(shape, steps / t[-1], float(t[-1]), series, theta, offset, gap)


def least_rss(
    shape: Shape, times: np.ndarray, values: np.ndarray, offset: bool
) -> float:
    """Return the least sum of squares that a shape leaves of values (n,), none of them missing.

    Times count from the first to the last value.

    Examples
    --------
    >>> times = np.arange(12.0)
    >>> bool(least_rss(SHAPES["exponential"], times, np.exp(-times / 4), True) < 1e-10)
    True
    """
    s = (times - times[0]) / (times[-1] - times[0])
    theta = _best(shape, s, values, offset, float(np.diff(s).min()))
    return smallest_rss(
        _residuals(shape.curve(s, theta)[None], values, offset)[0], values
    )


def _best(
    shape: Shape, s: np.ndarray, y: np.ndarray, offset: bool, gap: float
) -> np.ndarray:
    """Return the shape parameters with the least sum of squares: grid, then local descent."""
    grid = shape.grid(gap, offset)
    rss = _projected(shape.curve(s, grid), y, offset)
    starts = grid[np.argsort(rss, kind="stable")[:: max(1, len(grid) // 200)][:STARTS]]
    lower, upper = shape.bounds(gap, offset)
    fits = [
        least_squares(
            lambda theta: _residuals(shape.curve(s, theta)[None], y, offset)[0],
            np.clip(start, lower, upper),
            jac=lambda theta: _slopes_left(shape, s, theta, y, offset),
            bounds=(lower, upper),
            x_scale=np.abs(start),
            ftol=1e-14,
            xtol=1e-12,
            gtol=1e-14,
        )
        for start in starts
    ]
    return np.asarray(min(fits, key=lambda fit: fit.cost).x)


def _slopes_left(
    shape: Shape, s: np.ndarray, theta: np.ndarray, y: np.ndarray, offset: bool
) -> np.ndarray:
    """Return the derivative of `_residuals` by theta, without its smallest term (Kaufman 1975)."""
    curve = shape.curve(s, theta)
    slopes = shape.slopes(s, theta)
    if offset:
        curve = curve - curve.mean()
        slopes = slopes - slopes.mean(axis=0)
    square = max(float(curve @ curve), np.finfo(float).tiny)
    residual = slopes - np.outer(curve, curve @ slopes) / square
    return -float(curve @ y) / square * residual


def _residuals(curves: np.ndarray, y: np.ndarray, offset: bool) -> np.ndarray:
    """Return what each curve (n, T), with its best amplitude and offset, leaves of y (T,)."""
    if offset:
        curves = curves - curves.mean(axis=1, keepdims=True)
        y = y - y.mean()
    norms = np.linalg.norm(curves, axis=1, keepdims=True)
    unit = curves / np.where(norms > 0, norms, 1.0)
    return y - (unit @ y)[:, None] * unit


def _projected(curves: np.ndarray, y: np.ndarray, offset: bool) -> np.ndarray:
    return (_residuals(curves, y, offset) ** 2).sum(axis=1)


def _described(
    shape: Shape,
    s: np.ndarray,
    unit: float,
    series: np.ndarray,
    theta: np.ndarray,
    offset: bool,
    gap: float,
) -> Fit:
    """Return everything about the fit with shape parameters theta, measured in units of time."""
    there = ~np.isnan(series)
    y = series[there]
    design = shape.curve(s, theta)[:, None]
    if offset:
        design = np.hstack([design, np.ones((len(s), 1))])
    linear = np.linalg.lstsq(design[there], y, rcond=None)[0]
    fitted = design @ linear
    jacobian = np.hstack([design[there], linear[0] * shape.slopes(s[there], theta)])
    count = jacobian.shape[1]
    variance = smallest_rss(y - fitted[there], y) / (len(y) - count)
    error = np.sqrt(variance * inverse_diagonal(jacobian))
    powers = np.array([unit**power for power in shape.timelike])
    values = [linear[0], linear[1] if offset else 0.0, *(theta * powers)]
    errors = [error[0], error[1] if offset else 0.0, *(error[1 + offset :] * powers)]
    names = ("amplitude", "offset", *shape.parameters)
    return finished_fit(
        shape.name,
        dict(zip(names, values, strict=True)),
        dict(zip(names, errors, strict=True)),
        series,
        fitted,
        count,
        _undetermined(shape, theta, error[1 + offset :], gap, offset),
    )


def _undetermined(
    shape: Shape, theta: np.ndarray, error: np.ndarray, gap: float, offset: bool
) -> str:
    """Return what the data leave open about the shape, or an empty string."""
    scale = abs(1 / theta[0]) if shape.timelike[0] < 0 else theta[0]
    if scale <= 1.01 * FASTEST * gap:
        return "the fall lies between two checkpoints"
    if offset and scale >= 0.99 * SLOWEST:
        return "the series is practically straight"
    if not np.isfinite(error).all():
        return "the parameters cannot be distinguished"
    weak = [
        name
        for name, value, spread in zip(shape.parameters, theta, error, strict=True)
        if 2 * spread > abs(value)
    ]
    return f"{' and '.join(weak)} cannot be distinguished from zero" if weak else ""
