"""A model whose attention is cut to the strongest keys of every query."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ontogeny.capture.implementations import implementation
from ontogeny.errors import ArgumentError, check_whole

_NAME = "ontogeny_cut"
_UNKNOWN = ("s_aux", "sinks")  # what has a share of the attention without being a key
_local = threading.local()


@contextmanager
def cut_attention(model: nn.Module, k: int) -> Iterator[None]:
    """Let every query of every layer and head attend to its `k` strongest keys only.

    The other weights become 0 and the kept ones are scaled to sum 1. Works for the models of
    transformers whose attention goes through its attention interface, with grouped queries, score
    capping and relative positions (T5). Keys beyond a mask never count; where a query sees fewer
    than `k` keys, nothing is cut.

    Parameters
    ----------
    model
        A transformers model; its attention implementation is restored afterwards.
    k
        Keys that are kept, at least 1.

    Raises
    ------
    ArgumentError
        If `k` is below 1, the model's attention does not go through this interface (raised after
        the forward pass), or it weighs more than its keys (attention sinks).

    Examples
    --------
    >>> from ontogeny_papers.reproduce.training import MarkerRun
    >>> model, ids = MarkerRun.demo().model(), torch.zeros(1, 16, dtype=torch.long)
    >>> with torch.no_grad(), cut_attention(model, 16):
    ...     whole = model(ids).logits
    >>> torch.allclose(whole, model(ids).logits, atol=1e-6)
    True
    """
    check_whole("k", k)
    if not hasattr(model, "set_attn_implementation"):
        raise ArgumentError(
            f"attention can only be cut in models of transformers; got {type(model).__name__}."
        )
    _register()
    calls: list[nn.Module] = []
    before = getattr(_local, "cut", None)
    with implementation(model, _NAME):
        _local.cut = (k, calls)
        try:
            yield
        finally:
            _local.cut = before
    if not calls:
        raise ArgumentError(
            f"the attention of {type(model).__name__} does not go through transformers' attention "
            "interface, so it was not cut."
        )


def _register() -> None:
    """Make the cut known to transformers: the function, and that it takes additive masks."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if _NAME not in ALL_ATTENTION_FUNCTIONS.valid_keys():
        ALL_ATTENTION_FUNCTIONS.register(_NAME, _cut)
        ALL_MASK_ATTENTION_FUNCTIONS.register(_NAME, eager_mask)


def _cut(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """Attend to the strongest keys: (texts, heads, tokens, size) in, (texts, tokens, ...) out."""
    k, calls = _local.cut
    calls.append(module)
    unknown = [name for name in _UNKNOWN if others.get(name) is not None]
    if unknown:
        raise ArgumentError(
            f"{type(module).__name__} gives its attention {unknown[0]!r}, which cut_attention does "
            "not know how to cut."
        )
    groups = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(groups, dim=1)
    value = value.repeat_interleave(groups, dim=1)
    scores = (
        query
        @ key.transpose(2, 3)
        * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    )
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if position_bias is not None:
        scores = scores + position_bias
    if attention_mask is not None:
        scores = scores + attention_mask
    strongest = scores.topk(min(k, scores.shape[-1]), dim=-1).indices
    mask = torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, strongest, True)
    lowest = torch.finfo(scores.dtype).min
    weights = (
        scores.masked_fill(~mask, lowest)
        .softmax(-1, dtype=torch.float32)
        .to(value.dtype)
    )
    return (weights @ value).transpose(1, 2).contiguous(), weights
