"""Models that accelerate has placed: on several devices, or in memory and files until they run.

Its hooks give a module its weights while it runs. Meanwhile they rest in a map, and the module
holds tensors without data. A model of a trajectory is a copy whose tensors are all there: those that
rested stay where they lay, mapped where that is a file, and go to the device of their part for as
long as it runs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from safetensors import safe_open
from torch import Tensor, nn

# What accelerate puts on a placed module: a warning that belongs to the module it was made for,
# which a copy must not call. Of a copy, `to` moved and gave back the original.
_MOVERS = ("to", "cuda", "npu", "xpu", "mlu", "sdaa", "musa", "neuron")


def is_placed(module: nn.Module) -> bool:
    """Return whether accelerate has placed a module or a part of it.

    Examples
    --------
    >>> is_placed(nn.Linear(2, 2))
    False
    """
    return any("_hf_hook" in vars(part) for part in module.modules())


def resting_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that a placed module has only while it runs, by their names.

    Those in files are mapped and not read. Tied ones are the same object.
    """
    values: dict[str, Tensor] = {}
    by_place: dict[tuple[int, tuple[int, ...]], Tensor] = {}
    for name, tensor, source, key in _at_rest(module):
        value = _value(source, key).detach()
        place = value.data_ptr(), tuple(value.shape)
        same = by_place.setdefault(place, value) if value.numel() else value
        if isinstance(tensor, nn.Parameter) and not isinstance(same, nn.Parameter):
            same = by_place[place] = nn.Parameter(same, requires_grad=False)
        values[name] = same
    for name, other in (getattr(module, "all_tied_weights_keys", None) or {}).items():
        if name in values and other in values:
            values[name] = values[other]
    return values


def names_in_files(module: nn.Module) -> frozenset[str]:
    """Return the names of tensors of an own copy that lie in files and not in memory."""
    return _IN_FILES.get(module, frozenset())


def own_copy(module: nn.Module) -> nn.Module:
    """Return a copy of a placed module, placed alike, that shares no tensor in memory with it."""
    return settled(copy.deepcopy(module))


def settled(module: nn.Module) -> nn.Module:
    """Let a placed module hold all of its tensors itself; it runs where it ran."""
    values = resting_tensors(module)
    in_files = frozenset(n for n, _, s, key in _at_rest(module) if _is_file(s, key))
    for path, part in module.named_modules():
        for name in _MOVERS:
            vars(part).pop(name, None)
        prefix = f"{path}." if path else ""
        own = {
            name: values[f"{prefix}{name}"]
            for name in (*part._parameters, *part._buffers)
            if f"{prefix}{name}" in values
        }
        for name, value in own.items():
            table = part._parameters if name in part._parameters else part._buffers
            table[name] = value
        if own and (device := _runs_on(part)) is not None and device.type != "cpu":
            loader = _Loader(part, own, device)
            part.register_forward_pre_hook(loader.take)
            part.register_forward_hook(loader.give_up, always_call=True)
    for part in module.modules():
        for hook in _hooks(part):
            hook.offload = False
            # By addresses of tensors of the module that it was copied from.
            hook.tied_params_map = None
            hook.tied_params_names = set()
    _IN_FILES[module] = in_files
    return module


def at_rest(module: nn.Module) -> None:
    """Put back what a pass that was stopped left on the devices of its parts."""
    for part in module.modules():
        for hook in part._forward_pre_hooks.values():
            if isinstance(loader := getattr(hook, "__self__", None), _Loader):
                loader.give_up()


def replace_tensor(module: nn.Module, before: Tensor, value: Tensor) -> None:
    """Let a module of its own copy hold another tensor, of its dtype, under every name of it."""
    value = value.to(before.dtype)
    if isinstance(before, nn.Parameter):
        value = nn.Parameter(value, requires_grad=False)
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for key, tensor in table.items():
                if tensor is before:
                    table[key] = value  # type: ignore[assignment]


_IN_FILES: WeakKeyDictionary[nn.Module, frozenset[str]] = WeakKeyDictionary()


class _Loader:
    """Gives a part its tensors on the device that it runs on."""

    def __init__(
        self, part: nn.Module, resting: Mapping[str, Tensor], device: torch.device
    ) -> None:
        self._part = part
        self._resting = tuple(resting)
        self._device = device
        self._lent: dict[str, Any] = {}

    def take(self, *_: object) -> None:
        """Copy the tensors onto the device."""
        self.give_up()
        for name in self._resting:
            table = self._table(name)
            self._lent[name] = tensor = table[name]
            there = tensor.to(self._device)
            is_parameter = isinstance(tensor, nn.Parameter)
            table[name] = (
                nn.Parameter(there, requires_grad=False) if is_parameter else there
            )

    def give_up(self, *_: object) -> None:
        """Put back the tensors that rest."""
        for name, tensor in self._lent.items():
            self._table(name)[name] = tensor
        self._lent.clear()

    def _table(self, name: str) -> dict[str, Any]:
        part = self._part
        return part._parameters if name in part._parameters else part._buffers


def _hooks(part: nn.Module) -> Iterator[Any]:
    """Yield the hooks of accelerate on one part that move tensors."""
    hook = vars(part).get("_hf_hook")
    for one in getattr(hook, "hooks", (hook,)):
        if hasattr(one, "execution_device"):
            yield one


def _runs_on(part: nn.Module) -> torch.device | None:
    devices = (hook.execution_device for hook in _hooks(part))
    return next((torch.device(d) for d in devices if d is not None), None)


def _at_rest(module: nn.Module) -> Iterator[tuple[str, Tensor, Mapping[str, Any], str]]:
    """Yield names of offloaded tensors, what stands for them, the map and their keys there."""
    for path, part in module.named_modules():
        for hook in _hooks(part):
            if not hook.offload or hook.weights_map is None:
                continue
            options = {"recurse": hook.place_submodules, "remove_duplicate": False}
            tensors = [*part.named_parameters(**options)]
            if hook.offload_buffers:
                kept = part.state_dict(keep_vars=True)
                tensors += [
                    (n, t) for n, t in part.named_buffers(**options) if n in kept
                ]
            for name, tensor in tensors:
                source = hook.weights_map
                prefix = getattr(source, "prefix", "")
                source = getattr(source, "dataset", source)
                yield f"{path}.{name}".lstrip("."), tensor, source, f"{prefix}{name}"


def _is_file(source: Mapping[str, Any], key: str) -> bool:
    return key not in getattr(source, "state_dict", source)


def _value(source: Any, key: str) -> Tensor:
    """Return what rests in a map of accelerate; a file is mapped."""
    if not _is_file(source, key):
        return getattr(source, "state_dict", source)[key]
    about = source.index[key]
    if (file := about.get("safetensors_file")) is not None:
        with safe_open(file, framework="pt") as stored:
            tensor: Tensor = stored.get_tensor(about.get("weight_name", key))
        dtype = about.get("dtype")
        return tensor if dtype is None else tensor.to(_dtype(dtype))
    path = Path(source.save_folder) / f"{key}.dat"
    shape = tuple(about["shape"])
    count = max(math.prod(shape), 1)
    dtype = _dtype(about["dtype"])
    return torch.from_file(str(path), False, count, dtype=dtype).reshape(shape)


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, name.removeprefix("torch."))
