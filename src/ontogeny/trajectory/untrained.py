"""A model of the same kind before training: what a run is held against where it has no step 0."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import ArgumentError
from .weights.building import Template, instantiate
from .weights.transformers_models import is_pretrained, quiet

_WITH_GENERATOR = {"default": "generator", "low": "low_generator"}  # names of overloads


def untrained_like(
    model: nn.Module, random_state: int = 0, build: Template | None = None
) -> nn.Module:
    """Return a newly initialised model of the same class and size, in evaluation mode.

    Models of transformers are made from their configuration, with their own initialisation.
    Others are built anew by the function that builds them, if there is one; else they are copied,
    and every module is asked to reset its parameters, as those of PyTorch can.

    Parameters
    ----------
    model
        Left as it is.
    build
        The user's function that builds the model.
    random_state
        Seed of the initialisation. The random state of PyTorch, which threads share, is neither
        used nor changed.

    Raises
    ------
    ArgumentError
        If a parameter belongs to a module that cannot be reset, the class cannot be built from
        its configuration, or what the user's function builds does not depend on the seed: then it
        has weights of its own, and is no untrained model.

    Examples
    --------
    >>> model = nn.Linear(3, 2)
    >>> fresh = untrained_like(model)
    >>> torch.equal(fresh.weight, model.weight), fresh.weight.shape
    (False, torch.Size([2, 3]))
    """
    first = next(model.parameters(), None)
    # One thread at a time: while transformers loads, initialisation is off in the whole process.
    with quiet(), torch.no_grad():
        with _Drawn(random_state):
            fresh = _of_transformers(model) or _built(build) or _reset(model)
        if not is_pretrained(model):
            with _Drawn(random_state + 1):
                _check_drawn(fresh, _built(build))
    if first is not None:
        fresh = fresh.to(first.device)
    _match_dtypes(fresh, model)
    return fresh.eval().requires_grad_(False)


def with_exchanged_values(model: nn.Module, random_state: int = 0) -> nn.Module:
    """Return a copy of a model with the values of each parameter in random order.

    What stands for an untrained model where none can be made: as large, and nothing learned but
    what single values say. Statistics of batches are reset.

    Examples
    --------
    >>> model = nn.Linear(3, 2)
    >>> exchanged = with_exchanged_values(model)
    >>> torch.equal(exchanged.weight.sort().values, model.weight.sort().values)
    False
    >>> torch.equal(
    ...     exchanged.weight.ravel().sort().values, model.weight.ravel().sort().values
    ... )
    True
    """
    fresh = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(random_state)
    for parameter in fresh.parameters():
        order = torch.randperm(parameter.numel(), generator=generator).to(
            parameter.device
        )
        parameter.data = parameter.data.flatten()[order].view_as(parameter)
    for module in fresh.modules():
        if callable(reset := getattr(module, "reset_running_stats", None)):
            reset()
    return fresh.eval().requires_grad_(False)


def with_norms(model: nn.Module, norms: Mapping[str, float]) -> nn.Module:
    """Return a copy of a model whose parameters have the norms of others: it only grew.

    A parameter of norm zero, or without a norm in `norms`, stays.

    Examples
    --------
    >>> grown = with_norms(nn.Linear(3, 2), {"weight": 5.0})
    >>> round(float(torch.linalg.vector_norm(grown.weight)), 4)
    5.0
    """
    grown = copy.deepcopy(model)
    for name, parameter in grown.named_parameters():
        size = float(torch.linalg.vector_norm(parameter.detach()))
        if size > 0:
            parameter.data *= norms.get(name, size) / size
    return grown.eval().requires_grad_(False)


def norms_of(model: nn.Module) -> dict[str, float]:
    """Return the norm of each parameter."""
    return {
        name: float(torch.linalg.vector_norm(parameter.detach()))
        for name, parameter in model.named_parameters()
    }


def _match_dtypes(fresh: nn.Module, model: nn.Module) -> None:
    """Give each tensor the dtype that it has in `model`: some buffers stay in float32."""
    dtypes = {name: tensor.dtype for name, tensor in _tensors(model)}
    for name, tensor in _tensors(fresh):
        tensor.data = tensor.data.to(dtypes.get(name, tensor.dtype))


def _tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    return chain(model.named_parameters(), model.named_buffers())


class _Drawn(TorchDispatchMode):
    """Random numbers of this thread come from generators of its own, one for each device."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._generators = dict[torch.device, torch.Generator]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        with_one = _WITH_GENERATOR.get(func._overloadname, "")
        if not _takes_generator(func) and with_one in func.overloadpacket.overloads():
            func = getattr(func.overloadpacket, with_one)  # of torch.randn and the like
        if _takes_generator(func) and kwargs.get("generator") is None:
            kwargs["generator"] = self._generator(args, kwargs)
        return func(*args, **kwargs)

    def _generator(self, args: Any, kwargs: Any) -> torch.Generator:
        input_device = (
            args[0].device if args and isinstance(args[0], torch.Tensor) else None
        )
        device = torch.device(kwargs.get("device") or input_device or "cpu")
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _takes_generator(func: Any) -> bool:
    return any(argument.name == "generator" for argument in func._schema.arguments)


def _of_transformers(model: nn.Module) -> nn.Module | None:
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        return None
    try:
        return type(model)(copy.deepcopy(model.config))
    except Exception as error:
        # Whatever a class raises that takes more than a configuration.
        name = type(model).__name__
        why = str(error).split("\n")[0]
        raise ArgumentError(
            "the run has no initialisation, and an untrained model of its kind cannot be made: "
            f"{name} cannot be built from its configuration ({why})."
        ) from error


def _built(build: Template | None) -> nn.Module | None:
    """Return what the user's function builds; a module is no function of theirs."""
    if build is None or isinstance(build, nn.Module):
        return None
    return instantiate(build)


def _check_drawn(one: nn.Module, other: nn.Module | None) -> None:
    weights = [
        dict(model.named_parameters()) for model in (one, other) if model is not None
    ]
    if len(weights) == 2 and all(
        torch.equal(w, weights[1][n]) for n, w in weights[0].items()
    ):
        raise ArgumentError(
            "an untrained model of its kind cannot be made: what model() builds does not depend "
            "on the seed, so that its weights are none of an initialisation."
        )


def _reset(model: nn.Module) -> nn.Module:
    fresh = copy.deepcopy(model)
    for path, module in fresh.named_modules():
        if callable(reset := getattr(module, "reset_parameters", None)):
            reset()
        elif any(True for _ in module.parameters(recurse=False)):
            where = (
                f"{path} ({type(module).__name__})" if path else type(module).__name__
            )
            raise ArgumentError(
                "the run has no initialisation, and an untrained model of its kind cannot be made: "
                f"{where} has parameters and no reset_parameters()."
            )
    return fresh
