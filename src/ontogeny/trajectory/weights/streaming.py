"""Models that need not fit into memory: every module maps its weights only while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ...errors import CheckpointError
from .files import Weights


def stream(label: str, module: nn.Module, weights: Weights, to_file: Mapping[str, str]) -> None:
    """Let each part of a mapped module give up its weights as soon as it has run.

    A part maps its own weights anew when it is called, so the system reads them from the files, and
    afterwards the map is gone with all that was read. What is used without calling its module is
    right as well: the module stays mapped as a whole.

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
    for path, part in module.named_modules():
        names = {n: f"{path}.{n}".lstrip(".") for n, p in part._parameters.items() if p is not None}
        if names:
            own = _Own(weights, {n: to_file[full] for n, full in names.items()})
            part.register_forward_pre_hook(own.take)
            part.register_forward_hook(own.give_up, always_call=True)


class _Own:
    """The weights of one part: stored names by its own names for them."""

    def __init__(self, weights: Weights, stored: Mapping[str, str]) -> None:
        self._weights, self._stored = weights, stored
        self._mapped: dict[str, Any] = {}

    def take(self, part: nn.Module, *_: Any) -> None:
        """Map the weights anew."""
        with self._weights.open() as reader:
            for name, stored in self._stored.items():
                parameter = part._parameters[name]
                assert parameter is not None
                self._mapped.setdefault(name, parameter.data)
                parameter.data = reader.get(stored)

    def give_up(self, part: nn.Module, *_: Any) -> None:
        """Put back the map that nothing was read of."""
        for name, mapped in self._mapped.items():
            parameter = part._parameters[name]
            assert parameter is not None
            parameter.data = mapped
