"""Models that need not fit into memory: every module has its weights only while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ...errors import CheckpointError
from .files import Weights


def stream(
    label: str,
    module: nn.Module,
    weights: Weights,
    to_file: Mapping[str, str],
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> None:
    """Let each part of a mapped module give up its weights as soon as it has run.

    A part maps its own weights anew when it is called, so the system reads them from the files, and
    afterwards the map is gone with all that was read. On another device than the CPU they are
    copied there for that long. What is used without calling its module stays mapped as a whole: on
    the CPU that is right as well, and elsewhere PyTorch refuses tensors of two devices.

    Parameters
    ----------
    label
        Name of the checkpoint in messages.
    module
        Whose weights are mapped, see `ontogeny.trajectory.Checkpoint.mapped`.
    weights
        The files.
    to_file
        Stored names by names of the module; see `Skeleton.file_names`.
    device
        Where the parts run.
    dtype
        Floating-point dtype that they run in; None is that of the mapped weights.

    Raises
    ------
    CheckpointError
        If a weight is not stored under one name: transformers joined or split it.
    """
    missing = [name for name, _ in module.named_parameters() if name not in to_file]
    if missing:
        raise CheckpointError(
            f"{label} cannot be streamed: {', '.join(missing[:3])} is not one tensor of its files; "
            'use weights="loaded".'
        )
    aim = torch.device(device)
    for path, part in module.named_modules():
        for name, buffer in part._buffers.items():
            part._buffers[name] = None if buffer is None else buffer.to(aim)
        names = {
            n: f"{path}.{n}".lstrip(".")
            for n, p in part._parameters.items()
            if p is not None
        }
        if names:
            file_names = {n: to_file[full] for n, full in names.items()}
            loader = _PartLoader(part, weights, file_names, aim, dtype)
            part.register_forward_pre_hook(loader.take)
            part.register_forward_hook(loader.give_up, always_call=True)
    _DEVICES[module] = aim


def device_of_parts(module: nn.Module) -> torch.device | None:
    """Return where the parts of a streamed module run; None for any other module."""
    return _DEVICES.get(module)


_DEVICES: WeakKeyDictionary[nn.Module, torch.device] = WeakKeyDictionary()


class _PartLoader:
    """The weights of one part: stored names by its own names for them."""

    def __init__(
        self,
        part: nn.Module,
        weights: Weights,
        names: Mapping[str, str],
        device: torch.device,
        dtype: torch.dtype | None,
    ) -> None:
        self._weights = weights
        self._names = names
        self._device = device
        self._mapped = {name: part._parameters[name] for name in names}
        self._dtypes = {
            n: _run_dtype(p, dtype) for n, p in self._mapped.items() if p is not None
        }

    def take(self, part: nn.Module, *_: object) -> None:
        """Map the weights anew."""
        with self._weights.open() as reader:
            for name, file_name in self._names.items():
                tensor = reader.get(file_name).to(self._device, self._dtypes[name])
                part._parameters[name] = nn.Parameter(tensor, requires_grad=False)

    def give_up(self, part: nn.Module, *_: object) -> None:
        """Put back the map that nothing was read of."""
        part._parameters.update(self._mapped)


def _run_dtype(parameter: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """Return the dtype that a weight has while its part runs."""
    return (
        dtype
        if dtype is not None and parameter.is_floating_point()
        else parameter.dtype
    )
