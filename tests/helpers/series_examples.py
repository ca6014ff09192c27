"""Series over training steps with known trends, noise and regimes."""

import numpy as np
from scipy.signal import lfilter

LATE = np.arange(1, 51) * 10_000.0  # a public suite: evenly spaced, without step 0
# 24, log first.
EARLY = np.concatenate([[0.0], 2.0 ** np.arange(7), 64 + 64.0 * np.arange(1, 17)])


def trends(kind, steps, count, rng):
    """Series (count, T) that fall from 1 with random time scales; `flat` is 0."""
    t, run = steps[None], steps[-1]

    def between(low, high):
        return np.exp(rng.uniform(np.log(low), np.log(high), (count, 1)))

    if kind == "flat":
        return np.zeros((count, len(steps)))
    if kind == "exponential":
        return np.exp(-t / (run * between(0.03, 0.5)))
    if kind == "two exponentials":
        share = rng.uniform(0.3, 0.7, (count, 1))
        fast = np.exp(-t / (run * between(0.01, 0.08)))
        return share * fast + (1 - share) * np.exp(-t / (run * between(0.15, 1.0)))
    if kind == "power law":
        return (1 + t / (run * between(0.005, 0.1))) ** -between(0.3, 1.5)
    assert kind == "sigmoid"
    return 1 / (1 + (t / (run * between(0.05, 0.5))) ** between(1, 4))


def noises(kind, count, length, rng):
    """Noise (count, length) of about unit size."""
    white = rng.normal(size=(count, length))
    if kind == "independent":
        return white
    if kind == "heavy-tailed":
        return rng.standard_t(3, size=(count, length)) / np.sqrt(3)
    if kind == "random walk":
        return 3 * np.cumsum(white, axis=1) / np.sqrt(length)
    if kind == "noisy late":
        return white * np.where(np.arange(length) < length // 2, 0.1, 1.0)
    if kind == "none":
        return np.zeros((count, length))
    memory = {"memory .5": 0.5, "memory .8": 0.8}[kind]
    longer = rng.normal(size=(count, length + 60))
    return np.sqrt(1 - memory**2) * lfilter([1.0], [1.0, -memory], longer)[:, 60:]


def planted(trend, noise, steps, count, size, rng, boundary=None, ratio=1.0):
    """Series (count, T); before position `boundary` the noise is smaller by `ratio`."""
    e = size * noises(noise, count, len(steps), rng)
    if boundary is not None:
        e = e * np.where(np.arange(len(steps)) < boundary, 1 / ratio, 1.0)
    return trends(trend, steps, count, rng) + e
