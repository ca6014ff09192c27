"""Smooth and noisy regimes of training: where the noise around the trend of series changes."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from ontogeny.dynamics.series import checked_steps
from ontogeny.errors import ArgumentError

from .regime_search import RegimeSearch
from .trends import checked_table

NAN = np.nan
TAILS = (0.025, 0.975)
# Where jumps explain more than this share of the regimes' own noise leaves them, it is jumps.
JUMPS = 0.01
# A boundary beats a gradual change where fewer than this share of gradual ones look as sharp.
GRADUAL = 0.02


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Regimes:
    """What `regimes` found.

    Parameters
    ----------
    boundary
        First step of the later regime; ``None`` if there is no boundary, or nothing can be said.
        With three regimes, the boundary over which the noise changes most.
    interval
        95 % interval of the boundary in steps, by bootstrap; ``None`` without a boundary.
    smooth, noisy
        The regimes with the least and the most noise; ``None`` without a boundary.
    noise_ratio
        Noise of the noisy over that of the smooth regime (geometric mean over series); NaN without
        a boundary.
    noise_ratio_interval
        Its 95 % interval: bootstrap percentiles, stretched for few residuals.
    spacing_ratio
        Median number of training steps between checkpoints of the noisy over that of the smooth
        regime: the noise of sparser checkpoints is larger for that alone. NaN without a boundary.
    regimes
        All regimes in order: one, two or three.
    boundaries
        First steps of the second and the third regime.
    p_value
        Of "the noise level never changes" against one or two boundaries.
    p_third
        Of "two regimes" against three; NaN without a boundary.
    p_jumps
        Of "noise of these levels" against several jumps of the trend; NaN where `p_value` is above
        `level`. Up to 0.01 no boundary is given.
    p_gradual
        Of "the noise changes gradually" against the boundaries; NaN where `p_value` is above
        `level`. Above 0.02 no boundary is given.
    gradual_ratio
        Noise at the last step over that at the first, if it changes gradually; NaN as `p_gradual`.
    trend, residuals
        The trend, and each value's difference from its neighbours' cubic (NaN at gaps and at two
        steps on either end), shaped as the values.
    reason
        Why no boundary could be looked for, else empty.
    """

    boundary: float | None = None
    interval: tuple[float, float] | None = None
    smooth: Regime | None = None
    noisy: Regime | None = None
    noise_ratio: float = NAN
    noise_ratio_interval: tuple[float, float] = (NAN, NAN)
    spacing_ratio: float = NAN
    regimes: tuple[Regime, ...]
    boundaries: tuple[float, ...] = ()
    p_value: float
    p_third: float = NAN
    p_jumps: float = NAN
    p_gradual: float = NAN
    gradual_ratio: float = NAN
    trend: np.ndarray
    residuals: np.ndarray
    reason: str = ""

    @property
    def gradual(self) -> bool:
        """Whether the noise changes, but a gradual change explains it as well as a boundary."""
        return (
            self.boundary is None
            and not self.reason
            and bool(np.isfinite(self.p_gradual))
        )

    @property
    def order(self) -> str:
        """``"smooth then noisy"``, ``"noisy then smooth"``, ``"three"``, ``"gradual"``, ``"one"``.

        Gradual: the noise changes, but there is no boundary.
        """
        if self.boundary is None:
            return "gradual" if self.gradual else "one"
        if len(self.regimes) > 2:
            return "three"
        return (
            "smooth then noisy"
            if self.regimes[0] is self.smooth
            else "noisy then smooth"
        )


def regimes(
    steps: ArrayLike,
    values: ArrayLike,
    *,
    reference_index: int | None = None,
    level: float = 0.05,
    n_draws: int = 199,
    random_state: int = 0,
) -> Regimes:
    """Find where the noise around the trend of one or of many series changes at once, if it does.

    The trend itself may do what it likes as long as it is smooth between neighbouring checkpoints.
    "No boundary" is an answer: the change must be larger than what 95 % of series give that have
    the same trend and the same noise with its level held constant. Many series are tested jointly:
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
    level
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
    log(step). Segments are found by exact search (`ruptures`) with the cost
    ``n log(mean |residual|)``.
    The null keeps the trend (a smoothing spline) and draws the noise around it from all steps
    alike; the best of one and of two boundaries are compared with the draws, Bonferroni-corrected,
    then two with one. Both tests must hold again without the four largest residuals in a row of
    each curve, which is what a sharp bend of its trend reaches. Where two to four jumps of a trend
    explain more of the residuals than they do of noise with the levels found, no boundary is given
    either. Last, the boundaries must beat noise that changes gradually: exponentially or linearly
    in the step, as a power of it, as half a cosine, or, against two boundaries, rising and falling
    (level 2 %; without the three largest bends where jumps are visible). If they do not, ``order``
    is ``"gradual"``. A curve without visible noise is not tested, nor
    are curves with fewer than 18 steps, or 30 where there is only one.

    Rates of false and of missed boundaries stand in the guides on dynamics and on nulls.

    Source: Bernas 2025, sec. 5.1 and 6, where the boundary is set by hand.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> steps = np.arange(60) * 1000
    >>> noise = rng.normal(size=60) * np.where(steps < 30_000, 0.002, 0.03)
    >>> result = regimes(steps, np.exp(-steps / 8000) + noise)
    >>> result.order, abs(result.boundary - 30_000) <= 2000
    ('smooth then noisy', True)
    >>> regimes(
    ...     steps, np.exp(-steps / 8000) + 0.03 * rng.normal(size=60)
    ... ).boundary is None
    True
    """
    steps, series, single = _checked(steps, values, reference_index, level, n_draws)
    mask = ~np.isnan(series).all(axis=1)
    job = RegimeSearch(
        steps[mask], series[mask], n_draws, np.random.default_rng(random_state)
    )
    shape = (len(steps),) if single else series.shape

    def back(part: np.ndarray) -> np.ndarray:
        whole = np.full(series.shape, np.nan)
        whole[mask] = part
        return whole.reshape(shape)

    one = Regimes(
        regimes=_parts(job, single, ()),
        p_value=NAN if job.reason else job.p_value(),
        trend=back(job.trend),
        residuals=back(job.residuals),
        reason=job.reason,
    )
    if job.reason or one.p_value > level:
        return one
    p_third = job.p_third()
    places = job.places(2 if p_third <= level else 1)
    p_gradual, noise = job.p_gradual(places)
    one = dataclasses.replace(
        one,
        p_jumps=job.p_jumps(places),
        p_gradual=p_gradual,
        gradual_ratio=float(noise[-1] / noise[0]),
    )
    if one.p_jumps <= max(JUMPS, 1 / (1 + n_draws)):
        return dataclasses.replace(
            one, reason="several jumps of the trend look like noise"
        )
    if p_gradual > max(GRADUAL, 1 / (1 + n_draws)):
        return one
    return _with_boundaries(one, job, single, places, p_third)


def _parts(
    job: RegimeSearch, single: bool, places: tuple[int, ...]
) -> tuple[Regime, ...]:
    ends = [0, *places, len(job.steps)]
    return tuple(
        _regime(job, a, b, single) for a, b in itertools.pairwise(ends) if a < b
    )


def _regime(job: RegimeSearch, start: int, stop: int, single: bool) -> Regime:
    values = job.series[start:stop]
    steps = job.steps[start:stop]
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    mean = np.where(there, values, 0.0).sum(axis=0) / np.where(count > 0, count, NAN)
    squares = np.where(there, (values - mean) ** 2, 0.0).sum(axis=0)
    sd = np.sqrt(squares / np.where(count > 1, count - 1, NAN))
    numbers = [job.level(job.residuals, start, stop), mean, sd]
    noise, mean, sd = (x[0].item() for x in numbers) if single else numbers
    return Regime(float(steps[0]), float(steps[-1]), len(steps), noise, mean, sd)


def _with_boundaries(
    one: Regimes,
    job: RegimeSearch,
    single: bool,
    places: tuple[int, ...],
    p_third: float,
) -> Regimes:
    parts = _parts(job, single, places)
    # (regimes, K).
    level = np.array([np.atleast_1d(part.noise)[job.used] for part in parts])
    size = np.nanmean(np.log(np.maximum(level, job.floor)), axis=1)
    calm = int(np.argmin(size))
    loud = int(np.argmax(size))
    main = int(np.argmax(np.abs(np.diff(size))))
    boundaries, noise = job.bootstrap(places, main)
    ratios = np.nanmean(np.log(np.maximum(noise, job.floor)), axis=2)
    ratio = size[loud] - size[calm]
    off = np.quantile(ratios[:, loud] - ratios[:, calm] - ratio, TAILS)
    ends = (0, *places, len(job.steps))
    counts = [job.rows(ends[i], ends[i + 1]) for i in (calm, loud)]
    low_ratio, high_ratio = np.exp(ratio + _stretch(*counts) * off)
    low, high = _ends(boundaries, places[main], len(job.steps))
    return dataclasses.replace(
        one,
        boundary=float(job.steps[places[main]]),
        interval=(float(job.steps[low]), float(job.steps[high])),
        smooth=parts[calm],
        noisy=parts[loud],
        noise_ratio=float(np.exp(ratio)),
        noise_ratio_interval=(float(low_ratio), float(high_ratio)),
        spacing_ratio=_gap(job, parts[loud]) / _gap(job, parts[calm]),
        regimes=parts,
        boundaries=tuple(float(job.steps[place]) for place in places),
        p_third=p_third,
    )


def _stretch(first: int, second: int) -> float:
    """Return how much wider than bootstrap percentiles the interval of a ratio of noises must be.

    A resample of n values varies less than n new ones, by n / (n - 1), and normal quantiles forget
    that the variance is estimated (T. Hesterberg, The American Statistician 69, 2015); here with
    Welch's degrees of freedom of both regimes.
    """
    n = np.maximum(np.array([first, second], dtype=float), 2.0)
    freedom = (1 / n).sum() ** 2 / (1 / (n**2 * (n - 1))).sum()
    resampled = np.sqrt((1 / (n - 1)).sum() / (1 / n).sum())
    return float(resampled * t.ppf(TAILS[1], freedom) / t.ppf(TAILS[1], np.inf))


def _gap(job: RegimeSearch, part: Regime) -> float:
    inside = (job.steps >= part.start) & (job.steps <= part.stop)
    return float(np.median(np.diff(job.steps[inside])))


def _ends(places: np.ndarray, place: int, count: int) -> tuple[int, int]:
    """Return the 95 % interval as positions, the wider of percentile and basic bootstrap."""
    below, above = np.quantile(places - place, TAILS)
    reach_low = min(below, -above, 0)
    reach_high = max(above, -below, 0)
    low = int(np.floor(place + reach_low))
    high = int(np.ceil(place + reach_high))
    return max(0, low), min(count - 1, high)


def _checked(
    steps: ArrayLike,
    values: ArrayLike,
    reference_index: int | None,
    level: float,
    n_draws: int,
) -> tuple[np.ndarray, np.ndarray, bool]:
    steps = checked_steps(steps)
    series = checked_table("values", values, steps, reference_index)
    if not 0 < level < 1 or n_draws < 19:
        raise ArgumentError(
            f"level must lie between 0 and 1 and n_draws be at least 19; got {level}, {n_draws}."
        )
    return steps, series, np.ndim(values) == 1
