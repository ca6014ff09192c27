"""A model's weights on disk: whole or not at all, and without touching the model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ...errors import ArgumentError
from ...renames import rename
from ...whole_files import temporary
from .folders import SAFE
from .pickled import unwrapped
from .transformers_models import is_pretrained, quiet


def unwrap(model: nn.Module) -> nn.Module:
    """Return the module inside data-parallel and torch.compile wrappers.

    Raises
    ------
    ArgumentError
        If `model` is not a module.
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"model must be an nn.Module; got {type(model).__name__}.")
    parallel = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while True:
        compiled = model._modules.get("_orig_mod")
        if compiled is not None:
            model = compiled
        elif isinstance(model, parallel):
            model = model.module
        else:
            return model


def state_to_save(model: nn.Module, dtype: torch.dtype | None) -> dict[str, Tensor]:
    """Return the tensors to write: on the CPU, tied ones still as the same object.

    Raises
    ------
    ArgumentError
        If a tensor is sharded over processes or has no data here.
    """
    done: dict[tuple, Tensor] = {}
    state: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, tensor in model.state_dict().items():
        if not isinstance(tensor, Tensor):
            continue
        if tensor.is_meta or hasattr(tensor, "full_tensor"):
            raise ArgumentError(
                f"{name} is sharded or has no data in this process; gather the model's weights "
                "first and give the Recorder the whole module."
            )
        location = (
            tensor.device,
            tensor.untyped_storage().data_ptr(),
            tensor.storage_offset(),
        )
        key = (*location, tensor.dtype, tuple(tensor.shape), tensor.stride())
        if key not in done:
            done[key] = _as_stored(tensor.detach(), dtype, taken)
            taken.add(done[key].untyped_storage().data_ptr())
        state[unwrapped(name)] = done[key]
    return state


def _as_stored(tensor: Tensor, dtype: torch.dtype | None, taken: set[int]) -> Tensor:
    """Return the tensor as it is written; two entries of a file must not share memory."""
    target = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
    copy = tensor.to("cpu", target).contiguous()
    return copy.clone() if copy.untyped_storage().data_ptr() in taken else copy


def save_checkpoint(
    folder: Path, model: nn.Module, dtype: torch.dtype | None = None
) -> None:
    """Write `model` to `folder` under a temporary name, flush it to disk and rename it.

    Transformers models are written with their configuration, in their own file format; other
    modules as ``model.safetensors`` with one entry for each group of tied tensors.
    """
    half = temporary(folder)
    half.mkdir(parents=True)
    try:
        state = state_to_save(model, dtype)
        if is_pretrained(model):
            _save_pretrained(half, model, state, dtype)
        else:
            save_file(_one_of_each(state), half / SAFE, metadata={"format": "pt"})
        for file in half.iterdir():
            sync(file)
        sync(half)
        rename(half, folder)
        sync(folder.parent)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _save_pretrained(
    folder: Path, model: Any, state: dict[str, Tensor], dtype: torch.dtype | None
) -> None:
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ArgumentError(
            "the model carries adapters, of which transformers would save the adapters alone; "
            "record the base model, or the merged one."
        )
    before = (model.config.architectures, model.config.dtype)
    try:
        with quiet():
            model.save_pretrained(folder, state_dict=state)
    finally:
        model.config.architectures, model.config.dtype = before
    if dtype is not None:
        path = folder / "config.json"
        configuration = json.loads(path.read_text(encoding="utf-8"))
        configuration["dtype"] = str(dtype).removeprefix("torch.")
        path.write_text(json.dumps(configuration, indent=2) + "\n", encoding="utf-8")


def _one_of_each(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    first = {id(tensor): name for name, tensor in reversed(list(state.items()))}
    return {name: tensor for name, tensor in state.items() if first[id(tensor)] == name}


def sync(path: Path) -> None:
    """Flush a file or folder to disk, so that a rename never outlives what it names."""
    if path.is_dir() and os.name != "posix":  # other systems do not open folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
