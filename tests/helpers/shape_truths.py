"""Curves over training steps of which it is known what happens: shapes, schedules, walks.

Steps are numbered 0, 1, ... with one more for each checkpoint, unless given. All functions return
(T,) or (count, T); random choices come from `rng`.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from helpers.series_examples import noises, trends

DECAYS = ("exponential", "two exponentials", "power law", "stretched exponential")
WALKS = ("memory .5", "memory .95", "random walk", "distance to the last of a walk")


def even(count):
    """Evenly spaced steps from 0."""
    return np.arange(count) * 100.0


def log_spaced(count):
    """Steps 0, 1, 2, 4, ... to half of the checkpoints, then evenly spaced."""
    early = count // 3
    first = np.concatenate([[0.0], 2.0 ** np.arange(early - 1)])
    gap = first[-1]
    return np.concatenate([first, first[-1] + gap * np.arange(1, count - early + 1)])


def decay(kind, steps, noise, rng):
    """A curve that falls from 1, with independent noise of that standard deviation.

    A second exponential is at least three times as fast, and each takes 30 to 70 % of the fall;
    the faster one spans at least a checkpoint, so that both can be seen.
    """
    u = steps / steps[-1]
    gap = np.diff(u).min()

    def between(low, high):
        return np.exp(rng.uniform(np.log(low), np.log(high)))

    if kind == "exponential":
        curve = np.exp(-u / between(0.05, 0.5))
    elif kind == "two exponentials":
        slow, share = between(0.15, 0.5), rng.uniform(0.3, 0.7)
        fast = between(min(max(0.02, 0.7 * gap), slow / 3), slow / 3)
        curve = share * np.exp(-u / fast) + (1 - share) * np.exp(-u / slow)
    elif kind == "power law":
        curve = (1 + u / between(0.005, 0.1)) ** -between(0.3, 1.5)
    else:
        curve = np.exp(-((u / between(0.03, 0.5)) ** rng.uniform(0.3, 0.7)))
    return curve + noise * rng.normal(size=len(steps))


def gradual_noise(kind, count, rng, *, size=0.05, ratio=10.0):
    """A decay whose noise changes without any boundary, by `ratio` over the run."""
    steps = even(count) + 100
    u = np.linspace(0, 1, count)
    level = {
        "linear": 1 - u * (1 - 1 / ratio),
        "log-linear": ratio**-u,
        "growing": ratio ** (u - 1),
        "cosine": 1 / ratio + (1 - 1 / ratio) * (1 + np.cos(np.pi * u)) / 2,
        "warm-up and decay": np.maximum(np.minimum(u / 0.1, (1 - u) / 0.9), 1 / ratio),
        "linear in log step": ratio ** (np.log(steps / steps[0]) / np.log(count) - 1),
    }[kind]
    trend = trends("exponential", steps, 1, rng)[0]
    return steps, trend + size * level * rng.normal(size=count)


def bends(kind, count, rng, noise=0.01):
    """A curve with jumps or soft bends, or a slow change of slope, and noise of one level."""
    number = np.arange(count)
    if kind == "smooth change of slope":
        u, place, width = number / count, rng.uniform(0.3, 0.7), rng.uniform(0.05, 0.2)
        curve = -0.3 * u - 2 * width * np.logaddexp(0, (u - place) / width)
    elif kind == "two soft bends":
        place, width = rng.integers(count // 5, count * 3 // 5), rng.integers(2, 4)
        curve = sum(
            0.5 * np.clip((at + width - number) / width, 0, 1)
            for at in (place, place + 6)
        )
    else:
        size = {"two jumps": 2, "three jumps": 3}[kind]
        places = rng.choice(np.arange(3, count - 3), size, replace=False)
        curve = (number[:, None] < places).mean(axis=1)
    return even(count), curve + noise * rng.normal(size=count)


def scheduled_pair(kind, count, rng, *, noise=0.02, r=0.0):
    """Two decays that share a schedule, and noise of correlation r.

    The schedule shows as jumps at the same checkpoints, or as the same cycle, in both.
    """
    steps = even(count)
    x, y = trends("exponential", steps + 100, 2, rng)
    own, other = noise * rng.normal(size=(2, count))
    number = np.arange(count)
    sizes = rng.uniform(0.05, 0.2, 2)
    shared = np.zeros(count)
    if kind.endswith("jumps") or kind.endswith("jump"):
        size = {"one": 1, "two": 2, "three": 3}[kind.split()[0]]
        places = rng.choice(np.arange(4, count - 3), size, replace=False)
        shared = (number[:, None] >= places).sum(axis=1) * -1.0
    elif kind == "sine":
        shared = 0.5 * np.sin(
            2 * np.pi * (number / rng.uniform(4, count / 3) + rng.uniform())
        )
    elif kind == "sawtooth":
        shared = 0.5 - (number / rng.uniform(4, count / 3) + rng.uniform()) % 1
    elif kind == "warm restarts":
        shared = 0.5 * np.cos(
            np.pi * ((number / rng.uniform(4, count / 3) + rng.uniform()) % 1)
        )
    return (
        steps,
        x + sizes[0] * shared + own,
        y + sizes[1] * shared + r * own + np.sqrt(1 - r**2) * other,
    )


def walk(kind, count, rng):
    """A curve of a run that learns nothing: memory, a random walk, or the distance to its end."""
    if kind == "distance to the last of a walk":
        path = np.cumsum(rng.normal(size=(count, 200)), axis=0)
        return np.linalg.norm(path - path[-1], axis=1)
    if kind == "random walk":
        return np.cumsum(rng.normal(size=count))
    memory = {"memory .5": 0.5, "memory .95": 0.95}[kind]
    if memory == 0.5:
        return noises(kind, 1, count, rng)[0]
    longer = rng.normal(size=count + 200)
    return np.sqrt(1 - memory**2) * lfilter([1.0], [1.0, -memory], longer)[200:]
