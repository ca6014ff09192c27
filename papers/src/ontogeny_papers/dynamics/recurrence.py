"""Learning dynamics as a map: the next value of a series as a function of the present one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.dynamics.order import FEWEST_STEPS, step_order_test
from ontogeny.dynamics.series import RESOLUTION, checked_series, checked_steps

FEWEST_PAIRS = 6
EVEN = 1e-6
DICKEY_FULLER = 3.0  # 5 % point with an intercept, 25 values (2.86 for very many)
NAN = np.nan


@dataclass(frozen=True, eq=False)
class Recurrence:
    """A linear map m' = intercept + slope · m + noise from one checkpoint to the next.

    Parameters
    ----------
    slope, intercept
        Least squares; a slope between 0 and 1 is an approach to `fixed_point`.
    slope_stderr, intercept_stderr
        Their standard errors.
    noise
        Standard deviation of what the map leaves: R_t of Definition 10.
    fixed_point
        intercept / (1 − slope); NaN unless the slope is below 1 by three standard errors, which
        at most 5 % of random walks show (Dickey and Fuller's test): else the series shows no
        place that it goes to.
    r2
        Share of the variance of the next value explained; NaN if it does not vary.
    linear_p
        p-value of "the residuals have no order along m": a small one says that the map is no
        straight line. NaN below 6 pairs.
    n
        Pairs of neighbouring checkpoints.
    every
        Least and greatest number of training steps between neighbours.
    even
        Whether these are equal. Else the map mixes short and long times, and its slope is none of
        the training process.
    reason
        Why nothing was fitted, else empty.
    """

    slope: float
    intercept: float
    slope_stderr: float
    intercept_stderr: float
    noise: float
    fixed_point: float
    r2: float
    linear_p: float
    n: int
    every: tuple[float, float]
    even: bool
    reason: str = ""


def recurrence(
    values: ArrayLike,
    steps: ArrayLike | None = None,
    *,
    reference_index: int | None = None,
) -> Recurrence:
    """Fit the recurrence m_{t+1} = E(m_t, R_t) of Definition 10 with a linear map and its noise.

    Parameters
    ----------
    values
        Series (T,); NaN where a checkpoint is missing: pairs with a gap between them are left out.
    steps
        Training steps (T,), increasing, from 0; default: 0, 1, 2, ... Where they are unevenly
        spaced, only the longest stretch with even spacing is used, if it has at least 6 pairs.
    reference_index
        Position of the reference checkpoint where values are distances to it; left out.

    Returns
    -------
    Recurrence
        With NaN and a ``reason`` where there are fewer than 6 pairs or the values do not vary.

    Raises
    ------
    ArgumentError
        If `values` is no series, or steps do not fit.
    NonFiniteError
        If a value is infinite.

    Notes
    -----
    With n pairs the slope of a slow approach is about (1 + 3 slope) / n too small (M. G. Kendall,
    Biometrika 41, 1954), and noise in the measurement of m makes it smaller still.

    Source: Bernas 2025, Definition 10. D. A. Dickey, W. A. Fuller, J. Amer. Statist. Assoc. 74,
    1979.

    Examples
    --------
    >>> m = [1.0]
    >>> for _ in range(20):
    ...     m.append(0.8 * m[-1] + 0.1)
    >>> line = recurrence(m)
    >>> round(line.slope, 6), round(line.fixed_point, 6), line.even
    (0.8, 0.5, True)
    """
    times = checked_steps(np.arange(np.size(values)) if steps is None else steps)
    series = checked_series("values", values, times, reference_index)
    there = ~np.isnan(series)
    pairs = np.flatnonzero(there[:-1] & there[1:])
    gaps = np.diff(times)
    pairs = pairs[_even_stretch(gaps[pairs], pairs)]
    every = (
        (float(gaps[pairs].min()), float(gaps[pairs].max()))
        if len(pairs)
        else (NAN, NAN)
    )
    even = bool(len(pairs)) and every[1] - every[0] <= EVEN * every[1]
    reason = _refusal(series[pairs], len(pairs))
    if reason:
        return Recurrence(
            NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, len(pairs), every, even, reason
        )
    return _mapped(series[pairs], series[pairs + 1], every, even)


def _even_stretch(gaps: np.ndarray, pairs: np.ndarray) -> slice:
    """Return the longest stretch of neighbouring pairs with equal gaps, or all if none is long."""
    best = slice(0, 0)
    start = 0
    for stop in range(1, len(gaps) + 1):
        ends = stop == len(gaps) or pairs[stop] != pairs[stop - 1] + 1
        if ends or abs(gaps[stop] - gaps[start]) > EVEN * gaps[start]:
            # The later one, where training is longer.
            if stop - start >= best.stop - best.start:
                best = slice(start, stop)
            start = stop
    return best if best.stop - best.start >= FEWEST_PAIRS else slice(None)


def _refusal(values: np.ndarray, count: int) -> str:
    if count < FEWEST_PAIRS:
        return f"{count} pairs of neighbouring checkpoints are too few for a map"
    if np.ptp(values) <= RESOLUTION * np.abs(values).max():
        return "the series is constant"
    return ""


def _mapped(
    now: np.ndarray, after: np.ndarray, every: tuple[float, float], even: bool
) -> Recurrence:
    centre = now.mean()
    count = len(now)
    spread = float(((now - centre) ** 2).sum())
    slope = float(((now - centre) * (after - after.mean())).sum() / spread)
    intercept = float(after.mean() - slope * centre)
    residuals = after - intercept - slope * now
    rss = float((residuals**2).sum())
    total = float(((after - after.mean()) ** 2).sum())
    noise = float(np.sqrt(rss / (count - 2)))
    slope_error = noise / np.sqrt(spread)
    settles = slope + DICKEY_FULLER * slope_error < 1 and 1 - slope > RESOLUTION
    along = residuals[np.argsort(now, kind="stable")]
    visible = np.abs(residuals).max() > RESOLUTION * np.abs(after).max()
    return Recurrence(
        slope=slope,
        intercept=intercept,
        slope_stderr=float(slope_error),
        intercept_stderr=float(noise * np.sqrt(1 / count + centre**2 / spread)),
        noise=noise,
        fixed_point=intercept / (1 - slope) if settles else NAN,
        r2=1 - rss / total if total > 0 else NAN,
        linear_p=_order(along) if visible else 1.0,
        n=count,
        every=every,
        even=even,
    )


def _order(residuals: np.ndarray) -> float:
    if len(residuals) < FEWEST_STEPS:
        return NAN
    return float(step_order_test(residuals, n_draws=199, level=0.05))
