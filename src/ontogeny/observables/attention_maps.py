"""Numbers that a function makes of each text's attention map, inside the pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..capture.attention.collected import MapCollector, by_call
from ..capture.layers import match_attention
from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.batches import Batch
from ..needs import Need, Source


@dataclass(frozen=True)
class OfAttention(Need):
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

    def pass_key(self, source: Source) -> Hashable:
        """Return the key of a pass that gives attention maps."""
        return source.pass_key(eager=True)

    def collector(self, source: Source) -> Any:
        """Return what asks the function."""
        paths = match_attention(source.model, self.layers)
        return _TextCollector(paths, source.inputs, self.function)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of the modules up to the last map."""
        return set(source.tensors_read_for_attention(self.layers))

    def units(self, inputs: Any) -> np.ndarray:
        """Return the unit of every text."""
        return np.asarray(inputs.groups)


class _TextCollector(MapCollector):
    """Asks a function of the map of each text."""

    def __init__(
        self, paths: Sequence[str], inputs: Inputs, function: Callable[[Tensor], Any]
    ) -> None:
        super().__init__(paths)
        self._function = function
        self._texts = len(inputs)
        self._values: dict[str, np.ndarray] = {}

    def queries(self, batch: Batch) -> Tensor:
        """Return that every token is a query."""
        return torch.from_numpy(np.ascontiguousarray(batch.mask))

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
