"""What a direction does to the loss of one checkpoint: taken away, and added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...capture.gradients import GradientReading
from ...inputs.sampling import TokenSample
from ...observables.random_directions import p_above, p_beyond, random_directions
from ...observables.removal import LossAtTokens
from ...quantities import Measured
from ...units import Units
from .measured import apart, relative_strength

UNIT = "nats per predicted token"


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

        Random directions have the covariance of the layer. What lies along them is removed, scaled
        to be as strong over all tokens: a direction that is drawn as they are is one of them. They
        are added without their part along a direction, which would be its own effect.
        """
        random = random_directions(self._A, n_draws, [seed, 9])
        along = [self._A @ direction for direction in (*unit, *random)]
        own = along[: len(unit)]
        others = along[len(unit) :]
        removed = self._costs(own, unit)
        scaled = [[x * relative_strength(codes, x) for x in others] for codes in own]
        without = [self._costs(codes, random) for codes in scaled]
        added = self._costs([self._added] * len(unit), unit)
        beside = [self._costs([self._added] * n_draws, apart(random, u)) for u in unit]
        return {
            **self._variables("removed", removed, without, p_above),
            **self._variables("added", added, beside, p_beyond),
        }

    def _variables(
        self, name: str, costs: np.ndarray, draws: list[np.ndarray], p_value: Any
    ) -> dict[str, Any]:
        """Return costs (r, texts) beside those of random directions, r of (k, texts)."""
        variables: dict[str, Any] = {}
        nulls = {}
        if len(draws[0]):
            means = np.stack([self._mean(of_draws) for of_draws in draws])
            nulls = {"random": (("direction", "effect_draw"), means)}
            p_values = [
                p_value(mine, of_draws, self._weights, self._units)
                for mine, of_draws in zip(costs, draws, strict=True)
            ]
            variables[f"{name}_p_single"] = ("direction", np.array(p_values))
        variables[name] = Measured.over_texts(
            ("direction", self._mean(costs)),
            costs,
            self._weights,
            self._units.of_row,
            ("direction", "text"),
            nulls=nulls,
        )
        return variables

    def _costs(self, codes: Sequence[np.ndarray], directions: np.ndarray) -> np.ndarray:
        """Return the costs (r, texts) of r directions with their codes."""
        pairs = zip(codes, directions, strict=True)
        costs = [self._cost(*pair) for pair in pairs]
        return np.reshape(costs, (len(costs), len(self._weights)))

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
