"""A model of the same kind before training: what a run is held against where it has no step 0."""

from __future__ import annotations

import copy

import torch
from torch import nn

from ..errors import ArgumentError


def untrained_like(model: nn.Module, random_state: int = 0) -> nn.Module:
    """Return a newly initialised model of the same class and size, in evaluation mode.

    Models of transformers are made from their configuration, with their own initialisation.
    Others are copied, and every module is asked to reset its parameters, as those of PyTorch can.

    Parameters
    ----------
    model
        Left as it is.
    random_state
        Seed of the initialisation; the random state of PyTorch comes back.

    Raises
    ------
    ArgumentError
        If a parameter belongs to a module that cannot be reset.

    Examples
    --------
    >>> model = nn.Linear(3, 2)
    >>> fresh = untrained_like(model)
    >>> torch.equal(fresh.weight, model.weight), fresh.weight.shape
    (False, torch.Size([2, 3]))
    """
    first = next(model.parameters(), None)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(random_state)
        fresh = _of_transformers(model) or _reset(model)
    if first is not None:
        fresh = fresh.to(first.device, first.dtype)
    return fresh.eval().requires_grad_(False)


def _of_transformers(model: nn.Module) -> nn.Module | None:
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        return None
    return type(model)(copy.deepcopy(model.config))


def _reset(model: nn.Module) -> nn.Module:
    fresh = copy.deepcopy(model)
    for path, module in fresh.named_modules():
        if callable(reset := getattr(module, "reset_parameters", None)):
            reset()
        elif any(True for _ in module.parameters(recurse=False)):
            where = f"{path} ({type(module).__name__})" if path else type(module).__name__
            raise ArgumentError(
                "the run has no step 0, and an untrained model of its kind cannot be made: "
                f"{where} has parameters and no reset_parameters()."
            )
    return fresh
