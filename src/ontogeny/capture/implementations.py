"""How transformers models compute their attention, so that its maps come out of a pass.

Fast kernels give no maps. Where a model calls its attention through transformers' interface, maps
are computed beside the fast kernel, from the queries and keys that it is given. So one pass gives
them with what others read of it, whose numbers stay the same to the last bit: a pass of their own
took 26 of the 60 s that a reading of SmolLM2 took.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor, nn

from .forward import asked_for_maps

_WITH_MAPS = "sdpa_with_maps"


def gives_maps_beside(model: nn.Module) -> bool:
    """Return whether any pass can give attention maps, with what it gives unchanged.

    If not, maps take a pass of their own. Models of other makes give theirs in every pass, as do
    those that run their eager implementation anyway.
    """
    used = {*_used(model).values()}
    beside = bool(used) and used <= {"sdpa", _WITH_MAPS}
    return used <= {"eager"} or (beside and _gives_maps_beside_sdpa(model))


def has_implementations(model: nn.Module) -> bool:
    """Return whether a model of transformers chooses between ways of computing its attention."""
    return bool(_used(model))


@contextmanager
def attention_maps(model: nn.Module) -> Iterator[None]:
    """Let a model give its attention maps, beside its kernel if it can, then restore that."""
    name = "eager"
    used = {*_used(model).values()}
    if used and "eager" not in used and gives_maps_beside(model):
        name = _registered()
    # Such as Falcon and XLM.
    if used and not cast(Any, model)._can_set_attn_implementation():
        with _noted(model, name), asked_for_maps():
            yield
        return
    with implementation(model, name):
        yield


@contextmanager
def implementation(model: nn.Module, name: str) -> Iterator[None]:
    """Let a transformers model compute its attention so, then restore; others are left alone."""
    before = _used(model)
    if not before:
        yield
        return
    change = cast(Any, model).set_attn_implementation
    try:
        change(name)
        yield
    finally:
        change(before if len(before) > 1 else before[""])


@contextmanager
def _noted(model: nn.Module, name: str) -> Iterator[None]:
    """Note an implementation in a configuration alone, by which masks are made.

    Falcon computes maps explicitly when they are asked for; with the mask of its kernel, which is
    of truth values, they would look ahead.
    """
    config = cast(Any, model).config
    before = config._attn_implementation
    try:
        config._attn_implementation = name
        yield
    finally:
        config._attn_implementation = before


def _used(model: nn.Module) -> dict[str, str]:
    """Return the implementation of a transformers model (under "") and of its parts."""
    config = getattr(model, "config", None)
    whole = getattr(config, "_attn_implementation", None)
    if config is None or whole is None or not hasattr(model, "set_attn_implementation"):
        return {}
    parts = {
        key: getattr(config, key, None) for key in getattr(config, "sub_configs", {})
    }
    there = {key: part for key, part in parts.items() if part is not None}
    return {"": whole} | {key: part._attn_implementation for key, part in there.items()}


def _gives_maps_beside_sdpa(model: nn.Module) -> bool:
    # A class that is made from one of transformers may stand in a file that knows no attention.
    kinds = {
        type(m) for m in model.modules() if not hasattr(m, "set_attn_implementation")
    }
    files = {_file_of_attention(kind) for kind in kinds} - {""}
    return cast(Any, model)._can_set_attn_implementation() and all(
        map(_has_eager, files)
    )


def _file_of_attention(kind: type) -> str:
    """Return the name of the Python module in which a kind of module calls attention, or ""."""
    names = (parent.__module__ for parent in kind.__mro__)
    return next(
        (n for n in names if hasattr(sys.modules.get(n), "ALL_ATTENTION_FUNCTIONS")), ""
    )


@lru_cache
def _has_eager(file: str) -> bool:
    """Return whether a file can compute maps, and does not ask for the kernel by its name."""
    try:
        source = inspect.getsource(sys.modules[file])
    except (OSError, TypeError):  # as of classes that are defined in a notebook
        return False
    asks = re.search(r"""_attn_implementation\b.*["']sdpa["']""", source)
    return hasattr(sys.modules[file], "eager_attention_forward") and not asks


def _registered() -> str:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if _WITH_MAPS not in ALL_ATTENTION_FUNCTIONS.valid_keys():
        ALL_ATTENTION_FUNCTIONS.register(_WITH_MAPS, _sdpa_with_maps)
        ALL_MASK_ATTENTION_FUNCTIONS.register(_WITH_MAPS, sdpa_mask)
    return _WITH_MAPS


def _sdpa_with_maps(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """Attend by the fast kernel, and compute the maps as the model's own eager function does."""
    file = cast(Any, sys.modules[_file_of_attention(type(module))])
    tensors = (module, query, key, value)
    output, _ = file.ALL_ATTENTION_FUNCTIONS["sdpa"](
        *tensors, attention_mask, **options
    )
    mask = attention_mask
    causal = options.get("is_causal")
    if mask is None and (
        getattr(module, "is_causal", True) if causal is None else causal
    ):
        size = query.shape[2], key.shape[2]
        mask = torch.ones(size, dtype=torch.bool, device=query.device).tril()[
            None, None
        ]
    # Eager functions add it to the scores.
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, torch.finfo(query.dtype).min).to(query.dtype)
    return output, file.eager_attention_forward(*tensors, mask, **options)[1]
