"""Models of a run that are larger than one device: accelerate places them, by what has room.

`placement` is about models that are placed already.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...errors import ArgumentError
from ...machine import free_memory

# Of a device or of memory, what weights may take: the rest is for what is computed.
SHARE = 0.75


def room_here(device: str = "cuda") -> dict[int | str, int]:
    """Return bytes that weights may take: of every visible GPU by its number, and of memory.

    Files hold what is left over. Where the CPU computes, no GPU counts.

    Examples
    --------
    >>> list(room_here("cpu"))
    ['cpu']
    """
    gpus = range(0 if device == "cpu" else torch.cuda.device_count())
    sizes: dict[int | str, int] = {
        i: torch.cuda.get_device_properties(i).total_memory for i in gpus
    }
    free = free_memory()
    # Where it cannot be known, nothing but the system itself says no.
    sizes["cpu"] = 2**62 if free is None else free
    return {place: int(SHARE * size) for place, size in sizes.items()}


def fits_one(size: int, room: Mapping[int | str, int]) -> bool:
    """Return whether weights of this size fit on each GPU, or, where there is none, in memory.

    Examples
    --------
    >>> fits_one(10, {0: 20, 1: 5, "cpu": 100}), fits_one(10, {"cpu": 100})
    (False, True)
    """
    gpus = [bytes_ for place, bytes_ in room.items() if place != "cpu"]
    return size <= min(gpus, default=room["cpu"])


@dataclass(frozen=True)
class Placed:
    """Builds the model of a checkpoint folder, placed over devices, memory and files.

    Attributes
    ----------
    room
        Bytes that weights may take by place, as pairs of what `room_here` gives.
    dtype
        Of the weights; None keeps the stored one.

    Raises
    ------
    ArgumentError
        If accelerate is not installed.
    """

    room: tuple[tuple[int | str, int], ...]
    dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        if find_spec("accelerate") is None:
            raise ArgumentError(
                "the model does not fit on one device, and to place it over several needs "
                "accelerate: install it with pip install 'ontogeny[accelerate]'."
            )

    @cached_property
    def _files(self) -> str:
        """The folder of weights that lie in files, which goes with this object."""
        folder = tempfile.mkdtemp(prefix="ontogeny-placed-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def described(self) -> dict[str, Any]:
        """Return what a model computes with beside its weights: where they lie is no part of it."""
        return {}

    def __call__(self, path: Path) -> nn.Module:
        """Return the model of this folder."""
        from accelerate import disk_offload, dispatch_model, infer_auto_device_map

        from .folders import find_weights
        from .precision import widest
        from .transformers_models import load_pretrained

        with find_weights(path).open() as reader:
            # Mapped: memory takes a tensor when it is moved.
            module: Any = load_pretrained(path, reader, self.dtype or widest(reader))
        places = infer_auto_device_map(
            module, dict(self.room), no_split_module_classes=module._no_split_modules
        )
        if places.get("") == "disk":  # `dispatch_model` then writes no weights
            whole: nn.Module = disk_offload(module, self._files)
            return whole
        placed: nn.Module = dispatch_model(
            module, places, offload_dir=self._files, force_hooks=True
        )
        return placed


def unplaced(template: Any) -> Any:
    """Return what builds a model, None where that is transformers, wherever the weights lie."""
    return None if isinstance(template, Placed) else template
