"""What observables give of a live model, as numbers with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from ..capture.forward import device_of
from ..errors import ArgumentError
from ..inputs import Inputs
from ..needs.derived import Reference
from ..observables import Observable
from ..study.cells.readings import Job, ReadStep, Values, own_needs, read_model
from ..study.folder.settings import Settings
from .unchanged import unchanged

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
    >>> found = measure(model, 0, [Loss(objective="causal")], {"text": texts})
    >>> list(found.metrics)
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
        needs = [need for observable in observables for need in own_needs(observable)]
        values = Values(needs, partial(read_model, job, model))
        for observable in observables:
            try:
                data = observable.observe(ReadStep(job, observable, step, values), None)
                numbers, missing = _numbers(observable, data)
                metrics |= numbers
                failed |= missing
            except Exception as error:  # an observable never stops a training
                failed[observable.name] = f"{type(error).__name__}: {error}".split("\n")[0]
    return Measured(metrics, failed)


def _is_sharded(model: nn.Module) -> bool:
    """Return whether a forward pass takes other processes, which would be waited for forever."""
    sharded = any(hasattr(p, "full_tensor") or hasattr(p, "ds_id") for p in model.parameters())
    return sharded or any("FullySharded" in type(module).__name__ for module in model.modules())


def _numbers(observable: Observable, data: xr.Dataset) -> tuple[dict[str, float], dict[str, str]]:
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
        start = _named(observable.name, name)
        if variable.size > _MOST:
            failed[start] = f"{variable.size:,} numbers; a study shows them"
            continue
        for place in np.ndindex(variable.shape):
            labels = [_label(variable, dim, i) for dim, i in zip(variable.dims, place, strict=True)]
            value, label = float(variable.values[place]), "/".join([start, *labels])
            if np.isfinite(value):
                numbers[label] = value
            elif reasons.keys().isdisjoint(labels):  # a failed layer has no number to miss
                failed[label] = f"it is {value}"
    return numbers, failed


def _failed_layers(data: xr.Dataset) -> dict[str, str]:
    """Return why layers have no numbers, by layer."""
    if "status" not in data:
        return {}
    layers = data["layer"].values if "layer" in data.coords else [""]
    pairs = zip(layers, np.ravel(data["status"].values), strict=False)
    return {str(n): str(why).removeprefix("failed: ") for n, why in pairs if why != "done"}


def _named(node: str, variable: str) -> str:
    return "/".join([PREFIX, *([node] if variable != node else []), variable])


def _label(variable: xr.DataArray, dim: Any, place: int) -> str:
    return str(variable[dim].values[place]) if dim in variable.coords else str(place)
