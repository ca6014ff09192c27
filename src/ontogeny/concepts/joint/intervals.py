"""How sure the step of a birth is: over texts, and over another start of the fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .lives import Lives, first_half, was_low
from .presence import Presence

LEVEL = 0.05
FOUND_AGAIN = 0.7  # correlation of codes above which two latents are the same


@dataclass(frozen=True, eq=False)
class BirthIntervals:
    """Between which checkpoints each concept was born; indexes, -1 where it was not born.

    Attributes
    ----------
    after
        (r,) last checkpoint that is certainly before the birth.
    before
        (r,) first checkpoint that is certainly not.
    agreement
        (r,) share of the resamples of texts in which the latent has a birth.
    """

    after: np.ndarray
    before: np.ndarray
    agreement: np.ndarray


def birth_intervals(
    presence: Presence, life: Lives, n_draws: int, rng: np.random.Generator
) -> BirthIntervals:
    """Return intervals that hold the birth in 95 % of the resamples of texts.

    Squared strengths are resampled by their derivatives by the weights of texts, and by the noise
    of the decoders. A birth is known between two checkpoints at best.
    """
    blocks = presence.influence.shape[1]
    squared = presence.strength**2
    starts = np.full((n_draws, squared.shape[1]), -1)
    for k in range(n_draws):
        # By how much the weight of each block differs from the 1 that it has in the data.
        times = rng.multinomial(blocks, np.full(blocks, 1 / blocks)) - 1.0
        moved = np.einsum("b,sbr->sr", times.astype(np.float32), presence.influence)
        noise = presence.spread * rng.standard_normal(squared.shape)
        curve = np.sqrt(np.maximum(squared + moved + noise, 0)) * life.own
        start = first_half(curve)
        starts[k] = np.where(was_low(curve, start), start, -1)
    seen = starts >= 0
    born = life.born >= 0
    low = _quantile(starts, seen, LEVEL / 2, np.floor)
    high = _quantile(starts, seen, 1 - LEVEL / 2, np.ceil)
    return BirthIntervals(
        after=np.where(born, np.minimum(low, life.start) - 1, -1),
        before=np.where(born, np.maximum(high, life.start), -1),
        agreement=seen.mean(axis=0) if n_draws else np.full(squared.shape[1], np.nan),
    )


def _quantile(values: np.ndarray, seen: np.ndarray, level: float, to: np.ufunc) -> np.ndarray:
    """Return a quantile (r,) of the values (draws, r) that are seen; -1 of none."""
    # Draws without a birth are sorted behind all others, where no `place` reaches.
    ordered = np.sort(np.where(seen, values, np.iinfo(int).max), axis=0)
    count = seen.sum(axis=0)
    place = to(level * np.maximum(count - 1, 0)).astype(int)
    if not len(values):
        return np.full(values.shape[1], -1)
    return np.where(count > 0, np.take_along_axis(ordered, place[None], axis=0)[0], -1)


def found_again(codes: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the best correlation (r,) of each code with those of another fit, and which it is."""
    first, second = (U - U.mean(axis=0) for U in (codes, other))
    lengths = [np.maximum(np.linalg.norm(U, axis=0), 1e-30) for U in (first, second)]
    correlation = (first / lengths[0]).T @ (second / lengths[1])
    return correlation.max(axis=1).astype(np.float64), correlation.argmax(axis=1)


def widened(
    births: BirthIntervals, born: np.ndarray, strength: np.ndarray, again: np.ndarray
) -> BirthIntervals:
    """Return the intervals widened to the births that another fit gives.

    Parameters
    ----------
    born
        (r,) births of this fit.
    strength
        (S, r) strengths of the matching latents of the other fit.
    again
        (r,) correlations with them.
    """
    start = first_half(strength)
    other = (born >= 0) & (again >= FOUND_AGAIN) & was_low(strength, start)
    return BirthIntervals(
        after=np.where(other, np.minimum(births.after, start - 1), births.after),
        before=np.where(other, np.maximum(births.before, start), births.before),
        agreement=births.agreement,
    )
