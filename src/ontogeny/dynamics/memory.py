"""Stationary noise with memory: what values, and distances to one of the checkpoints, do under it.

The noise is autoregressive of order 1: the correlation of two checkpoints is phi to the power of
the number of checkpoints between them, or exp(-time / memory) where the time is in steps. Where
values are distances to a reference checkpoint, checkpoints within its memory are closer to it:
d² = c (1 - phi^k), k checkpoints away. A part of the noise may be fresh at every checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

PHI = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
FRESH = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6)  # share of the variance that is fresh
LONGEST = -1 / math.log(PHI[-1])  # memory in checkpoints
EVEN = 1.5  # largest ratio of two gaps that counts as even spacing


@dataclass(frozen=True, eq=False)
class NullModel:
    """What is expected of the usable values of a series that does not change.

    Parameters
    ----------
    size
        (T,): mean and standard deviation of the values are both proportional to it; for values
        that are not relative to a reference, it is 1 and the mean is free.
    correlation
        (T, T): of the values.
    """

    size: np.ndarray
    correlation: np.ndarray


def null_models(
    steps: np.ndarray, usable: np.ndarray, reference: int | None, similar: bool
) -> list[NullModel]:
    """Return the models that a change has to be distinguished from.

    Parameters
    ----------
    steps
        Training steps (T,).
    usable
        (T,) bool: steps that are judged; the reference is not among them.
    reference
        Position of the reference checkpoint, or None.
    similar
        Whether the values may be proportional to squared distances, as 1 - similarity is.
    """
    places = np.arange(len(steps), dtype=np.float64)
    models = []
    for times, rates in _clocks(places, steps.astype(np.float64), usable, towards=False):
        models += [_plain(times[usable], rate) for rate in rates]
    if reference is None:
        return models
    for times, rates in _clocks(places, steps.astype(np.float64), usable, towards=True):
        for rate in rates:
            shares = FRESH if np.isfinite(rate) else (0.0,)
            for share in shares:
                near = _towards(times[usable], times[reference], rate, share)
                models.append(near)
                if similar:
                    models.append(NullModel(near.size**2, near.correlation))
    return models


def _clocks(
    places: np.ndarray, steps: np.ndarray, usable: np.ndarray, towards: bool
) -> Iterator[tuple[np.ndarray, list[float]]]:
    """Give times (T,) and rates of forgetting: in checkpoints, and in steps if they are uneven.

    Memory in steps goes up to 20 of the smallest gaps, and to 20 median gaps where the reference
    could be within it.
    """
    yield places, [math.inf] + [-math.log(phi) for phi in PHI[1:]]
    gaps = np.diff(steps[usable])
    if len(gaps) and gaps.max() > EVEN * gaps.min():
        longest = LONGEST * (np.median(gaps) if towards else gaps.min())
        doublings = np.arange(0, math.log2(longest / gaps.min()))
        yield steps, [float(1 / t) for t in (*gaps.min() * 2**doublings, longest)]


def _kept(apart: np.ndarray, rate: float) -> np.ndarray:
    """Return the correlation of noise that far apart."""
    return np.where(apart == 0, 1.0, 0.0) if np.isinf(rate) else np.exp(-rate * np.abs(apart))


def _plain(times: np.ndarray, rate: float) -> NullModel:
    return NullModel(np.ones(len(times)), _kept(times[:, None] - times, rate))


def _towards(times: np.ndarray, reference: float, rate: float, fresh: float) -> NullModel:
    """Return size and correlation of distances to the reference, in many dimensions.

    Distances are lengths of differences x_t - x_ref. In many dimensions two lengths have the
    squared correlation of the differences' coordinates.
    """
    same = np.eye(len(times))
    kept = (1 - fresh) * _kept(times[:, None] - times, rate) + fresh * same
    near = (1 - fresh) * _kept(times - reference, rate)
    covariance = (kept - near[:, None] - near + 1) / 2
    size = np.sqrt(np.diag(covariance))
    return NullModel(size, (covariance / np.outer(size, size)) ** 2)
