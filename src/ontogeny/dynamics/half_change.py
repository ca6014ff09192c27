"""At which step half of a change was done, and between which steps it may have been."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from .series import checked_series, checked_steps, floors

DRAWS = 999
Z = 1.96  # a floor is this many standard errors of a difference of two values
# Floors beyond this multiple of the change say no more than it does: nothing is known there.
FLOOR_LIMIT = 1e3


def half_change_step(
    steps: ArrayLike, progress: ArrayLike, *, last: bool = False
) -> float:
    """Return the step at which `progress` first reaches one half, interpolated in log(step).

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0; between step 0 and the next one the interpolation
        is linear in the step.
    progress
        Progress (T,); NaN is left out.
    last
        Return where it reaches one half for good instead of for the first time.

    Returns
    -------
    float
        NaN if it never does.

    Raises
    ------
    ArgumentError
        If the steps do not increase or the lengths differ.

    Examples
    --------
    >>> half_change_step([0, 1, 10, 100, 1000], [0.0, 0.0, 0.25, 0.75, 1.0])
    31.62...
    """
    steps = checked_steps(steps)
    track = np.asarray(progress, dtype=np.float64)
    if track.shape != steps.shape:
        raise ArgumentError(
            f"progress must have one value a step; got shape {track.shape} for {len(steps)} steps."
        )
    usable = ~np.isnan(track)
    if not usable.any():
        return float("nan")
    return float(_crossings(steps[usable], track[None, usable], last)[0])


def half_change_interval(
    steps: ArrayLike,
    values: ArrayLike,
    floor: ArrayLike,
    n_draws: int = DRAWS,
    random_state: int | np.random.Generator = 0,
) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a half-change step.

    A parametric bootstrap: each usable value is drawn anew from a normal distribution with its
    noise. The lower end is the 2.5 % quantile of the steps at which the draws first reach half of
    their change. The upper end is the 97.5 % quantile of those at which they do so for good. What
    happened between two checkpoints is not known, so the interval reaches at least to the
    checkpoints on both sides of every crossing of the values themselves.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0.
    values
        Series (T,); NaN is left out.
    floor
        A number or (T,): 1.96 standard errors of a difference of two values with equal noise, NaN
        where it is unknown. The first value has the median noise of the others.
    n_draws
        Number of draws.
    random_state
        Their seed, or a generator.

    Returns
    -------
    tuple of float
        NaN if the floor of a usable step between the first and the last is unknown, or if nothing
        changed.

    Raises
    ------
    ArgumentError
        If steps do not increase, shapes do not fit, or a floor is negative.
    NonFiniteError
        If a value or a floor is infinite.

    References
    ----------
    B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 13.

    Examples
    --------
    >>> steps = [0, 1, 2, 4, 8, 16, 32]
    >>> half_change_interval(steps, [0.0, 0.1, 0.3, 0.6, 0.8, 0.9, 1.0], floor=0.02)
    (2.0, 4.0)
    """
    steps = checked_steps(steps)
    values = checked_series("values", values, steps, None)
    rng = np.random.default_rng(random_state)
    usable = np.flatnonzero(~np.isnan(values))
    noise = floors(floor, 0.0, values, may_be_unknown=True)[usable][1:]
    if (
        len(usable) < 2
        or np.isnan(noise).any()
        or values[usable[0]] == values[usable[-1]]
    ):
        return float("nan"), float("nan")
    steps = steps[usable]
    values = values[usable]
    noise = np.minimum(noise, FLOOR_LIMIT * abs(values[-1] - values[0])) / (
        Z * np.sqrt(2.0)
    )
    noise = np.concatenate([[np.median(noise)], noise])
    progress = _progress(values + noise * rng.standard_normal((n_draws, len(values))))
    track = _progress(values[None])
    low, high = _brackets(steps, track[0])
    first = np.quantile(_crossings(steps, progress), 0.025)
    final = np.quantile(_crossings(steps, progress, last=True), 0.975)
    return min(float(first), low), max(float(final), high)


def _progress(values: np.ndarray) -> np.ndarray:
    """Return progress (n, T) from 0 to 1 of values (n, T) whose ends differ."""
    return (values - values[:, :1]) / (values[:, -1:] - values[:, :1])


def _crossings(steps: np.ndarray, tracks: np.ndarray, last: bool = False) -> np.ndarray:
    """Return where each track (n, T) first, or for good, reaches one half; NaN if it does not."""
    above = tracks >= 0.5
    rows = np.arange(len(tracks))
    reached = above[:, -1] if last else above.any(axis=1)
    at = _after_last_below(above) if last else np.argmax(above, axis=1)
    at = np.where(reached, at, 0)
    before = np.maximum(at - 1, 0)
    low = tracks[rows, before]
    high = tracks[rows, at]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (0.5 - low) / (high - low)
        start = steps[before]
        stop = steps[at]
        inside = np.where(start == 0, share * stop, start * (stop / start) ** share)
    return np.where(reached, np.where(at == 0, steps[0], inside), np.nan)


def _after_last_below(above: np.ndarray) -> np.ndarray:
    """Return the position (n,) from which on all is above; the number of steps if none is."""
    return np.where(
        above.all(axis=1), 0, above.shape[1] - np.argmax(~above[:, ::-1], axis=1)
    )


def _brackets(steps: np.ndarray, track: np.ndarray) -> tuple[float, float]:
    """Return the checkpoint before the first crossing of one half and the one after the last."""
    above = track >= 0.5
    first = int(np.argmax(above))
    last = int(_after_last_below(above[None])[0])
    return float(steps[max(first - 1, 0)]), float(steps[last])
