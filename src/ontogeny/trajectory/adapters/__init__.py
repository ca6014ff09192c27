"""Runs of fine-tuning: adapters on a base, and a base as step 0."""

from .opening import (
    IS_BASE,
    adapter_steps,
    find_base,
    not_adapters,
    open_adapters,
    with_base,
)

__all__ = [
    "IS_BASE",
    "adapter_steps",
    "find_base",
    "not_adapters",
    "open_adapters",
    "with_base",
]
