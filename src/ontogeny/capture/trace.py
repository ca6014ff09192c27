"""The order in which a model's modules run: which weights a reading depends on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from ..errors import LayerMatchError
from ..inputs import Inputs
from .attention.collected import attention_map
from .calls import check_call
from .forward import beginning, first_tensor, quiet, run
from .fused import fused_maps
from .implementations import attention_maps
from .layers import match_attention
from .sites import INPUT, call_of, split_label, watched


class Trace:
    """The order in which the modules of a full forward pass of some tokens start and end.

    A reading depends on the weights of the modules that are called before its pass is stopped. A
    module that these never call counts as read if the module that holds it is: an expert
    that another text may be sent to, or weights that a parent uses without calling their module.
    Tied weights appear under all of their names.

    Attributes
    ----------
    end
        The time at which the whole pass ends.
    shapes
        The shapes of what modules gave at first, by path.
    """

    def __init__(self, model: nn.Module, inputs: Inputs, position_ids: bool) -> None:
        self._model = model
        self._starts: dict[str, list[int]] = {}
        self._ends: dict[str, list[int]] = {}
        self._maps: dict[str, int] = {}
        self._of_kernels: set[str] = set()
        self.shapes: dict[str, tuple[int, ...]] = {}
        batch = beginning(inputs).batches(1)[0]
        self._queries = torch.ones(batch.ids.shape, dtype=torch.bool)
        self.end = 0
        self._last_map: torch.Tensor | None = None
        modules = dict(model.named_modules())
        with ExitStack() as stack:
            stack.enter_context(quiet(model))
            stack.enter_context(attention_maps(model))
            for path, module in modules.items():
                stack.callback(
                    module.register_forward_pre_hook(self._starter(path)).remove
                )
            stack.enter_context(watched(model, modules, self._ended))
            stack.enter_context(fused_maps(model, modules, self._fused))
            run(model, batch, position_ids=position_ids)

    def _starter(self, path: str) -> Any:
        def started(_module: nn.Module, _args: Any) -> None:
            self.end += 1
            self._starts.setdefault(path, []).append(self.end)

        return started

    def _fused(self, path: str, weights: torch.Tensor) -> None:
        self._of_kernels.add(path)

    def _ended(self, path: str, output: Any) -> None:
        self.end += 1
        self._ends.setdefault(path, []).append(self.end)
        if path and isinstance(tensor := first_tensor(output), torch.Tensor):
            self.shapes.setdefault(path, tuple(tensor.shape))
        if path in self._of_kernels:
            self._maps[path] = self.end
        weights = attention_map(output, self._queries)
        # Not a child's, handed on.
        if weights is not None and weights is not self._last_map:
            self._last_map = weights
            self._maps[path] = self.end  # of the last call

    def end_of(self, labels: Sequence[str]) -> int:
        """Return the time at which a pass is stopped that waits for these sites.

        Raises
        ------
        ArgumentError
            If the module of one is called more than once and it does not say which call is meant,
            or says one that there is not.
        """
        return max(self._time_of(label) for label in labels)

    def end_of_maps(self, patterns: str | Sequence[str]) -> int:
        """Return the time at which a pass is stopped that waits for attention maps."""
        paths = [
            split_label(path)[0] for path in match_attention(self._model, patterns)
        ]
        if not any(path in self._maps for path in paths):
            raise LayerMatchError(
                f"no module that matches {patterns!r} returned attention weights."
            )
        return max(self._maps.get(path, 0) for path in paths)

    def _time_of(self, label: str) -> int:
        path, part = split_label(label)
        count = len(self._starts.get(path, ()))
        check_call(label, count)
        if not count:
            return self.end
        times = self._starts if part == INPUT else self._ends
        # Its module has not started yet.
        return times[path][call_of(label) or 0] - (part == INPUT)

    def names(self, end: int) -> set[str]:
        """Return the stored tensors of the modules that started by `end`."""
        names = set(self._model.state_dict(keep_vars=True))
        tensors: set[str] = set()
        for path, module in self._model.named_modules(remove_duplicate=False):
            if self._start(path) <= end:
                local_names = [*module._parameters, *module._buffers]
                tensors |= {f"{path}.{name}" if path else name for name in local_names}
        return self._with_ties(tensors) & names

    def _start(self, path: str) -> int:
        """Return when a module started, or the nearest of its parents that was called."""
        while path and path not in self._starts:
            path = path.rpartition(".")[0]
        return self._starts.get(path, [0])[0]

    def _with_ties(self, names: set[str]) -> set[str]:
        tensors = dict(self._model.named_parameters(remove_duplicate=False))
        shared = {id(tensors[name]) for name in names if name in tensors}
        return names | {
            name for name, tensor in tensors.items() if id(tensor) in shared
        }
