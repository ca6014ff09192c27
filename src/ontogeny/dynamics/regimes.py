"""Smooth and noisy regimes of training: where the noise around the trend of series changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from .noise_levels import ROUNDING, Panel, best_boundaries, double_boundary, single_boundary
from .series import checked_steps, checked_values
from .trends import FEWEST_FOR_A_TREND, NEIGHBOURS, detrend

__all__ = ["Regime", "Regimes", "regimes"]

FEWEST_RESIDUALS = 5
CHUNK = 2**21  # costs held at a time


@dataclass(frozen=True, eq=False)
class Regime:
    """Consecutive steps with one noise level.

    Parameters
    ----------
    start, stop
        First and last step.
    count
        Number of steps.
    noise
        Standard deviation around the trend, in the units of the values: a number for one series,
        (K,) for several.
    mean, sd
        Mean and standard deviation of the values themselves, trend included.
    """

    start: float
    stop: float
    count: int
    noise: float | np.ndarray
    mean: float | np.ndarray
    sd: float | np.ndarray


@dataclass(frozen=True, eq=False)
class Regimes:
    """What `regimes` found.

    Parameters
    ----------
    boundary
        First step of the later regime; ``None`` if there is no boundary, or it cannot be told.
        With three regimes, the boundary over which the noise changes most.
    interval
        95 % interval of the boundary in steps, by bootstrap; ``None`` without a boundary.
    smooth, noisy
        The regimes with the least and the most noise; ``None`` without a boundary.
    noise_ratio
        Noise of the noisy over that of the smooth regime (geometric mean over series); NaN without
        a boundary.
    noise_ratio_interval
        Its 95 % interval.
    regimes
        All regimes in order: one, two or three.
    boundaries
        First steps of the second and the third regime.
    p_value
        Of "the noise level never changes" against one or two boundaries.
    p_third
        Of "two regimes" against three; NaN without a boundary.
    trend, residuals
        The trend, and each value's difference from its neighbours' cubic (NaN at gaps and at two
        steps on either end), shaped as the values.
    reason
        Why nothing could be told, else empty.
    """

    boundary: float | None
    interval: tuple[float, float] | None
    smooth: Regime | None
    noisy: Regime | None
    noise_ratio: float
    noise_ratio_interval: tuple[float, float]
    regimes: tuple[Regime, ...]
    boundaries: tuple[float, ...]
    p_value: float
    p_third: float
    trend: np.ndarray
    residuals: np.ndarray
    reason: str = ""

    @property
    def order(self) -> str:
        """``"smooth then noisy"``, ``"noisy then smooth"``, ``"three"`` or ``"one"``."""
        if self.boundary is None:
            return "one"
        if len(self.regimes) > 2:
            return "three"
        return "smooth then noisy" if self.regimes[0] is self.smooth else "noisy then smooth"


def regimes(
    steps: ArrayLike,
    values: ArrayLike,
    *,
    reference_index: int | None = None,
    least: int = FEWEST_RESIDUALS,
    alpha: float = 0.05,
    n_draws: int = 199,
    random_state: int = 0,
) -> Regimes:
    """Find where the noise around the trend of one or of many series changes, if it does.

    The trend itself may do what it likes as long as it is smooth between neighbouring checkpoints.
    "No boundary" is an answer: the change must be larger than what 95 % of series give that have
    the same trend and the same noise with its level held constant. Many series are judged jointly:
    one boundary for all, noise that they share at a step counted once. Pass logarithms where
    relative noise is meant.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0, in any spacing.
    values
        One series (T,), or K series (T, K), such as layers; NaN where a checkpoint is missing.
    reference_index
        Position of the reference checkpoint where values are distances to it: 0 by construction,
        left out.
    least
        Fewest residuals in a regime.
    alpha
        Level of both tests.
    n_draws
        Draws of the null and of the bootstrap.
    random_state
        Seed of both.

    Returns
    -------
    Regimes
        With ``boundary``, ``interval``, ``smooth``, ``noisy`` and what else stands there.

    Raises
    ------
    ArgumentError
        If steps do not increase, shapes do not fit, or a number is out of range.
    NonFiniteError
        If a value is infinite.

    Notes
    -----
    Residuals are differences of a value from the cubic through its four neighbours over
    log(step). Segments are found by exact search (`ruptures`) with the cost n log(mean |residual|).
    The null keeps the trend (a smoothing spline) and draws the noise around it from all steps
    alike; the best of one and of two boundaries are compared with the draws, Bonferroni-corrected,
    then two with one. A curve without visible noise, or with fewer than 14 steps, is not judged.
    The measured false-positive rate, power and coverage stand in the guide on dynamics.

    Source: Bernas 2025, sec. 5.1 and 6, where the boundary is set by hand.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> steps = np.arange(60) * 1000
    >>> noise = rng.normal(size=60) * np.where(steps < 30_000, 0.002, 0.03)
    >>> found = regimes(steps, np.exp(-steps / 8000) + noise)
    >>> found.order, abs(found.boundary - 30_000) <= 2000
    ('smooth then noisy', True)
    >>> regimes(steps, np.exp(-steps / 8000) + 0.03 * rng.normal(size=60)).boundary is None
    True
    """
    steps, series, single = _checked(steps, values, reference_index, least, alpha, n_draws)
    kept = ~np.isnan(series).all(axis=1)
    job = _Search(steps[kept], series[kept], least, n_draws, np.random.default_rng(random_state))
    shape = (len(steps),) if single else series.shape

    def back(found: np.ndarray) -> np.ndarray:
        whole = np.full(series.shape, np.nan)
        whole[kept] = found
        return whole.reshape(shape)

    reason = job.refusal()
    if reason:
        empty = back(np.full(series[kept].shape, np.nan))
        return _without(job, single, empty, empty, reason=reason)
    trend, residuals = back(job.trend), back(job.residuals)
    p_value = job.p_value()
    if p_value > alpha:
        return _without(job, single, trend, residuals, p_value=p_value)
    p_third = job.p_third()
    places = job.places(2 if p_third <= alpha else 1)
    return _with(job, single, trend, residuals, places, p_value, p_third)


class _Search:
    """The series without gaps common to all, and what is drawn from them."""

    def __init__(
        self,
        steps: np.ndarray,
        series: np.ndarray,
        least: int,
        n_draws: int,
        rng: np.random.Generator,
    ) -> None:
        self.steps, self.series, self.least = steps, series, least
        self.n_draws, self.rng = n_draws, rng

    def refusal(self) -> str:
        """Prepare trend and residuals; return why that is not possible, or an empty string."""
        half = NEIGHBOURS // 2
        counts = np.count_nonzero(~np.isnan(self.series), axis=0)
        needed = max(2 * self.least + NEIGHBOURS, FEWEST_FOR_A_TREND)
        usable = counts >= needed
        if not usable.any():
            most = int(counts.max(initial=0))
            return f"{most} usable steps are too few to tell two noise levels ({needed} needed)"
        self.trend = np.full(self.series.shape, np.nan)
        fluctuation = np.full(self.series.shape, np.nan)
        noisy = np.zeros(len(counts), dtype=bool)
        for k in np.flatnonzero(usable):
            there = ~np.isnan(self.series[:, k])
            found = detrend(self.steps[there], self.series[there, k])
            self.trend[there, k] = found.trend
            lost = 1 - found.degrees_of_freedom / there.sum()
            fluctuation[there, k] = found.fluctuation / np.sqrt(lost)
            noisy[k] = found.noisy
        if not noisy.any():
            return "no noise that could be told from the trend"
        self.used = np.flatnonzero(noisy)
        panel = Panel.of(self.steps, np.where(noisy, self.series, np.nan))
        self.panel = panel
        self.residuals = panel.residuals(np.where(noisy, self.series, np.nan))
        self.floor = ROUNDING * np.nanmax(np.abs(self.series[:, self.used]), axis=0)
        self.inner = slice(half, len(self.steps) - half)
        self.fluctuation = fluctuation[:, self.used]
        self.judged = self.residuals[self.inner][:, self.used]
        one, two = self._gains(self.judged[None])
        self.gain_one, self.gain_two = float(one[0]), float(two[0])
        return ""

    def places(self, count: int) -> tuple[int, ...]:
        """Return the best boundaries as positions of the first step of each later regime."""
        found = best_boundaries(self.judged, self.floor, count, self.least)
        return tuple(place + NEIGHBOURS // 2 for place in found)

    def p_value(self) -> float:
        """Return the p-value of one constant noise level."""
        whole = self._filled(self.fluctuation)
        rows = self.rng.integers(0, len(whole), (self.n_draws, len(self.steps)))
        one, two = self._drawn(whole[rows])
        p = [_rank(one, self.gain_one), _rank(two, self.gain_two)]
        return min(1.0, 2 * min(p))

    def p_third(self) -> float:
        """Return the p-value of two regimes against three."""
        one, two = self._drawn(self._resampled(self.places(1)))
        return _rank(two - one, self.gain_two - self.gain_one)

    def bootstrap(self, places: tuple[int, ...], main: int) -> tuple[np.ndarray, np.ndarray]:
        """Return boundary number `main` (draws,) and noise (draws, regimes, K) in resamples.

        With three regimes the boundary is looked for between its neighbours.
        """
        residuals = self._residuals_of(self._resampled(places))
        ends = [0, *places, len(self.steps)]
        levels = [_level(residuals[:, a:b], 1) for a, b in zip(ends, ends[1:], strict=False)]
        half = NEIGHBOURS // 2
        start, stop = max(ends[main], half), min(ends[main + 2], len(self.steps) - half)
        _, found = single_boundary(residuals[:, start:stop], self.floor, self.least)
        return found + start, np.stack(levels, axis=1)

    def _resampled(self, places: tuple[int, ...]) -> np.ndarray:
        """Return noise (draws, T, K) drawn from the residuals of each regime for itself."""
        ends = [0, *places, len(self.steps)]
        pool = self.residuals[:, self.used]
        parts = []
        for a, b in zip(ends, ends[1:], strict=False):
            there = pool[a:b][~np.isnan(pool[a:b]).all(axis=1)]
            filled = self._filled(there)
            parts.append(filled[self.rng.integers(0, len(filled), (self.n_draws, b - a))])
        return np.concatenate(parts, axis=1)

    def _filled(self, pool: np.ndarray) -> np.ndarray:
        """Return rows of noise (n, K) whose gaps hold values drawn from the same series."""
        filled = pool.copy()
        for k in range(filled.shape[1]):
            gaps = np.isnan(filled[:, k])
            if gaps.any():
                known = filled[~gaps, k]
                filled[gaps, k] = self.rng.choice(known, gaps.sum()) if len(known) else 0.0
        return filled

    def _residuals_of(self, noise: np.ndarray) -> np.ndarray:
        """Return residuals (draws, T, K) of trend plus noise with random signs, over used series.

        One sign for all series of a step: noise that they share stays shared.
        """
        signs = self.rng.choice([-1.0, 1.0], (*noise.shape[:2], 1))
        values = np.full((len(noise), *self.series.shape), np.nan)
        values[..., self.used] = self.trend[:, self.used] + noise * signs
        return self.panel.residuals(values)[..., self.used]

    def _drawn(self, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._gains(self._residuals_of(noise)[:, self.inner])

    def _gains(self, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what one and what two boundaries save in residuals (draws, T − 4, K)."""
        size = max(1, CHUNK // len(self.steps) ** 2)
        chunks = [residuals[i : i + size] for i in range(0, len(residuals), size)]
        one, _ = single_boundary(residuals, self.floor, self.least)
        two = [double_boundary(chunk, self.floor, self.least) for chunk in chunks]
        return one, np.concatenate(two)


def _rank(draws: np.ndarray, observed: float) -> float:
    return float((1 + np.sum(draws >= observed - 1e-9 * abs(observed))) / (1 + len(draws)))


def _level(residuals: np.ndarray, axis: int) -> np.ndarray:
    """Return the root mean square over the steps, NaN left out (and NaN where none is left)."""
    there = ~np.isnan(residuals)
    count = there.sum(axis=axis)
    squares = (np.where(there, residuals, 0.0) ** 2).sum(axis=axis)
    return np.sqrt(np.where(count > 0, squares, np.nan) / np.maximum(count, 1))


def _parts(job: _Search, single: bool, places: tuple[int, ...]) -> tuple[Regime, ...]:
    ends = [0, *places, len(job.steps)]
    return tuple(
        _regime(job, slice(a, b), single) for a, b in zip(ends, ends[1:], strict=False) if a < b
    )


def _regime(job: _Search, part: slice, single: bool) -> Regime:
    values = job.series[part]
    residuals = getattr(job, "residuals", np.full(job.series.shape, np.nan))[part]
    there = ~np.isnan(values)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there.any(axis=0), np.where(there, values, 0.0).sum(axis=0) / count, np.nan)
    sd = np.sqrt(np.where(there, (values - mean) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1))
    numbers = [_level(residuals, 0), mean, sd]
    noise, mean, sd = (x[0].item() for x in numbers) if single else numbers
    steps = job.steps[part]
    return Regime(float(steps[0]), float(steps[-1]), len(steps), noise, mean, sd)


def _without(
    job: _Search,
    single: bool,
    trend: np.ndarray,
    residuals: np.ndarray,
    p_value: float = np.nan,
    reason: str = "",
) -> Regimes:
    return Regimes(
        boundary=None,
        interval=None,
        smooth=None,
        noisy=None,
        noise_ratio=float("nan"),
        noise_ratio_interval=(float("nan"), float("nan")),
        regimes=_parts(job, single, ()),
        boundaries=(),
        p_value=p_value,
        p_third=float("nan"),
        trend=trend,
        residuals=residuals,
        reason=reason,
    )


def _with(
    job: _Search,
    single: bool,
    trend: np.ndarray,
    residuals: np.ndarray,
    places: tuple[int, ...],
    p_value: float,
    p_third: float,
) -> Regimes:
    found = _parts(job, single, places)
    level = np.array([np.atleast_1d(part.noise)[job.used] for part in found])  # (regimes, K)
    size = np.nanmean(np.log(np.maximum(level, job.floor)), axis=1)
    calm, loud = int(np.argmin(size)), int(np.argmax(size))
    main = int(np.argmax(np.abs(np.diff(size))))
    drawn, noise = job.bootstrap(places, main)
    ratios = np.nanmean(np.log(np.maximum(noise, job.floor)), axis=2)
    ratio_interval = np.exp(np.quantile(ratios[:, loud] - ratios[:, calm], [0.025, 0.975]))
    place = places[main]
    low, high = _ends(drawn, place, len(job.steps))
    return Regimes(
        boundary=float(job.steps[place]),
        interval=(float(job.steps[low]), float(job.steps[high])),
        smooth=found[calm],
        noisy=found[loud],
        noise_ratio=float(np.exp(size[loud] - size[calm])),
        noise_ratio_interval=(float(ratio_interval[0]), float(ratio_interval[1])),
        regimes=found,
        boundaries=tuple(float(job.steps[p]) for p in places),
        p_value=p_value,
        p_third=p_third,
        trend=trend,
        residuals=residuals,
    )


def _ends(drawn: np.ndarray, place: int, count: int) -> tuple[int, int]:
    """Return the 95 % interval as positions: what lies beyond the bootstrap's errors on one side
    lies within them on the other (basic bootstrap), the estimate itself included.
    """
    errors = np.quantile(drawn - place, [0.025, 0.975])
    low, high = int(np.floor(place - errors[1])), int(np.ceil(place - errors[0]))
    return max(0, min(low, place)), min(count - 1, max(high, place))


def _checked(
    steps: ArrayLike,
    values: ArrayLike,
    reference_index: int | None,
    least: int,
    alpha: float,
    n_draws: int,
) -> tuple[np.ndarray, np.ndarray, bool]:
    steps = checked_steps(steps)
    given = np.asarray(values, dtype=np.float64)
    if given.ndim not in (1, 2) or given.shape[0] != len(steps) or not given.size:
        raise ArgumentError(
            f"values must have shape ({len(steps)},) or ({len(steps)}, series), one row for each "
            f"step; its shape is {given.shape}."
        )
    series = checked_values(given.T, len(steps), reference_index).T.reshape(len(steps), -1)
    if reference_index is not None:
        series[reference_index] = np.nan
    if least < 3:
        raise ArgumentError(f"least must be at least 3 residuals; got {least}.")
    if not 0 < alpha < 1 or n_draws < 19:
        raise ArgumentError(
            f"alpha must lie between 0 and 1 and n_draws be at least 19; got {alpha}, {n_draws}."
        )
    return steps, series, given.ndim == 1
