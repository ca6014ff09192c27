"""P-values of trends against noise with memory.

Against noise around one level stands a ratio of likelihoods (`shape_ratio`). Distances to a
checkpoint have another null: checkpoints within its memory are closer to it. For each such model
(`memory`) the series is whitened, the level projected out, and the share of the rest measured that
a shape explains: an F-test of generalised least squares, exact for normal noise. The largest
p-value over these models counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .memory import JITTER, NullModel, fitted_models, reference_models
from .order import FEWEST_STEPS, LONG
from .series import checked_steps, checked_values
from .shape_ratio import noise_p_values
from .shapes import curves, jumps

DEGREES = (3, 5)
SMALLEST_BAND = 8
PROMISING = 0.05  # rows with a larger p-value need no fit of their own
NARROW = 0.35  # width in checkpoints of the narrowest curve
TOGETHER = 64  # shapes over many checkpoints that are whitened at a time: they fit into the cache

# Of shapes: 0 before the first number, 1 from the second on.
_Group = tuple[int, int, np.ndarray]
_Families = tuple[list[_Group], list[_Group], np.ndarray]


@dataclass(frozen=True, eq=False)
class TrendPValues:
    """P-values (...,) of series against three kinds of noise; NaN with fewer than 6 usable steps.

    Parameters
    ----------
    short
        Fresh noise, or noise with memory up to .5 from one checkpoint to the next.
    slow
        Noise with any memory, up to a random walk.
    reference
        The memory of the reference; 0 where there is none.
    """

    short: np.ndarray
    slow: np.ndarray
    reference: np.ndarray


def trend_test(
    steps: ArrayLike, values: ArrayLike, reference_index: int | None = None
) -> np.ndarray:
    """Return p-values of "the series is no noise with memory, but follows a trend".

    The null hypothesis is normal noise with any memory, up to a random walk, by checkpoints and by
    steps, which is simulated. Fresh noise on top of it makes the test more cautious. The guide to
    error rates says how often noise with heavy tails, or that grows, is called a trend.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0.
    values
        Series (..., T); NaN marks a missing step and is left out.
    reference_index
        Position of the reference checkpoint where the values are distances to it (lengths, zero
        there), or similarities (largest there). Checkpoints within its
        memory are then expected to be closer to it. The reference itself is left out.

    Returns
    -------
    numpy.ndarray
        (...,): NaN for a series with fewer than 6 usable steps, 1 for a constant one.

    Raises
    ------
    ArgumentError
        If steps do not increase, shapes do not fit, or the reference is no position.
    NonFiniteError
        If a value is infinite.

    References
    ----------
    A. C. Aitken, Proc. R. Soc. Edinburgh 55, 1935, for generalised least squares; J.-M. Dufour,
    J. Econometrics 133, 2006, for simulated tests and the largest p-value over a nuisance
    parameter.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> steps, noise = np.arange(24), rng.normal(size=24)
    >>> slow = np.convolve(rng.normal(size=200), 0.9 ** np.arange(100))[100:124]
    >>> p = trend_test(steps, [np.sqrt(steps) + 0.02 * noise, slow])
    >>> bool(p[0] < 1e-3), bool(p[1] > 0.05)
    (True, True)
    """
    found = trend_p_values(steps, values, reference_index)
    return np.maximum(found.slow, found.reference)


def trend_p_values(
    steps: ArrayLike, values: ArrayLike, reference_index: int | None = None
) -> TrendPValues:
    """Return the p-values of series against each kind of noise, as `trend_test` takes them.

    A row of which only that of the reference is large moves as checkpoints do that are close to the
    reference because they are near in time: it cannot be judged with this reference.
    """
    steps = checked_steps(steps)
    series = checked_values(values, len(steps), reference_index)
    rows = series.reshape(-1, len(steps))
    at = _at_reference(values, rows, reference_index)
    usable = ~np.isnan(rows)
    short, slow, reference = (np.full(len(rows), np.nan) for _ in range(3))
    alike = np.column_stack([usable, at != 0])
    for kind in np.unique(alike[usable.sum(axis=1) >= FEWEST_STEPS], axis=0):
        group = np.flatnonzero((alike == kind).all(axis=1))
        mask = kind[:-1]
        similar = bool(kind[-1])
        moved = rows[np.ix_(group, mask)] - at[group, None]
        short[group], slow[group] = noise_p_values(steps[mask], moved)
        reference[group] = 0.0
        if reference_index is not None:
            reference[group] = _beside_reference(
                moved, steps, mask, reference_index, similar
            )
    batch = series.shape[:-1]
    return TrendPValues(
        short.reshape(batch), slow.reshape(batch), reference.reshape(batch)
    )


def _beside_reference(
    rows: np.ndarray, steps: np.ndarray, mask: np.ndarray, reference: int, similar: bool
) -> np.ndarray:
    """Return the largest p-value of complete rows (n, T) over the memories of the reference."""
    families = _shapes(int(mask.sum()))
    largest = _largest(
        rows, reference_models(steps, mask, reference, similar), families
    )
    for i in np.flatnonzero(largest <= PROMISING):
        fitted = fitted_models(rows[i], steps, mask, reference, similar)
        largest[i] = max(largest[i], *_largest(rows[[i]], fitted, families))
    return largest


def _at_reference(
    values: ArrayLike, rows: np.ndarray, reference: int | None
) -> np.ndarray:
    """Return the value at the reference of each row where it is a similarity, else 0.

    Distances are 0 there, up to rounding; similarities are as large as they get.
    """
    if reference is None:
        return np.zeros(len(rows))
    matrix = np.nan_to_num(np.asarray(values, dtype=np.float64).reshape(rows.shape))
    there = matrix[:, reference]
    return np.where(np.abs(there) >= np.max(np.abs(matrix), axis=1) / 2, there, 0.0)


def _largest(
    rows: np.ndarray, models: list[NullModel], families: _Families
) -> np.ndarray:
    """Return the largest p-value of complete rows (n, T) over the null models."""
    spread = np.ptp(rows, axis=1, keepdims=True)
    rows = rows / np.where(spread > 0, spread, 1.0)
    worst = np.zeros(len(rows))
    for model in models:
        worst = np.maximum(worst, _p_values(rows, model, families))
    return np.where(spread[:, 0] > 0, worst, 1.0)


def _p_values(rows: np.ndarray, model: NullModel, families: _Families) -> np.ndarray:
    """Return the p-value of each row under one null model, corrected for shapes and bands.

    Half of the tests look at the smoother half of the whitened series alone, where fresh noise is
    small.
    """
    count = rows.shape[1]
    variances, axes = np.linalg.eigh(model.correlation + JITTER * np.eye(count))
    whitening = (axes / np.sqrt(variances)).T[
        ::-1
    ] / model.size  # smooth components first
    bands = sorted({count, min(count, max(SMALLEST_BAND, -(-count // 2)))})
    best = np.ones(len(rows))
    for band in bands:
        white = whitening[:band]
        level = white @ model.size
        level /= np.linalg.norm(level)
        explained = _explained(_without(level, white @ rows.T), level, white, families)
        best = np.minimum(best, len(bands) * explained)
    return best


def _explained(
    y: np.ndarray, level: np.ndarray, white: np.ndarray, families: _Families
) -> np.ndarray:
    """Return the p-value (n,) of the shape that explains most of whitened series y (band, n)."""
    from scipy.special import betainc  # takes a while to import

    *single, polynomials = families
    energy = np.sum(y**2, axis=0)
    free = len(y) - 1
    energy = np.where(energy > 0, energy, 1.0)
    tests = len(single) + 1
    degrees = [degree for degree in DEGREES if free - degree >= 2]
    best = np.ones(y.shape[1])
    sums = np.zeros((len(white), white.shape[1] + 1))
    sums[:, :-1] = np.cumsum(white[:, ::-1], axis=1)[:, ::-1]
    for groups in single:
        share = np.zeros(y.shape[1])
        count = 0
        for start, stop, shapes in groups:
            seen = white[:, start:stop] @ shapes.T + sums[:, [stop]]
            rest = _without(level, seen)
            length = np.linalg.norm(rest, axis=0)
            has_rest = length > 1e-6 * np.linalg.norm(seen, axis=0)
            along = ((rest[:, has_rest] / length[has_rest]).T @ y) ** 2
            share = np.maximum(share, np.max(along, axis=0, initial=0) / energy)
            count += np.sum(has_rest)
        p = betainc((free - 1) / 2, 0.5, np.clip(1 - share, 0, 1))
        best = np.minimum(best, tests * count * p)
    for degree in degrees:
        basis, _ = np.linalg.qr(_without(level, white @ polynomials[:degree].T))
        share = np.sum((basis.T @ y) ** 2, axis=0) / energy
        p = betainc((free - degree) / 2, degree / 2, np.clip(1 - share, 0, 1))
        best = np.minimum(best, tests * len(degrees) * p)
    return best


def _without(level: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return columns without their part along the level."""
    return columns - level[:, None] * (level @ columns)


def _shapes(count: int) -> _Families:
    """Return smooth monotone shapes, jumps, and polynomials over `count` checkpoints."""
    legendre = np.polynomial.legendre.legvander(np.linspace(-1, 1, count), max(DEGREES))
    return _groups(curves(count, NARROW)), _groups([jumps(count)]), legendre[:, 1:].T


def _groups(families: list[np.ndarray]) -> list[_Group]:
    """Return shapes (some, T) in groups; of many checkpoints, without what is 0 or 1 in all.

    Of 1,000 there are ten thousand curves, most of which rise within a few checkpoints: whole, they
    took a second for each model.
    """
    if families[0].shape[1] <= LONG:
        return [(0, families[0].shape[1], np.concatenate(families))]
    groups = []
    for family in families:
        for first in range(0, len(family), TOGETHER):
            shapes = family[first : first + TOGETHER]
            start = int(np.argmax(shapes.any(axis=0)))
            stop = shapes.shape[1] - int(np.argmin((shapes == 1).all(axis=0)[::-1]))
            groups.append((start, stop, shapes[:, start:stop].copy()))
    return groups
