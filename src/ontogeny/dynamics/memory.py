"""Stationary noise with memory: what distances to one of the checkpoints do under it.

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
from numpy.linalg import LinAlgError

PHI = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
FRESH = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6)  # share of the variance that is fresh
JITTER = 1e-10  # keeps nearly equal checkpoints apart in the covariance
LONGEST = -1 / math.log(PHI[-1])  # memory in checkpoints
# Rate of forgetting, against one gap, that cannot be told from a random walk.
WALK = 1e-4
EVEN = 1.5  # largest ratio of two gaps that counts as even spacing


def with_memory(shocks: np.ndarray, phi: float) -> np.ndarray:
    """Return noise (n, T) of variance 1 that remembers `phi` of each value, from white noise."""
    noise = shocks.copy()
    for place in range(1, shocks.shape[1]):
        fresh = np.sqrt(1 - phi**2) * shocks[:, place]
        noise[:, place] = phi * noise[:, place - 1] + fresh
    return noise


@dataclass(frozen=True, eq=False)
class NullModel:
    """What is expected of the usable values of a series that does not change.

    Parameters
    ----------
    size
        (T,): mean and standard deviation of the values are both proportional to it.
    correlation
        (T, T): of the values.
    """

    size: np.ndarray
    correlation: np.ndarray


def reference_models(
    steps: np.ndarray, usable: np.ndarray, reference: int, similar: bool
) -> list[NullModel]:
    """Return the models of distances to a reference checkpoint, which is not among the usable.

    Parameters
    ----------
    steps
        Training steps (T,).
    usable
        (T,) bool: steps that are judged.
    reference
        Position of the reference checkpoint.
    similar
        Whether the values may be proportional to squared distances, as 1 - similarity is.
    """
    models = []
    for times, rates in _clocks(steps, usable):
        for rate in rates:
            for share in FRESH if np.isfinite(rate) else (0.0,):
                near = _towards(times[usable], times[reference], rate, share)
                models.append(near)
                if similar:
                    models.append(NullModel(near.size**2, near.correlation))
    return models


def fitted_models(
    row: np.ndarray,
    steps: np.ndarray,
    usable: np.ndarray,
    reference: int,
    similar: bool,
) -> list[NullModel]:
    """Return the most likely model of distances to a reference, for each clock and kind of value.

    Where there is little noise, the models of `reference_models` are too far apart to hold the mean
    of distances under any memory. These lie between them, up to a random walk.

    Parameters
    ----------
    row
        (usable,): values, 0 at the reference.
    steps, usable, reference, similar
        As for `reference_models`.
    """
    models = []
    for times, rates in _clocks(steps, usable):
        finite = [rate for rate in rates if np.isfinite(rate)]
        for power in (1, 2) if similar else (1,):
            models.append(
                _most_likely(row, times[usable], times[reference], finite, power)
            )
    return models


def _most_likely(
    row: np.ndarray, times: np.ndarray, reference: float, rates: list[float], power: int
) -> NullModel:
    """Return the model of the rate and the fresh share that give the largest likelihood."""
    from scipy.optimize import minimize  # takes a while to import

    def model(place: np.ndarray) -> NullModel:
        share = float(np.clip(np.exp(place[1]), 0.0, 0.9))
        made = _towards(times, reference, float(np.exp(place[0])), share)
        return NullModel(made.size**power, made.correlation)

    slowest = WALK / np.min(np.diff(times)) if len(times) > 1 else WALK
    bounds = [
        (math.log(min(slowest, min(rates) / 10)), math.log(max(rates)) + 1),
        (-12.0, -0.1),
    ]
    starts = [(math.log(rate), math.log(0.001)) for rate in (*rates, slowest)]
    start = min(starts, key=lambda place: _deviance(row, model(np.array(place))))
    best = minimize(
        lambda place: _deviance(row, model(place)),
        start,
        method="Nelder-Mead",
        bounds=bounds,
        options={"maxfev": 80, "xatol": 1e-3, "fatol": 1e-3},
    )
    return model(best.x)


def _deviance(row: np.ndarray, model: NullModel) -> float:
    """Return minus twice the log likelihood of normal values, level and variance free."""
    count = len(row)
    try:
        root = np.linalg.cholesky(model.correlation + JITTER * np.eye(count))
    except LinAlgError:
        return math.inf
    white = np.linalg.solve(root, np.column_stack([row / model.size, np.ones(count)]))
    level = white[:, 0] @ white[:, 1] / (white[:, 1] @ white[:, 1])
    rest = np.sum((white[:, 0] - level * white[:, 1]) ** 2)
    if not rest > 0:
        return -math.inf
    logs = np.sum(np.log(np.diag(root))) + np.sum(np.log(model.size))
    return float(count * np.log(rest / count) + 2 * logs)


def _clocks(
    steps: np.ndarray, usable: np.ndarray
) -> Iterator[tuple[np.ndarray, list[float]]]:
    """Give times (T,) and rates of forgetting: in checkpoints, and in steps if they are uneven.

    Memory in steps goes up to 20 median gaps: the reference could be within it.
    """
    yield (
        np.arange(len(steps), dtype=np.float64),
        [math.inf] + [-math.log(phi) for phi in PHI[1:]],
    )
    gaps = np.diff(steps[usable])
    if len(gaps) and gaps.max() > EVEN * gaps.min():
        longest = LONGEST * np.median(gaps)
        doublings = np.arange(0, math.log2(longest / gaps.min()))
        yield steps, [float(1 / t) for t in (*gaps.min() * 2**doublings, longest)]


def _memory(apart: np.ndarray, rate: float) -> np.ndarray:
    """Return the correlation of noise that far apart."""
    return (
        np.where(apart == 0, 1.0, 0.0)
        if np.isinf(rate)
        else np.exp(-rate * np.abs(apart))
    )


def _towards(
    times: np.ndarray, reference: float, rate: float, fresh: float
) -> NullModel:
    """Return size and correlation of distances to the reference, in many dimensions.

    Distances are lengths of differences x_t - x_ref. In many dimensions two lengths have the
    squared correlation of the differences' coordinates.
    """
    same = np.eye(len(times))
    correlation = (1 - fresh) * _memory(times[:, None] - times, rate) + fresh * same
    near = (1 - fresh) * _memory(times - reference, rate)
    covariance = (correlation - near[:, None] - near + 1) / 2
    size = np.sqrt(np.diag(covariance))
    return NullModel(size, (covariance / np.outer(size, size)) ** 2)
