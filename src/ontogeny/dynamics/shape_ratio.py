"""Courses against noise with memory: a ratio of likelihoods beside that of simulated noise.

Above the line a shape (`shapes`) stands with noise beside it that is fresh or has short memory;
below it one level with noise of more memory, up to a random walk. So memory is estimated beside the
change and not from it. What noise gives of the same ratio over the same checkpoints is simulated.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import product

import numpy as np

from .memory import EVEN, with_memory
from .shapes import shapes

SHORT = 0.5  # most memory, from one checkpoint to the next, that noise with short memory has
DRAWS = 3999  # of noise with short memory, of which small p-values are asked
WALKS = 1999
SEED = 0
TAIL = 0.01  # smallest p-value that is counted; smaller ones follow from an exponential tail
STEEPEST = 0.8  # of that tail, for each nat
MOST = 64  # checkpoints that are compared one by one; of more, means of neighbours are
# Memory of such noise, around one level and beside shapes.
OF_SHORT = (0.0, 0.25, SHORT)
OF_LONG = (0.7, 0.8, 0.9, 0.95)  # and what longer memory adds, beside random walks
# Size of fresh noise on a random walk, against one of its steps.
FRESH = (0.0, 1.0, 2.0, 4.0)
GROWTH = (1 / 3, 3.0)  # last over first size of noise that grows or fades
# Keeps nearly equal checkpoints apart, such as steps 1 and 2 beside 1e15.
NUGGET = 1e-14
ROUNDING = 1e-10  # share of a course that no shape explains
# Nats by which shapes with two or three free sizes must be better: they fit random walks better.
HANDICAP = {1: 0.0, 2: 4.0, 3: 3.0}


@dataclass(frozen=True, eq=False)
class _Noise:
    """Noise of one covariance, seen without the level."""

    whitening: np.ndarray  # (T - 1, T)
    log_size: float


@dataclass(frozen=True, eq=False)
class _Models:
    """Noise around one level, and noise beside shapes with these as it sees them."""

    short: list[_Noise]
    long: list[_Noise]
    beside: list[tuple[_Noise, list[np.ndarray]]]


def noise_p_values(
    steps: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how often noise looks as much like a development as each row.

    Parameters
    ----------
    steps
        Training steps (T,).
    rows
        Complete series (n, T).

    Returns
    -------
    tuple of numpy.ndarray
        (n,) each: of noise with memory up to `SHORT`, and of a random walk, by checkpoints and, if
        these are uneven, also by steps, whichever is larger. 1 of a constant row.
    """
    times = tuple(steps.tolist())
    spread = np.ptp(rows, axis=1)
    short, long = _ratios(times, rows / np.where(spread > 0, spread, 1.0)[:, None])
    of_short, *of_walks = _simulated(times)
    p_short = _p_values(short, of_short, len(steps))
    p_long = np.max([_p_values(long, drawn, len(steps)) for drawn in of_walks], axis=0)
    moves = spread > 0
    return np.where(moves, p_short, 1.0), np.where(
        moves, np.maximum(p_short, p_long), 1.0
    )


def _p_values(seen: np.ndarray, drawn: np.ndarray, count: int) -> np.ndarray:
    """Return the share of sorted draws that are as large, with an exponential tail.

    A ratio of T - 1 normal numbers without and with k free sizes has a tail of rate
    (T - 1 - k) / (T - 1). With 3 free sizes, and at most .8, simulated ones fall no slower.
    """
    p_values = (1 + len(drawn) - np.searchsorted(drawn, seen)) / (1 + len(drawn))
    begin = drawn[-round(TAIL * len(drawn))]
    rate = min(STEEPEST, (count - 4) / (count - 1))
    beyond = TAIL * np.exp(-rate * np.maximum(seen - begin, 0.0))
    return np.where(seen > begin, beyond, p_values)


@functools.lru_cache(maxsize=32)
def _simulated(times: tuple[float, ...]) -> list[np.ndarray]:
    """Return sorted ratios (draws,) of noise with short memory, and of walks for each clock.

    Walks are taken as they are, and with fresh noise on them as large as a middle step: that alone
    was called changed in 8 % of curves of 50 checkpoints.
    """
    rng = np.random.default_rng(SEED)
    shocks = rng.standard_normal((DRAWS, len(times)))
    drawn = [np.sort(_ratios(times, with_memory(shocks, SHORT))[0])]
    for clock in _clocks(np.array(times)):
        gaps = np.diff(clock, prepend=clock[0])
        walks = np.cumsum(np.sqrt(gaps) * shocks, axis=1)
        fresh = np.sqrt(np.median(gaps[1:])) * rng.standard_normal(walks.shape)
        both = (walks[:WALKS], (walks + fresh)[:WALKS])
        drawn += [np.sort(_ratios(times, values)[1]) for values in both]
    return drawn


def _ratios(
    times: tuple[float, ...], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log ratios (n,) of the best shape to noise of short memory, and of any memory."""
    size = -(-len(times) // MOST)
    starts = np.arange(0, len(times) - size + 1, size)
    sizes = np.diff(starts, append=len(times))
    means = np.add.reduceat(rows, starts, axis=1) / sizes
    clock = np.add.reduceat(np.array(times), starts) / sizes
    models = _models(tuple(clock.tolist()))
    short, long = (_of_level(noises, means) for noises in (models.short, models.long))
    of_shapes = np.max([_best(*beside, means) for beside in models.beside], axis=0)
    return of_shapes - short, of_shapes - np.maximum(short, long)


def _of_level(noises: list[_Noise], rows: np.ndarray) -> np.ndarray:
    """Return the log likelihood (n,) of one level with the likeliest of these noises."""
    whitening = np.concatenate([noise.whitening for noise in noises])
    white = (rows @ whitening.T).reshape(len(rows), len(noises), -1)
    sizes = np.array([noise.log_size for noise in noises])
    energy = np.maximum(np.sum(white**2, axis=2), np.finfo(float).tiny)
    best: np.ndarray = np.max(sizes - white.shape[2] / 2 * np.log(energy), axis=1)
    return best


def _best(noise: _Noise, groups: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return the log likelihood (n,) of the best shape with this noise beside it."""
    white = rows @ noise.whitening.T
    energy = _energy(white)
    found = []
    for bases in groups:
        explained = sum(
            (white @ bases[:, part].T) ** 2 for part in range(bases.shape[1])
        )
        rest = np.maximum(energy - np.max(explained, axis=1), ROUNDING * energy)
        found.append(_likelihood(noise, rest) - HANDICAP[bases.shape[1]])
    best: np.ndarray = np.max(found, axis=0)
    return best


def _likelihood(noise: _Noise, energy: np.ndarray) -> np.ndarray:
    """Return the log likelihood of what is left, its variance free."""
    return noise.log_size - len(noise.whitening) / 2 * np.log(energy)


def _energy(white: np.ndarray) -> np.ndarray:
    return np.maximum(np.sum(white**2, axis=1), np.finfo(float).tiny)


@functools.lru_cache(maxsize=32)
def _models(times: tuple[float, ...]) -> _Models:
    count = len(times)
    order, *uneven = (
        np.abs(clock[:, None] - clock) for clock in _clocks(np.array(times))
    )
    sizes = [growth ** np.linspace(0, 1, count) for growth in GROWTH]
    short = [_memory(order, phi) for phi in OF_SHORT]
    long = [_memory(order, phi) for phi in OF_LONG] + _walks(order)
    for apart in uneven:
        shortest = apart[apart > 0].min()
        longest = apart.max()
        memories = np.geomspace(
            shortest, longest, max(2, 2 * round(np.log2(longest / shortest)))
        )
        long += [np.exp(-apart / memory) for memory in memories] + _walks(apart)
    growing = [
        size[:, None] * _memory(order, phi) * size
        for size, phi in product(sizes, (0, SHORT))
    ]
    beside = [_noise(_memory(order, phi)) for phi in OF_SHORT]
    return _Models(
        short=[_noise(covariance) for covariance in short],
        long=[_noise(covariance) for covariance in long + growing],
        beside=[(n, [_bases(group, n) for group in shapes(count)]) for n in beside],
    )


def _walks(apart: np.ndarray) -> list[np.ndarray]:
    """Return minus the variance of a walk's differences, without and with fresh noise on it."""
    step = np.median(np.diag(apart, 1))
    return [-apart + 2 * step * fresh**2 * np.eye(len(apart)) for fresh in FRESH]


def _clocks(steps: np.ndarray) -> list[np.ndarray]:
    """Return times in checkpoints, and in steps too where these are uneven."""
    order = np.arange(len(steps), dtype=np.float64)
    gaps = np.diff(steps)
    return [order, steps] if gaps.max() > EVEN * gaps.min() else [order]


def _memory(apart: np.ndarray, phi: float) -> np.ndarray:
    return np.where(apart == 0, 1.0, phi**apart)


def _noise(covariance: np.ndarray) -> _Noise:
    """Return noise of a covariance that need only be one of differences, such as a walk's."""
    count = len(covariance)
    contrasts = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, 1:]]))[
        0
    ][:, 1:]
    inner = contrasts.T @ covariance @ contrasts
    inner += NUGGET * np.trace(inner) * np.eye(count - 1)
    root = np.linalg.inv(np.linalg.cholesky(inner))
    return _Noise(root @ contrasts.T, float(np.sum(np.log(np.diag(root)))))


def _bases(group: np.ndarray, noise: _Noise) -> np.ndarray:
    """Return bases (some, sizes, T - 1) of shapes (some, sizes, T) as noise sees them."""
    return np.linalg.svd(group @ noise.whitening.T, full_matrices=False)[2]
