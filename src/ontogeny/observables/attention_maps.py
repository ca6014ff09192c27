"""Numbers that a function makes of each text's attention map, inside the pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from ..capture.attention.collected import MapCollector, by_call
from ..capture.layers import match_attention
from ..errors import ArgumentError
from ..inputs import Inputs
from ..needs import Source
from ..needs.activity import MapNeed


@dataclass(frozen=True)
class OfAttention(MapNeed):
    """What a function says of the attention map of each text: ``{module path: (texts,)}``.

    Parameters
    ----------
    function
        Is given a map (heads, queries, keys) of the tokens of a text, and returns a number.
    layers
        Globs over attention modules.
    on
        Input set; the first by default.
    """

    function: Callable[[Tensor], Any]
    layers: str | tuple[str, ...] = "*"
    on: str | None = None

    def collector(self, source: Source) -> Any:
        """Return what asks the function."""
        paths = match_attention(source.model, self.layers)
        return _TextCollector(paths, source.inputs, self.function)


class _TextCollector(MapCollector):
    """Asks a function of the map of each text."""

    def __init__(
        self, paths: Sequence[str], inputs: Inputs, function: Callable[[Tensor], Any]
    ) -> None:
        super().__init__(paths)
        self._function = function
        self._texts = len(inputs)
        self._values: dict[str, np.ndarray] = {}

    def reduce(self, path: str, weights: Tensor) -> None:
        """Note what the function says of each text."""
        values = self._values.setdefault(path, np.full(self._texts, np.nan))
        for row, mask, maps in zip(
            self._batch.rows, self._queries, weights, strict=True
        ):
            there = mask.to(maps.device)
            if there.any():
                values[row] = _number(
                    self._function, maps.float()[:, there][:, :, there]
                )

    def result(self) -> dict[str, np.ndarray]:
        """Return the number of each text, by module."""
        return by_call(self._values)


def _number(function: Callable[[Tensor], Any], maps: Tensor) -> float:
    outcome = function(maps)
    if np.ndim(outcome):
        raise ArgumentError(
            f"{getattr(function, '__name__', function)} must return one number for the map of a "
            f"text; got shape {tuple(np.shape(outcome))}."
        )
    return float(outcome)
