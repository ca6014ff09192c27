"""Attention maps of fused kernels: from the queries and keys that a module hands to the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .implementations import has_implementations

Given = Callable[[str, Tensor], None]


@contextmanager
def fused_maps(model: nn.Module, paths: Iterable[str], give: Given) -> Iterator[None]:
    """Give the map of each call of ``scaled_dot_product_attention``, and which module made it.

    The kernel runs as ever; the map is computed beside it, from the same arguments. Models of
    transformers give their maps themselves, and nothing is given of them here.

    Parameters
    ----------
    model
        The model.
    paths
        Modules that may call the kernel; the innermost one counts that runs.
    give
        Takes the module's path and the map, (texts, heads, queries, keys) in float32.
    """
    if has_implementations(model):
        yield
        return
    kernel = _Kernel(give)
    modules = dict(model.named_modules())
    # A pass that was ended within a module left it running.
    handles = [model.register_forward_pre_hook(kernel.begin)]
    for path in paths:
        if path in modules:
            enter = partial(kernel.enter, path)
            handles += [
                modules[path].register_forward_pre_hook(enter),
                modules[path].register_forward_hook(kernel.leave, always_call=True),
            ]
    try:
        with kernel:
            yield
    finally:
        for handle in handles:
            handle.remove()


class _Kernel(TorchFunctionMode):
    """Sees the calls of the kernel, also within torch's own attention module."""

    def __init__(self, give: Given) -> None:
        super().__init__()
        self._give = give
        self._running: list[str] = []

    def begin(self, *_: Any) -> None:
        self._running.clear()

    def enter(self, path: str, *_: Any) -> None:
        self._running.append(path)

    def leave(self, *_: Any) -> None:
        self._running.pop()

    def __torch_function__(
        self,
        function: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        arguments = dict(kwargs or {})
        if self._running:
            weights = _weights(function, args, arguments)
            if weights is not None:
                self._give(self._running[-1], weights)
        return function(*args, **arguments)


def _weights(
    function: Any, args: Sequence[Any], arguments: Mapping[str, Any]
) -> Tensor | None:
    """Return the map of a call of the kernel, or None of any other function.

    Nested tensors, of texts without padding, have none.
    """
    if function is functional.scaled_dot_product_attention:
        query = args[0] if args else arguments["query"]
        return None if query.is_nested else attention_weights(*args, **arguments)
    if function is not functional.multi_head_attention_forward:
        return None
    # Of nn.MultiheadAttention.
    asked = {"need_weights": True, "average_attn_weights": False}
    weights: Tensor | None = function(*args, **{**arguments, **asked})[1]
    return weights


def attention_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return the weights of ``scaled_dot_product_attention``, which has the same arguments.

    Of queries without heads, (texts, tokens, features), the map has one head.

    Examples
    --------
    >>> query = torch.zeros(1, 1, 2, 4)
    >>> attention_weights(query, query, query, is_causal=True).tolist()
    [[[[1.0, 0.0], [0.5, 0.5]]]]
    """
    query, key = (part.detach().float() for part in (query, key))
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scores = (
        query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    )
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~seen.tril(), -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(dim=-1)
    return weights[:, None] if weights.ndim == 3 else weights
