"""Runs of fine-tuning: adapters on a base, and a base as step 0."""

from .opening import adapter_steps, find_base, open_adapters, with_base

__all__ = ["adapter_steps", "find_base", "open_adapters", "with_base"]
