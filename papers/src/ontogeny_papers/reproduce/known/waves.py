"""Whether latents of an embedding are waves over numbers in their order: one frequency each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ontogeny.concepts.joint.codes import sparse
from ontogeny.features.concepts.vocabulary import VocabularyConcepts

from ...geometry.fourier import row_frequencies

_DRAWS = 1000
_UNUSUAL = 0.95
_READABLE = VocabularyConcepts().readable


def wave_shares(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest share of each code's variance at one frequency, and that frequency.

    Codes are cut at zero, so that a wave has about .84 and not 1.

    Parameters
    ----------
    codes
        Codes of the numbers 0 to n − 1 (n, r); none is constant.

    Returns
    -------
    shares, frequencies : numpy.ndarray
        (r,) each; frequencies in cycles over all numbers.

    Examples
    --------
    >>> wave = np.cos(2 * np.pi * 3 * np.arange(29) / 29)
    >>> shares, frequencies = wave_shares(np.maximum(wave, 0)[:, None])
    >>> shares.round(2), frequencies
    (array([0.84]), array([3]))
    """
    power = np.stack([row_frequencies(code[:, None]) for code in codes.T])
    return power.max(axis=1), 1 + power.argmax(axis=1)


@dataclass(frozen=True)
class Waves:
    """How far the latents of one run's embedding are waves, and what chance gives.

    Those that can be read from a checkpoint count. Another seed need not find them again: the
    phase of a wave is arbitrary.

    Parameters
    ----------
    shares, frequencies
        Of each latent, as `wave_shares`.
    random
        Shares of random directions of the same embedding, (draws,).
    permuted
        Median share of the latents with the numbers in random order.
    readable_from
        First step at which half of as many as ever are can be read; NaN if none ever is.
    """

    shares: np.ndarray
    frequencies: np.ndarray
    random: np.ndarray
    permuted: float
    readable_from: float

    @classmethod
    def of(cls, concepts: xr.Dataset, power: np.ndarray, numbers: int) -> Waves:
        """Return those of a ``vocabulary-concepts`` node that keeps codes.

        Parameters
        ----------
        concepts
            The node of one run.
        power
            Share of the embedding's variance at each frequency, at the last step.
        numbers
            How many tokens are numbers, from id 0 on.
        """
        one = concepts.isel(block=0)
        codes = one.codes.sel(token=np.arange(numbers)).transpose("token", "concept").values
        readable = one.readability.transpose("step", "concept").values >= _READABLE
        mask = readable.any(axis=0) & (codes.std(axis=0) > 0)
        rng = np.random.default_rng(0)
        shares, frequencies = wave_shares(codes[:, mask]) if mask.any() else (np.zeros(0),) * 2
        permuted = wave_shares(rng.permutation(codes[:, mask]))[0] if mask.any() else np.nan
        there = readable.sum(axis=1)
        enough = np.flatnonzero(there >= max(there.max() / 2, 1))
        return cls(
            shares,
            frequencies,
            wave_shares(random_directions(power, numbers, _DRAWS, rng))[0],
            float(np.median(permuted)),
            float(one.step[enough[0]]) if len(enough) else float("nan"),
        )

    @property
    def share(self) -> float:
        """Median share of the latents; NaN where there are none."""
        return float(np.median(self.shares)) if len(self.shares) else float("nan")

    @property
    def beyond_chance(self) -> bool:
        """Whether the median exceeds 95 % of medians of as many random directions."""
        if not len(self.shares):
            return False
        rng = np.random.default_rng(1)
        samples = rng.choice(self.random, size=(_DRAWS, len(self.shares)))
        return bool(self.share > np.quantile(np.median(samples, axis=1), _UNUSUAL))


def random_directions(
    power: np.ndarray, numbers: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return codes along random directions of an embedding with these frequencies, cut at zero.

    The rows of a plane for each frequency, seen along a random direction, are a wave of random
    phase whose squared size is exponential, with the mean `power`.

    Examples
    --------
    >>> one = random_directions(np.array([0.0, 1.0, 0.0]), 7, 50, np.random.default_rng(0))
    >>> np.unique(wave_shares(one)[1])
    array([2])
    """
    waves = rng.standard_normal((2, len(power), count)) * np.sqrt(power)[:, None]
    angle = 2 * np.pi * np.outer(np.arange(numbers), 1 + np.arange(len(power))) / numbers
    return sparse(np.cos(angle) @ waves[0] + np.sin(angle) @ waves[1], count)


def all_frequencies(waves: Sequence[Waves]) -> str:
    """Return the frequencies of each run's latents: ``"5, 7, 8 and 2, 10"``."""
    return " and ".join(
        ", ".join(map(str, sorted(set(one.frequencies.astype(int).tolist())))) or "none"
        for one in waves
    )
