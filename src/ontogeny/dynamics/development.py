"""How a series went from its first to its last value, and whether that is more than noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from .multiple import holm
from .order import FEWEST_STEPS, LARGEST_ENUMERATED, step_order_test
from .series import checked_steps, checked_values, floors, resolution

# Floors beyond this multiple of the change say no more than it does: nothing is known there.
FLOOR_LIMIT = 1e3


@dataclass(frozen=True, eq=False)
class Development:
    """What `development` found; ``...`` are the leading dimensions of the series.

    Parameters
    ----------
    progress
        (..., T): (v_t − v_first) / (v_last − v_first), 0 at the first and 1 at the last step; may
        overshoot. NaN at missing steps, and everywhere if the change cannot be measured.
    distinct
        (..., T): ``|v_t − v_first|`` exceeds the floor; False where the floor is unknown.
    first, last
        (...,): first and last usable value.
    change
        (...,): v_last − v_first.
    moved
        (...,): the change exceeds the floor; False where the floor is unknown.
    half_step
        (...,): step at which progress first reaches one half; NaN unless moved.
    half_step_low, half_step_high
        (...,): where progress plus the floor first, and progress minus the floor for good, reaches
        one half; the first and last such step where there is no floor. NaN where the floor of any
        usable step between the first and the last is unknown.
    settled_step
        (...,): first step from which on the series stays within the floor of its last value; NaN
        if only the last step does, or if unknown floors leave it open.
    p_value
        (...,): Holm-corrected over all series; NaN below 6 usable steps.
    p_uncorrected
        (...,): p-value of `step_order_test`.
    smallest_p
        (...,): smallest p-value that so many usable steps could give; NaN where there is none.
    developed
        (...,): ``p_value <= alpha`` and the change exceeds the floor; False without `noise_known`.
    noise_known
        (...,): the floor of the last usable step is known, so that `developed` is a verdict.
    """

    progress: np.ndarray
    distinct: np.ndarray
    first: np.ndarray
    last: np.ndarray
    change: np.ndarray
    moved: np.ndarray
    half_step: np.ndarray
    half_step_low: np.ndarray
    half_step_high: np.ndarray
    settled_step: np.ndarray
    p_value: np.ndarray
    p_uncorrected: np.ndarray
    smallest_p: np.ndarray
    developed: np.ndarray
    noise_known: np.ndarray


def development(
    steps: ArrayLike,
    values: ArrayLike,
    floor: ArrayLike = 0.0,
    reference_index: int | None = None,
    n_permutations: int = 9999,
    random_state: int = 0,
    *,
    alpha: float = 0.01,
    scale: ArrayLike | None = None,
) -> Development:
    """Return how series over training steps went from their first to their last value.

    A series **developed** if the order of its steps is visible in it (`step_order_test`, corrected
    over all series given) and its change from first to last exceeds the noise floor. A random walk
    counts: its values do depend on the step. A series that leaves and comes back has a small
    p-value but no change from first to last, so it did not develop in this sense.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0.
    values
        Series (..., T); NaN where a step is missing.
    floor
        Noise of a *difference* of two values as refitting or resampling gives it: a number,
        (...,), or (..., T). Read as at least 1e-6 × `scale`. NaN where the noise is unknown, which
        is never read as zero: without the floor of its last step no series developed.
    reference_index
        Position of the reference checkpoint where the values are distances to it. The value there
        is zero by construction, so that step is left out of everything: first and last are taken
        from the others. Distances that jitter around one level therefore do not develop, and those
        which fall towards the reference still end at 1: the reference step shows the progress of
        the step before it (of the step after it if it is the first).
    n_permutations, random_state
        Random orders of the steps and their seed, see `step_order_test`.
    alpha
        Level of the corrected test.
    scale
        Size of the numbers that the values were computed from, a number or (...,): for example the
        norm of a dictionary where the values are small distances between dictionaries. Default:
        the largest absolute value of each series.

    Returns
    -------
    Development
        Arrays as described there.

    Raises
    ------
    ArgumentError
        If steps do not increase, shapes do not fit, or a number is out of range.
    NonFiniteError
        If a value or a floor is infinite.

    Notes
    -----
    The half-change step is interpolated linearly in progress over log(step), and over the step
    itself between step 0 and the next. False-positive rates and power: the guide on nulls.

    Examples
    --------
    >>> steps = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256])
    >>> found = development(steps, 8.0 - 4.0 * steps / (steps + 16), floor=0.1)
    >>> bool(found.developed), round(float(found.half_step), 1), float(found.settled_step)
    (True, 14.2, nan)
    """
    steps = checked_steps(steps)
    series = checked_values(values, len(steps), reference_index)
    rows = series.reshape(-1, len(steps))
    noise = floors(floor, scale, series, may_be_unknown=True).reshape(rows.shape)
    start, stop, last = _ends(rows)
    change = stop - start
    moved = rows - start[:, None]
    measurable = np.abs(change) > resolution(scale, series).reshape(-1)
    progress = moved / np.where(measurable, change, np.nan)[:, None]
    distinct = np.abs(moved) > noise
    p_uncorrected = step_order_test(rows, n_permutations, random_state, alpha)
    p_value = holm(p_uncorrected)
    final_noise = np.take_along_axis(noise, last[:, None], axis=1)[:, 0]
    exceeds = np.abs(change) > final_noise
    smallest = _smallest_p(rows, n_permutations)
    developed = exceeds & (np.nan_to_num(p_value, nan=1.0) <= alpha)
    half, low, high = _half_steps(steps, progress, noise, change, exceeds)
    settled = np.array([_settled_step(steps, *row) for row in zip(rows, noise, strict=True)])
    if reference_index is not None:
        _copy_neighbour(progress, distinct, ~np.isnan(rows), reference_index)
    batch = series.shape[:-1]
    return Development(
        progress=progress.reshape(series.shape),
        distinct=distinct.reshape(series.shape),
        first=start.reshape(batch),
        last=stop.reshape(batch),
        change=change.reshape(batch),
        moved=exceeds.reshape(batch),
        half_step=half.reshape(batch),
        half_step_low=low.reshape(batch),
        half_step_high=high.reshape(batch),
        settled_step=settled.reshape(batch),
        p_value=p_value.reshape(batch),
        p_uncorrected=p_uncorrected.reshape(batch),
        smallest_p=smallest.reshape(batch),
        developed=developed.reshape(batch),
        noise_known=np.isfinite(final_noise).reshape(batch),
    )


def half_change_step(steps: ArrayLike, progress: ArrayLike, *, last: bool = False) -> float:
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
    steps, track = steps[~np.isnan(track)], track[~np.isnan(track)]
    above = track >= 0.5
    if not above.any() or (last and not above[-1]):
        return float("nan")
    below = np.flatnonzero(~above)
    at = (below[-1] + 1 if len(below) else 0) if last else int(np.argmax(above))
    if at == 0:
        return float(steps[0])
    share = (0.5 - track[at - 1]) / (track[at] - track[at - 1])
    start, stop = steps[at - 1], steps[at]
    if start == 0:
        return float(share * stop)
    return float(start * (stop / start) ** share)


def _half_steps(
    steps: np.ndarray,
    progress: np.ndarray,
    noise: np.ndarray,
    change: np.ndarray,
    moved: np.ndarray,
) -> np.ndarray:
    """Return half-change steps, their lower and upper ends, (3, n); NaN where nothing moved."""
    halves = np.full((3, len(progress)), np.nan)
    for i in np.flatnonzero(moved):
        usable = np.flatnonzero(~np.isnan(progress[i]))
        size = abs(change[i])
        floor = np.minimum(noise[i], FLOOR_LIMIT * size) / size
        floor[usable[[0, -1]]] = 0.0  # progress is 0 and 1 there by definition
        halves[0, i] = half_change_step(steps, progress[i])
        if np.isfinite(floor[usable]).all():
            halves[1, i] = half_change_step(steps, progress[i] + floor)
            halves[2, i] = half_change_step(steps, progress[i] - floor, last=True)
    return halves


def _smallest_p(rows: np.ndarray, n_permutations: int) -> np.ndarray:
    """Return the smallest p-value that the test could give with the usable steps of each row."""
    counts = np.count_nonzero(~np.isnan(rows), axis=1)
    orders = [math.factorial(n) if n <= LARGEST_ENUMERATED else 1 + n_permutations for n in counts]
    return np.where(counts >= FEWEST_STEPS, 1 / np.array(orders, dtype=np.float64), np.nan)


def _settled_step(steps: np.ndarray, row: np.ndarray, floor: np.ndarray) -> float:
    usable = np.flatnonzero(~np.isnan(row))
    if len(usable) < 2:
        return float("nan")
    within = np.abs(row[usable] - row[usable[-1]]) <= floor[usable]
    start = int(np.flatnonzero(~within)[-1]) + 1 if not within.all() else 0
    if start and np.isnan(floor[usable[start - 1]]):
        return float("nan")  # whether the series had settled there already is unknown
    return float(steps[usable[start]]) if start < len(usable) - 1 else float("nan")


def _copy_neighbour(
    progress: np.ndarray, distinct: np.ndarray, usable: np.ndarray, reference: int
) -> None:
    """Give the reference step what the nearest earlier (else later) usable step has."""
    for row, places in enumerate(map(np.flatnonzero, usable)):
        if len(places):
            before = places[places < reference]
            beside = before[-1] if len(before) else places[0]
            progress[row, reference] = progress[row, beside]
            distinct[row, reference] = distinct[row, beside]


def _ends(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return first and last usable value of each row and the position of the last.

    Rows without any usable value give NaN.
    """
    usable = ~np.isnan(rows)
    first = np.argmax(usable, axis=1)
    last = rows.shape[1] - 1 - np.argmax(usable[:, ::-1], axis=1)
    picked = np.arange(len(rows))
    return rows[picked, first], rows[picked, last], last
