"""The search for noise levels in one set of series, with its null and its bootstrap."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from .jumps import jump_gains, without_bends
from .noise_levels import (
    FEWEST,
    ROUNDING,
    Panel,
    best_boundaries,
    double_boundary,
    single_boundary,
)
from .trends import NEIGHBOURS, detrend

# Noise whose level changes gradually over training: what a boundary has to beat.

LARGEST = np.log(100.0)  # the noise changes at most a hundredfold


def gradual_levels(steps: np.ndarray, bent: bool = False) -> np.ndarray:
    """Return noise levels (n, T) that change without a boundary, up to a factor.

    Exponentially and linearly in the step, exponentially in its logarithm (a power law), and as
    half a cosine, each with the change from nothing to a hundredfold, up and down. `bent` adds
    those that rise and fall again, or the other way round, such as with a warm-up.

    Examples
    --------
    >>> levels = gradual_levels(np.arange(20.0))
    >>> bool((levels > 0).all()), levels.shape[1]
    (True, 20)
    """
    u = (steps - steps[0]) / (steps[-1] - steps[0])
    gap = np.diff(steps).min()
    late = np.log1p((steps - steps[0]) / gap)
    change = np.linspace(-LARGEST, LARGEST, 41)[:, None]
    cosine = (1 - np.cos(np.pi * u)) / 2
    exponential = [np.exp(change * x) for x in (u, late / late[-1])]
    straight = [1 + np.expm1(change) * x for x in (u, cosine)]
    levels = [*exponential, *straight]
    if bent:
        height = np.linspace(-LARGEST, LARGEST, 21)
        slope, hump = (x.reshape(-1, 1) for x in np.meshgrid(height, height))
        levels += [np.exp(slope * u + hump * 4 * u * (1 - u))]
        levels += [
            1 / np.exp(LARGEST) + np.minimum(u / top, (1 - u) / (1 - top))[None]
            for top in (0.05, 0.1, 0.2, 0.3, 0.5)
        ]
    return np.concatenate(levels)


def gradual_gains(
    residuals: np.ndarray, floor: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how much the best gradual change saves, (...,), and which of `levels` it is.

    The cost is that of `segment_costs`, n log(mean |residual|), of residuals divided by their
    level; the sum of the levels' logarithms is added. Each series takes the same kind of change.

    Parameters
    ----------
    residuals
        (..., T, K), NaN left out.
    floor
        (K,) smallest mean that counts.
    levels
        (n, T).

    Examples
    --------
    >>> noise = np.random.default_rng(0).laplace(size=(200, 1))
    >>> levels = gradual_levels(np.arange(200.0))
    >>> gain, best = gradual_gains(noise * levels[[5]].T, np.zeros(1), levels)
    >>> bool(gain > 20), bool(np.corrcoef(levels[best], levels[5])[0, 1] > 0.9)
    (True, True)
    """
    saved = np.zeros((*residuals.shape[:-2], len(levels)))
    logs = np.log(levels).T
    inverse = (1 / levels).T
    for k, smallest in enumerate(floor):
        size = np.abs(residuals[..., k])
        there = ~np.isnan(size)
        sizes = np.where(there, size, 0.0)
        count = there.sum(axis=-1, keepdims=True)
        plain = np.maximum(
            sizes.sum(axis=-1, keepdims=True) / np.maximum(count, 1), smallest
        )
        scaled = np.maximum(sizes @ inverse / np.maximum(count, 1), smallest)
        saved += count * (np.log(plain) - np.log(scaled)) - there @ logs
    return saved.max(axis=-1), saved.argmax(axis=-1)


CHUNK = 2**21  # costs held at a time
HALF = NEIGHBOURS // 2
VISIBLE = 0.05
FEWEST_TOGETHER = 2 * (FEWEST + NEIGHBOURS)
# Steps of a single curve: with 24, boundaries are hardly found, but bends are.
FEWEST_ALONE = 30


class RegimeSearch:
    """Series (T, K) without gaps common to all, their noise, and what is drawn from it.

    ``reason`` says why no boundary can be looked for, or is empty. ``used`` are the series whose
    noise can be distinguished from their trend; the others take no part.
    """

    def __init__(
        self,
        steps: np.ndarray,
        series: np.ndarray,
        n_draws: int,
        rng: np.random.Generator,
    ) -> None:
        self.steps = steps
        self.series = series
        self.n_draws = n_draws
        self.rng = rng
        self.residuals = self.trend = np.full(series.shape, np.nan)
        self.reason = self._prepared()

    def places(self, count: int) -> tuple[int, ...]:
        """Return the best boundaries as positions of the first step of each later regime."""
        boundaries = best_boundaries(self.central, self.floor, count)
        return tuple(place + HALF for place in boundaries)

    def p_value(self) -> float:
        """Return the p-value of one constant noise level, be there a sharp bend or not."""
        whole = self._filled(self.fluctuation)
        rows = self.rng.integers(0, len(whole), (self.n_draws, len(self.steps)))
        residuals = self._residuals_of(whole[rows])[:, self.inner]
        p = [
            2 * min(_rank(ones, one), _rank(twos, two))
            for one, two, ones, twos in self._compared(residuals)
        ]
        return min(1.0, max(p))

    def p_third(self) -> float:
        """Return the p-value of two regimes against three, be there a sharp bend or not."""
        residuals = self._residuals_of(self._resampled(self.places(1)))[:, self.inner]
        return max(
            _rank(twos - ones, two - one)
            for one, two, ones, twos in self._compared(residuals)
        )

    def _compared(
        self, residuals: np.ndarray
    ) -> Iterator[tuple[float, float, np.ndarray, np.ndarray]]:
        """Give what one and two boundaries save, observed and drawn: as they are, and unbent."""
        for cut in (_as_they_are, without_bend):
            (one,), (two,) = self._gains(cut(self.central[None]))
            ones, twos = self._gains(cut(residuals))
            yield float(one), float(two), ones, twos

    def p_jumps(self, places: tuple[int, ...], granted: int = 1) -> float:
        """Return the p-value of the noise of these regimes against jumps of the trends.

        Noise that is drawn anew in each regime leaves as much for jumps to explain as the series
        do, unless the series hold jumps. One jump of each is granted, unless `granted` is 0.
        """
        residuals = self._residuals_of(self._resampled(places))
        every = np.concatenate([self.residuals[None, :, self.used], residuals])
        gains = jump_gains(self.panel, every, self.used, granted)
        spread = gains.std(axis=0)
        largest = (
            (gains - gains.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        ).max(axis=1)
        return _rank(largest[1:], float(largest[0]))

    def p_gradual(self, places: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """Return the p-value of gradually changing noise against boundaries, and its level.

        The null draws noise of the gradual level that fits best. Beyond what a gradual change
        saves, the boundaries must save more than they do there; where jumps of the trends are
        visible, also without the three bends of each that fit best.
        """
        levels = gradual_levels(self.steps, bent=len(places) > 1)
        _, best = gradual_gains(self.central, self.floor, levels[:, self.inner])
        level = levels[int(best)]
        pool = self._filled(self.central / level[self.inner][:, None])
        rows = self.rng.integers(0, len(pool), (self.n_draws, len(self.steps)))
        every = (
            self.residuals[None, :, self.used],
            self._residuals_of(pool[rows] * level[:, None]),
        )
        p = self._beyond(every, levels, len(places))
        if self.p_jumps(places, granted=0) <= VISIBLE:
            bare = [
                without_bends(self.panel, boundary, self.used) for boundary in every
            ]
            p = max(p, self._beyond(bare, levels, len(places)))
        return p, level

    def _beyond(
        self, every: Sequence[np.ndarray], levels: np.ndarray, count: int
    ) -> float:
        """Return the rank of what boundaries save beyond a gradual change in (observed, drawn)."""
        beyond = []
        for residuals in every:
            inner = residuals[:, self.inner]
            gradual, _ = gradual_gains(inner, self.floor, levels[:, self.inner])
            beyond.append(self._gains(inner)[count - 1] - gradual)
        return _rank(beyond[1], float(beyond[0][0]))

    def bootstrap(
        self, places: tuple[int, ...], main: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return boundary number `main` (draws,) and noise (draws, regimes, K) in resamples.

        With three regimes the boundary is looked for between its neighbours.
        """
        residuals = self._residuals_of(self._resampled(places))
        ends = [0, *places, len(self.steps)]
        levels = [self.level(residuals, a, b) for a, b in itertools.pairwise(ends)]
        start = max(ends[main], HALF)
        stop = min(ends[main + 2], len(self.steps) - HALF)
        _, place = single_boundary(residuals[:, start:stop], self.floor)
        return place + start, np.stack(levels, axis=1)

    def _prepared(self) -> str:
        """Find trend and residuals; return why that is not possible, or an empty string."""
        counts = np.count_nonzero(~np.isnan(self.series), axis=0)
        needed = FEWEST_ALONE if len(counts) == 1 else FEWEST_TOGETHER
        usable = counts >= needed
        if not usable.any():
            largest = int(counts.max(initial=0))
            return f"{largest} usable steps are too few to compare two noise levels ({needed} needed)"
        self.trend = np.full(self.series.shape, np.nan)
        fluctuation = np.full(self.series.shape, np.nan)
        noisy = np.zeros(len(counts), dtype=bool)
        for k in np.flatnonzero(usable):
            there = ~np.isnan(self.series[:, k])
            detrended = detrend(self.steps[there], self.series[there, k])
            self.trend[there, k] = detrended.trend
            lost = 1 - detrended.degrees_of_freedom / there.sum()
            fluctuation[there, k] = detrended.fluctuation / np.sqrt(lost)
            noisy[k] = detrended.noisy
        if not noisy.any():
            return "no noise distinguishable from the trend"
        self.used = np.flatnonzero(noisy)
        panel = Panel.of(self.steps, np.where(noisy, self.series, np.nan))
        self.panel = panel
        self.residuals = panel.residuals(np.where(noisy, self.series, np.nan))
        self.floor = ROUNDING * np.nanmax(np.abs(self.series[:, self.used]), axis=0)
        self.inner = slice(HALF, len(self.steps) - HALF)
        self.fluctuation = fluctuation[:, self.used]
        self.central = self.residuals[self.inner][:, self.used]
        return ""

    def level(self, residuals: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return the noise (..., K) of a regime [start, stop) in residuals (..., T, K)."""
        return noise_level(residuals[..., self._inside(start, stop), :])

    def rows(self, start: int, stop: int) -> int:
        """Return how many steps the noise is estimated from in a regime [start, stop)."""
        inside = self.residuals[self._inside(start, stop)][:, self.used]
        return int(np.count_nonzero(~np.isnan(inside).all(axis=1)))

    def _inside(self, start: int, stop: int) -> slice:
        """Return the steps of a regime whose residuals mix no other regime's noise in."""
        return slice(start + HALF * (start > 0), stop - HALF * (stop < len(self.steps)))

    def _resampled(self, places: tuple[int, ...]) -> np.ndarray:
        """Return noise (draws, T, K) drawn from the residuals of each regime for itself."""
        ends = [0, *places, len(self.steps)]
        parts = []
        for a, b in itertools.pairwise(ends):
            pool = self.residuals[self._inside(a, b)][:, self.used]
            filled = self._filled(pool[~np.isnan(pool).all(axis=1)])
            parts.append(
                filled[self.rng.integers(0, len(filled), (self.n_draws, b - a))]
            )
        return np.concatenate(parts, axis=1)

    def _filled(self, pool: np.ndarray) -> np.ndarray:
        """Return rows of noise (n, K) whose gaps hold values drawn from the same series."""
        filled = pool.copy()
        for k in range(filled.shape[1]):
            gaps = np.isnan(filled[:, k])
            if gaps.any():
                values = filled[~gaps, k]
                filled[gaps, k] = (
                    self.rng.choice(values, gaps.sum()) if len(values) else 0.0
                )
        return filled

    def _residuals_of(self, noise: np.ndarray) -> np.ndarray:
        """Return residuals (draws, T, K) of trend plus noise with random signs, over used series.

        One sign for all series of a step: noise that they share stays shared.
        """
        signs = self.rng.choice([-1.0, 1.0], (*noise.shape[:2], 1))
        values = np.full((len(noise), *self.series.shape), np.nan)
        values[..., self.used] = self.trend[:, self.used] + noise * signs
        return self.panel.residuals(values)[..., self.used]

    def _gains(self, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what one and what two boundaries save in residuals (draws, T − 4, K)."""
        size = max(1, CHUNK // len(self.steps) ** 2)
        chunks = [residuals[i : i + size] for i in range(0, len(residuals), size)]
        one, _ = single_boundary(residuals, self.floor)
        two = [double_boundary(chunk, self.floor) for chunk in chunks]
        return one, np.concatenate(two)


def without_bend(residuals: np.ndarray) -> np.ndarray:
    """Return residuals (draws, T, K), each curve without its four largest in a row: T − 4 are left.

    A bend or a jump of the trend between two checkpoints reaches four residuals at most. What it
    leaves of a change of noise is one that no single bend explains. Curves bend at different
    checkpoints, so each loses its own four.

    Examples
    --------
    >>> without_bend(np.array([1.0, 1, 9, 9, 9, 9, 1, 2])[None, :, None]).ravel()
    array([1., 1., 1., 2.])
    """
    sizes = np.where(np.isnan(residuals), 0.0, np.abs(residuals))
    sums = np.cumsum(np.pad(sizes, ((0, 0), (1, 0), (0, 0))), axis=1)
    start = np.argmax(sums[:, NEIGHBOURS:] - sums[:, :-NEIGHBOURS], axis=1)[:, None]
    rows = np.arange(residuals.shape[1] - NEIGHBOURS)[:, None]
    return np.take_along_axis(residuals, rows + NEIGHBOURS * (rows >= start), axis=1)


def _as_they_are(residuals: np.ndarray) -> np.ndarray:
    return residuals


def _rank(draws: np.ndarray, observed: float) -> float:
    return float(
        (1 + np.sum(draws >= observed - 1e-9 * abs(observed))) / (1 + len(draws))
    )


def noise_level(residuals: np.ndarray) -> np.ndarray:
    """Return the root mean square (..., K) of residuals (..., T, K), NaN left out."""
    there = ~np.isnan(residuals)
    count = there.sum(axis=-2)
    squares = (np.where(there, residuals, 0.0) ** 2).sum(axis=-2)
    return np.sqrt(np.where(count > 0, squares, np.nan) / np.maximum(count, 1))
