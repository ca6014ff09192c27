"""Concepts with known lives in several runs: some in all of them, some in one alone.

The runs have the same tokens, and nothing else in common: other bases, other widths, other births.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ontogeny.concepts.joint.presence import FOUND_AGAIN, found_again
from planted_lives import _codes, _observed, _unit


@dataclass(frozen=True, eq=False)
class PlantedRuns:
    """Activations of several runs, and the concepts that were planted in them.

    Attributes
    ----------
    activations
        By run, (S, n, m) float32; m differs.
    texts
        (n,): the text of every token.
    codes
        (n, f) float32: how strongly each planted feature fires.
    present
        (runs, f): which run has which feature.
    born
        (runs, f): index of the first checkpoint at half of its strength; 0 where it is there from
        the start, -1 where it is absent.
    """

    activations: dict[str, np.ndarray]
    texts: np.ndarray
    codes: np.ndarray
    present: np.ndarray
    born: np.ndarray

    def called(
        self, codes: np.ndarray, present: np.ndarray, born: np.ndarray
    ) -> dict[str, float]:
        """Return how much of it is in codes (n, r), with their runs and births (runs, r).

        ``shared`` is the share of shared features that are called so, ``private`` the number of
        private ones that are called shared, ``exact`` the share of the births said that are right,
        ``recall`` the share of planted births that were said right.
        """
        correlation, latent = found_again(self.codes, codes)
        found = correlation >= FOUND_AGAIN
        said = np.where(found, born[:, latent], -1)
        called = found & present[:, latent].all(axis=0)
        shared = self.present.all(axis=0)
        right = (said >= 0) & (said == self.born)
        return {
            "shared": float(called[shared].mean()),
            "private": int(
                (found & (present[:, latent].sum(axis=0) > 1))[~shared].sum()
            ),
            "exact": float(right.sum() / max((said >= 0).sum(), 1)),
            "recall": float(right[self.born > 0].mean()),
        }


def planted_runs(
    n: int = 5000,
    widths: tuple[int, ...] = (96, 64, 128),
    *,
    shared: int = 40,
    private: int = 20,
    n_steps: int = 10,
    noise: float = 0.25,
    dense: float = 0.25,
    tokens_per_text: int = 25,
    random_state: int = 0,
) -> PlantedRuns:
    """Make runs of the same tokens; see `planted_lives.planted_lives` for codes and background.

    Every second feature of a run is there from its start, the others are born at checkpoints
    drawn for each run alone.

    Examples
    --------
    >>> runs = planted_runs(n=600, widths=(24, 32), shared=6, private=3)
    >>> [A.shape for A in runs.activations.values()], runs.present.sum(axis=1).tolist()
    ([(10, 600, 24), (10, 600, 32)], [9, 9])
    >>> runs.called(runs.codes, runs.present, runs.born)["exact"]
    1.0
    """
    rng = np.random.default_rng(random_state)
    f = shared + private * len(widths)
    codes = _codes(n, np.repeat("steady", f), 0.0, rng)
    present = np.zeros((len(widths), f), dtype=bool)
    present[:, :shared] = True
    for run in range(len(widths)):
        present[run, shared + run * private : shared + (run + 1) * private] = True
    born = np.where(present, 0, -1)
    activations = {}
    for run, m in enumerate(widths):
        late = np.flatnonzero(present[run])[::2]
        born[run, late] = rng.integers(1, n_steps - 1, len(late))
        there = (np.arange(n_steps)[:, None] >= born[run]) & present[run]
        start = _unit(rng.standard_normal((f, m)))
        signal = np.stack([codes @ (start * s[:, None]) for s in there])
        values = _observed(signal, noise, dense, 8.0, rng)
        activations[f"seed {run}"] = values
    texts = np.arange(n) // tokens_per_text
    return PlantedRuns(activations, texts, codes, present, born)
