"""Distributed checkpoints of PyTorch: ``.metadata`` beside ``.distcp`` files.

torch.distributed.checkpoint and FSDP write them, and through them accelerate, the Trainer and
Lightning. ``.metadata`` is a pickle: torch's reader would run it, so it is read inertly, and torch
gets an index that is made anew of its names and numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....errors import CheckpointError
from ..files import WeightFiles
from ..inert import few, plain, read_plain
from ..parts import Part, PartsReader
from ..pickled import STATE_KEYS, unwrapped

_INDEX = ".metadata"
_INSIDE = ("pytorch_model_fsdp_*", "model")  # of accelerate and the Trainer
_BESIDE = ("optim", "optimizer", "lr_scheduler", "train_state", "dataloader", "rng")


def find(folder: Path) -> WeightFiles | None:
    """Return the files of a distributed checkpoint in a folder, or None if there is none."""
    places = [folder, *(path for glob in _INSIDE for path in sorted(folder.glob(glob)))]
    place = next((path for path in places if (path / _INDEX).is_file()), None)
    if place is None:
        return None
    return WeightFiles((place / _INDEX, *sorted(place.glob("*.distcp"))), reader=read)


def read(files: tuple[Path, ...]) -> PartsReader:
    """Return a reader by torch's own, which needs no process group.

    Raises
    ------
    CheckpointError
        If the index is damaged, or names files that are not there.
    """
    try:
        tensors, storage, paths = _index(read_plain(files[0]))
    except Exception:  # damaged pickles raise anything
        raise CheckpointError(f"{files[0]} is not an index of a distributed checkpoint.") from None
    absent = sorted({entry[1] for entry in storage} - {path.name for path in files[1:]})
    if absent:
        raise CheckpointError(f"{files[0].parent} lacks {len(absent)} of its files: {few(absent)}.")
    parts = {}
    for name, stored in _of_model(tensors, paths).items():
        size, dtype, _ = tensors[stored]
        read_it = partial(_read, files[0].parent, stored, tensors[stored], storage)
        parts[name] = Part(tuple(size), dtype, read_it)
    return PartsReader(parts)


def _index(raw: Any) -> tuple[dict[str, Any], list[Any], dict[str, tuple[str, ...]]]:
    """Return sizes, dtypes and chunks by name, where the chunks lie, and the paths of names."""
    state = raw.state
    tensors = {}
    for name, entry in state["state_dict_metadata"].items():
        if "size" not in (entry.state or {}):
            continue  # bytes, which are a pickle
        dtype = entry.state["properties"].state[0]
        chunks = [
            (_sizes(c.state["offsets"]), _sizes(c.state["sizes"])) for c in entry.state["chunks"]
        ]
        if not isinstance(dtype, torch.dtype):
            raise TypeError(dtype)
        tensors[str(name)] = _sizes(entry.state["size"]), dtype, chunks
    storage = []
    for key, info in state["storage_data"].items():
        name, place = key.state["fqn"], info.state
        if name in tensors:
            offset = key.state.get("offset")
            at = None if offset is None else _sizes(offset)
            storage.append(
                ((name, at), place["relative_path"], int(place["offset"]), int(place["length"]))
            )
    planned = state.get("planner_data") or {}
    paths = {name: tuple(map(str, planned.get(name) or (name,))) for name in tensors}
    return tensors, storage, paths


def _sizes(value: Any) -> torch.Size:
    sizes = torch.Size(value)
    if any(size < 0 for size in sizes):
        raise ValueError(sizes)
    return sizes


def _of_model(tensors: Mapping[str, Any], paths: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return ``{name in the model: name in the index}``, without the optimiser's tensors."""
    chosen = {name: path for name, path in paths.items() if not path[0].startswith(_BESIDE)}
    while True:
        first = {path[0] for path in chosen.values() if len(path) > 1}
        key = next((k for k in (*STATE_KEYS, "app") if k in first), None)
        if key is None:
            break
        chosen = {n: path[1:] for n, path in chosen.items() if path[0] == key and len(path) > 1}
    return {unwrapped(".".join(path)): name for name, path in chosen.items()}


def _read(folder: Path, name: str, tensor: tuple[Any, ...], storage: list[Any]) -> Tensor:
    from torch.distributed.checkpoint import CheckpointException, FileSystemReader
    from torch.distributed.checkpoint import metadata as kinds
    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.state_dict_loader import load

    size, dtype, chunks = tensor
    index = kinds.Metadata(
        {
            name: kinds.TensorStorageMetadata(
                kinds.TensorProperties(dtype),
                size,
                [kinds.ChunkStorageMetadata(*c) for c in chunks],
            )
        },
        storage_data={
            kinds.MetadataIndex(*key): _StorageInfo(*place)
            for key, *place in storage
            if key[0] == name
        },
    )
    index.storage_meta = kinds.StorageMeta()
    reader = FileSystemReader(folder)
    reader.read_metadata = lambda *_, **__: index  # type: ignore[method-assign]
    result = {name: torch.empty(size, dtype=dtype)}
    try:
        with warnings.catch_warnings(action="ignore"):  # that there is one process
            load(result, storage_reader=reader, no_dist=True)
    except (Exception, CheckpointException) as error:  # the latter is no Exception
        raise CheckpointError(
            f"{folder}: {plain(name)} cannot be read; is a file damaged?"
        ) from error
    return result[name]
