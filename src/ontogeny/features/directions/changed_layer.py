"""A layer that is changed while examples are asked, and what that does to groups of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...capture.sites import changed
from ...summary.noise import mean_stderr
from ...units import Units
from .measured import relative_strength


class Groups:
    """Examples by groups.

    Parameters
    ----------
    of_example
        (n,) the group of each example.
    units
        Which of some examples go together, by their places: what is independent of the others.

    Examples
    --------
    >>> groups = Groups(np.array(["a", "a", "b"]), lambda members: members)
    >>> groups.names, groups.means(np.array([1.0, 3.0, 5.0])), groups.counts
    (['a', 'b'], array([2., 5.]), array([2, 1]))
    """

    def __init__(
        self, of_example: np.ndarray, units: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self.names = list(dict.fromkeys(of_example.tolist()))
        self._members = [np.flatnonzero(of_example == name) for name in self.names]
        self._units = [Units(units(members)) for members in self._members]

    @property
    def counts(self) -> np.ndarray:
        """(groups,) how many independent units each has."""
        return np.array([units.count for units in self._units])

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the means (..., groups) of values (..., n)."""
        return np.stack([values[..., m].mean(axis=-1) for m in self._members], axis=-1)

    def errors(self, values: np.ndarray) -> np.ndarray:
        """Return their standard errors over units; of one unit the size of its mean."""
        pairs = zip(self._units, self._members, strict=True)
        errors = [mean_stderr(*units.means(values[..., m])) for units, m in pairs]
        found = np.stack(errors, axis=-1)
        return np.where(np.isfinite(found), found, np.abs(self.means(values)))

    def tests(
        self, p_value: Callable[..., float], values: np.ndarray, draws: np.ndarray
    ) -> np.ndarray:
        """Return for each group the p-value (groups,) of values (n,) beside draws (k, n)."""
        pairs = zip(self._units, self._members, strict=True)
        return np.array(
            [
                p_value(values[m], draws[:, m], np.ones(len(m)), units)
                for units, m in pairs
            ]
        )


class ChangedLayer:
    """One layer of a model, whose values are changed at every token while examples are asked."""

    def __init__(
        self, model: Any, path: str, A: np.ndarray, odds: Callable[[], np.ndarray]
    ) -> None:
        self._model = model
        self._path = path
        self._odds = odds
        self._mean = A.mean(axis=0)
        self.centred = A - self._mean
        self._size = float(np.sqrt((self.centred**2).sum(axis=1).mean()))

    def without(self, unit: np.ndarray, share: float = 1.0) -> np.ndarray:
        """Return the log-odds with a share of ``⟨a - mean, unit⟩ unit`` off every token."""
        mean, along = (torch.from_numpy(v).float() for v in (self._mean, unit))

        def change(_: str, value: Any) -> Tensor:
            u, m = (v.to(value.device, value.dtype) for v in (along, mean))
            changed_value: Tensor = value - share * ((value - m) @ u)[..., None] * u
            return changed_value

        return self._asked(change)

    def strength_beside(self, unit: np.ndarray, other: np.ndarray) -> float:
        """Return how strong the layer is along a direction, over how strong it is along another."""
        return relative_strength(self.centred @ unit, self.centred @ other)

    def added(self, unit: np.ndarray, strength: float) -> np.ndarray:
        """Return the log-odds with a multiple of a direction at every token."""
        part = torch.from_numpy(strength * self._size * unit).float()

        def change(_: str, value: Any) -> Tensor:
            changed_value: Tensor = value + part.to(value.device, value.dtype)
            return changed_value

        return self._asked(change)

    def _asked(self, change: Callable[[str, Any], Tensor]) -> np.ndarray:
        with changed(self._model, [self._path], change):
            return self._odds()


def half_of_largest(strengths: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """Return the strength (g,) at which effects (s, g) reach half of the largest one.

    Between strengths, and between the least of them and 0, an effect goes straight.

    Examples
    --------
    >>> half_of_largest(
    ...     np.array([1.0, 2.0]), np.array([[1.0, -3.0], [4.0, -4.0]])
    ... ).round(3)
    array([1.333, 0.667])
    """
    sizes = np.abs(np.concatenate([np.zeros((1, effects.shape[1])), effects]))
    at = np.concatenate([[0.0], strengths])
    halves = []
    for of_group in sizes.T:
        aim = of_group.max() / 2
        after = int((of_group >= aim).argmax())
        if after == 0:
            halves.append(0.0)
            continue
        low = of_group[after - 1]
        high = of_group[after]
        step = at[after] - at[after - 1]
        halves.append(float(at[after - 1] + step * (aim - low) / (high - low)))
    return np.array(halves)
