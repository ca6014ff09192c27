"""What a direction does to the loss of one checkpoint: taken away, and added."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...capture.gradients import GradientReading
from ...inputs.sampling import TokenSample
from ...observables.random_directions import p_above, p_beyond, random_directions
from ...observables.removal import LossAtTokens
from ...quantities import Measured
from ...units import Units
from .measured import apart

UNIT = "nats per predicted token"
# What is asked of each: a removal costs more than others do, an addition goes further either way.
TESTS = {"removed": p_above, "added": p_beyond}


class Effects:
    """The loss of texts as directions of one layer are removed and added.

    Parameters
    ----------
    path
        The layer.
    at
        The loss.
    A
        (n, m) activations at the tokens of `at`.
    strength
        How much is added, in root mean squares of centred activations.
    """

    def __init__(
        self, path: str, at: LossAtTokens, A: np.ndarray, strength: float
    ) -> None:
        self._path = path
        self._at = at
        self._A = A - A.mean(axis=0)
        size = np.sqrt(np.einsum("nm,nm->", self._A, self._A) / max(len(A), 1))
        self._added = np.full(len(A), -strength * float(size))
        self._weights = at.tokens.astype(np.float64)
        self._units = Units(np.asarray(at.reading.inputs.groups))

    def of(self, unit: np.ndarray, n_draws: int, seed: int) -> dict[str, Any]:
        """Return the effects of unit directions (r, m), beside `n_draws` random ones.

        Random directions have the covariance of the layer, and are as strong at every token.
        """
        random = random_directions(self._A, n_draws, [seed, 9])
        variables: dict[str, Any] = {}
        for name, p_value in TESTS.items():
            codes = [self._codes(name, direction) for direction in unit]
            pairs = zip(codes, unit, strict=True)
            costs = np.stack([self._cost(*pair) for pair in pairs])
            nulls = {}
            if n_draws:
                pairs = zip(codes, unit, strict=True)
                draws = np.stack(
                    [[self._cost(c, d) for d in apart(random, u)] for c, u in pairs]
                )
                nulls = {"random": (("direction", "effect_draw"), self._mean(draws))}
                p = [
                    p_value(mine, of_draws, self._weights, self._units)
                    for mine, of_draws in zip(costs, draws, strict=True)
                ]
                variables[f"{name}_p_single"] = ("direction", np.array(p))
            variables[name] = Measured.over_texts(
                ("direction", self._mean(costs)),
                costs,
                self._weights,
                self._units.of_row,
                ("direction", "text"),
                nulls=nulls,
            )
        return variables

    def _codes(self, name: str, direction: np.ndarray) -> np.ndarray:
        return self._A @ direction if name == "removed" else self._added

    def _cost(self, codes: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return what taking ``codes direction`` away costs each text, per predicted token."""
        sums = self._at.removed(self._path, codes, direction)
        there = self._weights > 0
        return np.divide(sums, self._weights, out=np.zeros_like(sums), where=there)

    def _mean(self, of_text: np.ndarray) -> np.ndarray:
        return np.asarray(of_text @ self._weights / self._weights.sum())


def loss_at(
    model: GradientReading, sample: TokenSample, objective: str, random_state: int
) -> tuple[LossAtTokens, np.ndarray]:
    """Return the loss as a function of the layer at tokens that the model sees, and which these are."""
    whole = LossAtTokens(model, sample, objective, random_state=random_state)
    rows = np.flatnonzero(whole.unmasked)
    seen = TokenSample(sample.text[rows], sample.position[rows])
    return LossAtTokens(model, seen, objective, random_state=random_state), rows
