"""Noise whose level changes gradually over training: what a boundary has to beat."""

from __future__ import annotations

import numpy as np

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
    logs, inverse = np.log(levels).T, (1 / levels).T
    for k, smallest in enumerate(floor):
        size = np.abs(residuals[..., k])
        there = ~np.isnan(size)
        known, count = np.where(there, size, 0.0), there.sum(axis=-1, keepdims=True)
        plain = np.maximum(known.sum(axis=-1, keepdims=True) / np.maximum(count, 1), smallest)
        scaled = np.maximum(known @ inverse / np.maximum(count, 1), smallest)
        saved += count * (np.log(plain) - np.log(scaled)) - there @ logs
    return saved.max(axis=-1), saved.argmax(axis=-1)
