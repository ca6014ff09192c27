"""How a series went from its first to its last value, and whether that is more than noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import check_number, check_whole
from ..multiple_tests import holm
from .half_change import half_change_interval, half_change_step
from .order import smallest_p, step_order_test
from .reasons import CHANCE, OPEN, Reason, reasons
from .series import checked_steps, checked_values, floors, resolution
from .trend_tests import trend_p_values


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
    half_step
        (...,): step at which progress first reaches one half; NaN unless it moved.
    half_step_low, half_step_high
        (...,): ends of its 95 % interval (`half_change_interval`): a bootstrap of the values from
        their floors, and at least to the checkpoints on both sides. NaN where the floor of any
        usable step between the first and the last is unknown.
    settled_step
        (...,): first step from which on the series stays within the floor of its last value
        (`floor_to_last`); NaN if only the last step does, or if unknown floors leave it open.
    p_value
        (...,): Holm-corrected over all series; NaN below 6 usable steps.
    p_uncorrected
        (...,): p-value against fresh noise and noise with short memory, and against the memory of
        the reference where there is one; at least `smallest_p`.
    p_order, p_slow
        (...,): p-values of `step_order_test`, and of a random walk or other noise with long memory.
        Each is asked of one series, at a level of 5 %, and not corrected.
    smallest_p
        (...,): smallest p-value that the number of usable steps allows: the share of orders that
        are as smooth as a straight line, up to 8 steps.
    moved
        (...,): the change exceeds the floor of the last step; no test. False where that floor is
        unknown.
    changed
        (...,): it moved, ``p_value <= level``, and ``p_order`` and ``p_slow`` are at most 5 %.
    reason
        (...,): which test decided that it did not change, empty where it did (text of a
        `ontogeny.dynamics.reasons.Reason`).
    only_memory
        (...,): it would count as changed if its reference were not one of the checkpoints, but the
        memory of the reference explains it as well. No verdict is possible with this reference.
    judgeable
        (...,): the noise is known, with this number of steps ``p_value`` could reach `level`, and
        neither the memory of the reference nor slow noise alone looks the same. Where it is False,
        `changed` is False because nothing can be said.
    noise_known
        (...,): the floor of the last usable step is known.
    """

    progress: np.ndarray
    distinct: np.ndarray
    first: np.ndarray
    last: np.ndarray
    change: np.ndarray
    half_step: np.ndarray
    half_step_low: np.ndarray
    half_step_high: np.ndarray
    settled_step: np.ndarray
    p_value: np.ndarray
    p_uncorrected: np.ndarray
    p_order: np.ndarray
    p_slow: np.ndarray
    smallest_p: np.ndarray
    moved: np.ndarray
    changed: np.ndarray
    reason: np.ndarray
    only_memory: np.ndarray
    judgeable: np.ndarray
    noise_known: np.ndarray


def development(
    steps: ArrayLike,
    values: ArrayLike,
    floor: ArrayLike = 0.0,
    reference_index: int | None = None,
    n_draws: int = 9999,
    random_state: int = 0,
    *,
    level: float = 0.01,
    scale: ArrayLike | None = None,
    n_tests: int | None = None,
    floor_to_last: ArrayLike | None = None,
) -> Development:
    """Return how series over training steps went from their first to their last value.

    A series **changed** if four things hold. Its change from first to last exceeds the noise
    floor. It follows a shape that fresh noise, and noise with memory up to .5 from one checkpoint
    to the next, does not show: this p-value is corrected over all series given. The order of its
    steps is visible in it, whatever the distribution of the noise (`step_order_test`). And slow
    noise, up to a random walk, looks like that in at most 5 % of series (`trend_test`). A series
    that leaves and comes back has a small p-value but did not move from first to last, so it did
    not change in this sense.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0.
    values
        Series (..., T); NaN where a step is missing.
    floor
        Noise of a *difference* of two values as refitting or resampling gives it, half of a 95 %
        interval (1.96 standard errors): a number, (...,), or (..., T). Read as at least
        1e-6 × `scale`. NaN where the noise is unknown, which is never read as zero: without the
        floor of its last step no series changed.
    reference_index
        Position of the reference checkpoint where the values are distances to it, or similarities
        with it. That step is left out of everything: first and last are taken from the others.
        Checkpoints within the memory of the reference are closer to it without any change, which
        `p_uncorrected` takes into account. Distances which fall towards the reference still end at
        1: the reference step shows the progress of the step before it (of the step after it if it
        is the first).
    n_draws, random_state
        Random orders of the steps (`step_order_test`), and the seed of these and of the bootstrap
        of half-change steps. All series see the same draws.
    level
        Level of the corrected test.
    scale
        Size of the numbers that the values were computed from, a number or (...,): for example the
        norm of a dictionary where the values are small distances between dictionaries. Default:
        the largest absolute value of each series.
    n_tests
        Number of tests that `p_uncorrected` will be corrected for together, if more than the series
        given. `judgeable` is made for it. Default: the series given.
    floor_to_last
        Noise of a difference to the last value, in the shapes of `floor`; default: `floor`. Values
        on the same texts that lie close together have less of it.

    Returns
    -------
    Development
        Arrays as described there.

    Raises
    ------
    ArgumentError
        If steps do not increase, shapes do not fit, or a number is out of range.
    NonFiniteError
        If a value or one of the floors is infinite.

    Notes
    -----
    The half-change step is interpolated linearly in progress over log(step), and over the step
    itself between step 0 and the next. It is given wherever a series moved, changed or not. Rates
    of errors, power and coverage: the guide to error rates.

    Examples
    --------
    >>> steps = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256])
    >>> curve = development(steps, 8.0 - 4.0 * steps / (steps + 16), floor=0.1)
    >>> bool(curve.changed), round(float(curve.half_step), 1), float(curve.settled_step)
    (True, 14.2, nan)
    >>> float(curve.half_step_low), float(curve.half_step_high)
    (8.0, 16.0)
    """
    steps = checked_steps(steps)
    series = checked_values(values, len(steps), reference_index)
    check_number("level", level, 0, 1, above=True, below=True)
    if n_tests is not None:
        check_whole("n_tests", n_tests)
    rows = series.reshape(-1, len(steps))
    by_name = {
        "floor": floor,
        "floor_to_last": floor if floor_to_last is None else floor_to_last,
    }
    noise, late = (
        floors(value, scale, series, may_be_unknown=True, name=name).reshape(rows.shape)
        for name, value in by_name.items()
    )
    first, last, at_last = _ends(rows)
    change = last - first
    measurable = np.abs(change) > resolution(scale, series).reshape(-1)
    progress = (rows - first[:, None]) / np.where(measurable, change, np.nan)[:, None]
    distinct = np.abs(rows - first[:, None]) > noise
    p_order = step_order_test(rows, n_draws, random_state, CHANCE, n_tests=1)
    with_reference = np.asarray(values).reshape(rows.shape)
    trend = trend_p_values(steps, with_reference, reference_index)
    smallest = smallest_p(np.count_nonzero(~np.isnan(rows), axis=1))
    alone = np.maximum(trend.short, smallest)
    p_uncorrected = np.maximum(alone, trend.reference)
    p_value = holm(p_uncorrected)
    only_memory = (p_value > level) & (holm(alone) <= level)
    final_noise = np.take_along_axis(noise, at_last[:, None], axis=1)[:, 0]
    moved = np.abs(change) > final_noise
    tests = max(n_tests or 1, int(np.sum(~np.isnan(p_uncorrected))))
    reason = reasons(
        noise_known=np.isfinite(final_noise),
        tested=np.isfinite(p_uncorrected),
        reachable=np.nan_to_num(smallest, nan=1.0) * tests <= level,
        moved=moved,
        p_order=p_order,
        shown=np.nan_to_num(p_value, nan=1.0) <= level,
        only_memory=only_memory,
        p_slow=trend.slow,
    )
    half, low, high = _half_steps(steps, rows, progress, noise, moved, random_state)
    settled = np.array(
        [_settled_step(steps, *row) for row in zip(rows, late, strict=True)]
    )
    if reference_index is not None:
        _copy_neighbour(progress, distinct, ~np.isnan(rows), reference_index)
    of_rows = {
        "first": first,
        "last": last,
        "change": change,
        "half_step": half,
        "half_step_low": low,
        "half_step_high": high,
        "settled_step": settled,
        "p_value": p_value,
        "p_uncorrected": p_uncorrected,
        "p_order": p_order,
        "p_slow": trend.slow,
        "smallest_p": smallest,
        "moved": moved,
        "changed": reason == Reason.NONE,
        "reason": reason,
        "only_memory": only_memory,
        "judgeable": ~np.isin(reason, OPEN),
        "noise_known": np.isfinite(final_noise),
    }
    batch = series.shape[:-1]
    return Development(
        progress=progress.reshape(series.shape),
        distinct=distinct.reshape(series.shape),
        **{name: values.reshape(batch) for name, values in of_rows.items()},
    )


def _half_steps(
    steps: np.ndarray,
    rows: np.ndarray,
    progress: np.ndarray,
    noise: np.ndarray,
    moved: np.ndarray,
    random_state: int,
) -> np.ndarray:
    """Return half-change steps, their lower and upper ends, (3, n); NaN where nothing moved."""
    halves = np.full((3, len(rows)), np.nan)
    for i in np.flatnonzero(moved):
        halves[0, i] = half_change_step(steps, progress[i])
        halves[1:, i] = half_change_interval(
            steps, rows[i], noise[i], random_state=random_state
        )
    return halves


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
