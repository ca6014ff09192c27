"""Attention maps, found in the forward pass and reduced there: none outlives its layer."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ...errors import LayerMatchError, StudyWarning
from ...inputs.batches import Batch
from ...trajectory.findings import some
from ..collect import Collector
from ..sites import split_label

Value = TypeVar("Value")

# A row of 2,000 bfloat16 weights misses 1 by up to about 0.02.
_ROW_SUM_TOLERANCE = 0.05


class MapCollector(Collector):
    """Finds which modules return attention maps, and hands each map to `reduce` at once.

    Parameters
    ----------
    paths
        Modules that may return maps.
    """

    takes_maps = True

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._map_paths: set[str] = set()
        self._refused: set[str] = set()
        self._batches = 0

    def queries(self, batch: Batch) -> Tensor:
        """Return which tokens are queries, (texts, tokens) bool: all, unless a subclass says."""
        return torch.from_numpy(np.ascontiguousarray(batch.mask))

    @abstractmethod
    def reduce(self, path: str, weights: Tensor) -> None:
        """Take what is wanted of a map (texts, heads, tokens, tokens); must copy it."""

    def start(self, batch: Batch) -> set[str] | None:
        """Note the batch's queries; the first batch shows which modules have maps."""
        self._batch = batch
        self._queries = self.queries(batch)
        self._taken: set[str] = set()
        self._of_kernels: set[str] = set()
        self._last: Tensor | None = None
        if not self._queries.any():
            self._awaited: set[str] | None = set()
        else:
            # The first calls of shared modules are none to stop after.
            repeated = any("@" in path for path in self._map_paths)
            self._awaited = (
                set(self._map_paths) if self._batches and not repeated else None
            )
        return self._awaited

    def take(self, path: str, output: Any) -> None:
        """Reduce one module's attention map, if it gives one that was not seen yet."""
        if self._awaited is not None and path not in self._awaited:
            return
        is_known = path in self._of_kernels
        self._of_kernels.discard(path)
        weights = attention_map(output, self._queries)
        if weights is None:
            if any(_has_shape(element, self._queries) for element in _elements(output)):
                self._refused.add(path)
            return
        # A parent hands its child's map on.
        is_known = is_known or weights is self._last
        self._last = weights
        if not is_known:
            self._note(path, weights)

    def take_map(self, path: str, weights: Tensor) -> None:
        """Reduce the map of a kernel; what its module returns in the same call is no other one."""
        if self._awaited is not None and path not in self._awaited:
            return
        if attention_map((weights,), self._queries) is not None:
            self._of_kernels.add(path)
            self._note(path, weights)

    def _note(self, path: str, weights: Tensor) -> None:
        call = sum(split_label(taken)[0] == path for taken in self._taken)
        # Of a module that several layers share.
        path = f"{path}@{call}" if call else path
        self._taken.add(path)
        self._map_paths.add(path)
        self.reduce(path, weights)

    def finish(self, output: Any) -> None:
        """End a batch.

        Raises
        ------
        LayerMatchError
            If no module returned a map.
        """
        self._last = None
        if self._awaited == set():
            return
        if not self._taken:
            raise LayerMatchError(
                f"none of the {len(self.paths)} matching modules returned attention weights, "
                "a (texts, heads, tokens, tokens) tensor in its output tuple, or called torch's "
                "scaled_dot_product_attention. Models of transformers give them with the eager "
                "attention implementation. In a model of your own, call that function, or let the "
                "attention module compute softmax(QK) itself and return (output, weights)."
            )
        if self._refused and not self._batches:
            words = (
                f"{some(sorted(self._refused))} give (texts, heads, tokens, tokens) tensors that "
                "are no attention maps, as they hold negative values or rows that sum to more than "
                "1: they are left out"
            )
            warnings.warn(words, StudyWarning, stacklevel=2)
        self._batches += 1


def by_call(values: dict[str, Value]) -> dict[str, Value]:
    """Name the first call of a module that gave several maps, as the others are named.

    Examples
    --------
    >>> by_call({"a": 0, "b": 1, "b@1": 2})
    {'a': 0, 'b@0': 1, 'b@1': 2}
    """
    return {
        f"{path}@0" if f"{path}@1" in values else path: v for path, v in values.items()
    }


def attention_map(output: Any, queries: Tensor) -> Tensor | None:
    """Return the attention weights in a module's output tuple, or None.

    They are a (texts, heads, tokens, tokens) tensor without negative values whose rows sum to at
    most 1 at the `queries` (texts, tokens). To less than 1 where a sink that is no token takes part
    of the attention, as in GPT-OSS.
    """
    for element in _elements(output):
        if not _has_shape(element, queries):
            continue
        is_real = queries.to(element.device)[:, None, :].expand(element.shape[:3])
        sums = element.sum(dim=-1, dtype=torch.float32)[is_real]
        # NaN is not off: it is refused later.
        off = ((sums > 1 + _ROW_SUM_TOLERANCE) | (sums <= 0)).any()
        if not off and not (element < 0).any():
            return element
    return None


def _elements(output: Any) -> tuple[Any, ...]:
    return tuple(output) if isinstance(output, tuple | list) else ()


def _has_shape(element: Any, queries: Tensor) -> bool:
    """Return whether something may be a map: (texts, heads, tokens, tokens) numbers."""
    texts, width = queries.shape
    if (
        not isinstance(element, Tensor)
        or element.ndim != 4
        or not element.is_floating_point()
    ):
        return False
    return element.shape[0] == texts and tuple(element.shape[2:]) == (width, width)
