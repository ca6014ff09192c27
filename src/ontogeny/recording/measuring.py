"""What observables give of a live model, as numbers with names; the model stays as it was."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

from ..capture.forward import device_of
from ..errors import ArgumentError
from ..inputs import Inputs
from ..needs.derived import Reference
from ..observables import Observable
from ..own_code import reason
from ..study.cells.models import Job, Values, own_needs, read_model
from ..study.cells.readings import ReadStep
from ..study.folder.settings import Settings


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Hold `model` in evaluation mode without gradients; then everything is as it was.

    That is the mode of every module, gradients and ``requires_grad``, the values of buffers, hooks,
    and the random states of Python, NumPy and PyTorch on all devices. Weights are not copied:
    nothing that observes may write to them.

    Examples
    --------
    >>> model = nn.Dropout(0.5).train()
    >>> state = torch.get_rng_state()
    >>> with unchanged(model):
    ...     _ = model(torch.rand(3))
    >>> model.training, torch.equal(torch.get_rng_state(), state)
    (True, True)
    """
    modules = [
        (m, m.training, {n: dict(getattr(m, n)) for n in _HOOKS})
        for m in model.modules()
    ]
    gradients = [(p, p.grad, p.requires_grad) for p in model.parameters()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    entries = [(module, dict(module._buffers)) for module in model.modules()]
    python = random.getstate()
    numpy = np.random.get_state()  # noqa: NPY002  # what others use
    with _torch_random_states(), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, training, hooks in modules:
                module.training = training
                for name, values in hooks.items():
                    table = getattr(module, name)
                    table.clear()
                    table.update(values)
            for module, tensors in entries:
                module._buffers.clear()
                module._buffers.update(tensors)
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    buffer.copy_(before)
            for parameter, gradient, requires in gradients:
                parameter.grad = gradient
                if parameter.requires_grad != requires:
                    parameter.requires_grad_(requires)
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def _torch_random_states() -> Iterator[None]:
    """Put back the random states of the CPU and of every GPU that is in use."""
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    of_mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    with torch.random.fork_rng(devices=gpus):
        try:
            yield
        finally:
            if of_mps is not None:
                torch.mps.set_rng_state(of_mps)


_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


PREFIX = "observed"
_MOST = 256  # numbers of one variable; what has more belongs into a study


@dataclass(frozen=True)
class Measured:
    """What was observed at one step.

    Parameters
    ----------
    metrics
        Numbers by name, such as ``"observed/loss"``.
    failed
        Why there are none, by the name of the observable, or of one of its numbers.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def check_live(observable: Observable) -> None:
    """Refuse what cannot be observed of one model alone.

    Raises
    ------
    ArgumentError
        If an observable takes several steps, a reference, or the module for exclusive use.
    """
    needs = observable.needs()
    why = ""
    if not needs or any(need.at_step.over != "step" for need in needs):
        why = "it is computed over all steps"
    elif observable.prepares or observable.state_of:
        why = "it begins with a state of other checkpoints"
    elif any(isinstance(need, Reference) for need in needs):
        why = "it is compared with another checkpoint"
    elif any(need.exclusive for need in needs):
        why = "it is given the whole module, which may be changed"
    if why:
        raise ArgumentError(
            f"{observable.name} cannot be observed during training: {why}. Study the recorded "
            "checkpoints with it; loss, attention-entropy, effective-dimensions and weight-norms, "
            "for example, can be observed."
        )


def measure(
    model: nn.Module,
    step: int,
    observables: Sequence[Observable],
    inputs: Mapping[str, Inputs],
    batch_size: int = 16,
) -> Measured:
    """Observe a live model, which is left as it is; what fails is noted and costs the rest nothing.

    Examples
    --------
    >>> import torch
    >>> from ontogeny.observables import Loss
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> texts = Inputs.from_tokens([[1, 2, 3], [4, 5]])
    >>> result = measure(model, 0, [Loss(objective="causal")], {"text": texts})
    >>> list(result.metrics)
    ['observed/loss']
    """
    if _is_sharded(model):
        why = "the model's weights are spread over processes"
        return Measured({}, {observable.name: why for observable in observables})
    settings = Settings(step, (), batch_size, str(device_of(model)))
    job = Job("live", Path(), tuple(observables), inputs, settings)
    metrics: dict[str, float] = {}
    failed: dict[str, str] = {}
    with unchanged(model):
        needs = list(chain.from_iterable(map(own_needs, observables)))
        values = Values(needs, partial(read_model, job, model))
        for observable in observables:
            try:
                data = observable.observe(ReadStep(job, observable, step, values), None)
                numbers, missing = _numbers(observable, data)
                metrics |= numbers
                failed |= missing
            except Exception as error:  # an observable never stops a training
                failed[observable.name] = reason(error)
    return Measured(metrics, failed)


def _is_sharded(model: nn.Module) -> bool:
    """Return whether a forward pass takes other processes, which would be waited for forever."""
    sharded = any(
        hasattr(p, "full_tensor") or hasattr(p, "ds_id") for p in model.parameters()
    )
    return sharded or any(
        "FullySharded" in type(module).__name__ for module in model.modules()
    )


def _numbers(
    observable: Observable, data: xr.Dataset
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the numbers of the variables that an observable is about, and what is missing."""
    declared = [q.name for q in observable.quantities if q.name in data]
    others = [str(n) for n, v in data.data_vars.items() if set(v.dims) <= {"layer"}]
    numbers: dict[str, float] = {}
    reasons = _failed_layers(data)
    failed = {f"{observable.name}/{layer}": why for layer, why in reasons.items()}
    for name in declared or others:
        variable = data[name]
        if variable.dtype.kind not in "fiu":
            continue
        node = [observable.name] if name != observable.name else []
        start = "/".join([PREFIX, *node, name])
        if variable.size > _MOST:
            failed[start] = f"{variable.size:,} numbers; a study shows them"
            continue
        for place in np.ndindex(variable.shape):
            labels = [
                _label(variable, dim, i)
                for dim, i in zip(variable.dims, place, strict=True)
            ]
            value = float(variable.values[place])
            label = "/".join([start, *labels])
            if np.isfinite(value):
                numbers[label] = value
            elif reasons.keys().isdisjoint(labels):
                # A failed layer has no number to miss.
                failed[label] = f"it is {value}"
    return numbers, failed


def _failed_layers(data: xr.Dataset) -> dict[str, str]:
    """Return why layers have no numbers, by layer."""
    if "status" not in data:
        return {}
    layers = data["layer"].values if "layer" in data.coords else [""]
    pairs = zip(layers, np.ravel(data["status"].values), strict=False)
    return {
        str(n): str(why).removeprefix("failed: ") for n, why in pairs if why != "done"
    }


def _label(variable: xr.DataArray, dim: Any, place: int) -> str:
    return str(variable[dim].values[place]) if dim in variable.coords else str(place)
