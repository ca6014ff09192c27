"""What a node holds of its concepts, each variable read once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr


@dataclass(frozen=True, eq=False)
class ConceptArrays:
    """The variables of a node over its concepts; of those over steps, what they are at one step.

    An opened result is read again with every part of a variable that is asked for, so each variable
    is read whole, once.

    Parameters
    ----------
    data
        The node.
    step
        Which of its steps.

    Examples
    --------
    >>> names = xr.DataArray([["comma", ""]], dims=("layer", "concept"))
    >>> str(ConceptArrays(xr.Dataset({"name": names})).of("name", (0, 0)))
    'comma'
    """

    data: xr.Dataset
    step: int = -1
    _read: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.data.variables

    def dims(self, name: str) -> set[Any]:
        """Return the dimensions of a variable, without the step."""
        return set(self.data.variables[name].dims) - {"step"} if name in self else set()

    def at_step(self, name: str) -> np.ndarray:
        """Return a variable over (layer, concept, ...), or what it has of these."""
        if name not in self._read:
            variable = self.data.variables[name]
            if "step" in variable.dims:
                variable = variable.isel(step=self.step)
            first = [dim for dim in ("layer", "concept") if dim in variable.dims]
            self._read[name] = variable.transpose(*first, ...).values
        return self._read[name]

    def over_steps(self, name: str) -> np.ndarray:
        """Return a number of each concept over (layer, concept, step)."""
        return self.whole(name, ("layer", "concept", "step"))

    def whole(self, name: str, dims: tuple[str, ...]) -> np.ndarray:
        """Return the numbers of a variable over all of its dimensions."""
        key = f"{name} over {dims}"
        if key not in self._read:
            self._read[key] = self.data.variables[name].transpose(*dims).values.astype(float)
        return self._read[key]

    def of(self, name: str, place: tuple[int, int]) -> Any:
        """Return what a variable holds of one concept, or of its layer."""
        values = self.at_step(name)
        return values[place] if "concept" in self.data.variables[name].dims else values[place[0]]

    def number(self, name: str, place: tuple[int, int]) -> float:
        """Return a number of one concept, NaN where there is none."""
        return float(self.of(name, place)) if name in self else math.nan
