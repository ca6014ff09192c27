"""Surrogates of a series that keep its trend and its noise, and break what it shares with others.

The fluctuation around the trend is multiplied by a random factor that stays alike over a few
steps. Its local size (regimes!) and its memory stay; its sign, and so what it has in common with
another series, becomes random.
"""

from __future__ import annotations

import numpy as np

MEMORY = 4


def random_factors(count: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Return factors (count, steps) with mean 0, variance 1 and a memory of 4 steps.

    Gaussian; the correlation falls linearly to 0 over `MEMORY` steps.

    References
    ----------
    X. Shao, The dependent wild bootstrap, J. Amer. Statist. Assoc. 105, 2010.

    Examples
    --------
    >>> factors = random_factors(20_000, 8, np.random.default_rng(0))
    >>> np.corrcoef(factors.T)[0].round(1).clip(min=0)[:5]
    array([1.  , 0.8, 0.5, 0.2, 0.  ])
    """
    white = rng.normal(size=(count, steps + MEMORY))
    sums = np.cumsum(white, axis=1)
    return (sums[:, MEMORY:] - sums[:, :-MEMORY]) / np.sqrt(MEMORY)
