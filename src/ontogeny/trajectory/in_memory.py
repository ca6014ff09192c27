"""Models in memory as checkpoints: what is accepted."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from ..errors import ArgumentError
from .weights import state_tensors

__all__ = ["check_models", "class_name"]


def class_name(template: object) -> str:
    """Return how a trajectory of these models is called."""
    if isinstance(template, nn.Module):
        return type(template).__name__
    return getattr(template, "__name__", "state dicts") if template else "state dicts"


def check_models(models: Mapping[int, object]) -> None:
    """Check that every value is a module or a state dict with tensors of its own.

    Raises
    ------
    ArgumentError
        If one is not.
    """
    owner: dict[tuple[int, ...], int] = {}
    for step, value in models.items():
        if isinstance(value, nn.Module):
            tensors: Mapping[str, object] = state_tensors(value)
        elif isinstance(value, Mapping):
            tensors = value
        else:
            tensors = {"": None}
        if not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
            raise ArgumentError(
                f"models[{step}] must be an nn.Module or a state dict of tensors; "
                f"got {type(value).__name__}."
            )
        storage = tuple(t.data_ptr() for t in tensors.values() if isinstance(t, Tensor))
        if any(storage) and storage in owner:
            raise ArgumentError(
                f"steps {owner[storage]} and {step} share the same tensors, so they would always "
                "be equal; pass copies, such as copy.deepcopy(model)."
            )
        owner[storage] = step
