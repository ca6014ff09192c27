"""Distributed checkpoints of PyTorch: ``.metadata`` beside ``.distcp`` files.

torch.distributed.checkpoint and FSDP write them, and through them accelerate, the Trainer and
Lightning. ``.metadata`` is a pickle: torch's reader would run it, so it is read inertly, and torch
gets an index that is made anew of its names and numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from itertools import chain
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
    places = chain([folder], *(sorted(folder.glob(glob)) for glob in _INSIDE))
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
    folder = files[0].parent
    try:
        index, paths = _index(read_plain(files[0]).state)
    except Exception:  # damaged pickles raise anything
        raise CheckpointError(
            f"{files[0]} is not an index of a distributed checkpoint."
        ) from None
    file_names = {place.relative_path for place in index.storage_data.values()}
    absent = sorted(file_names - {path.name for path in files[1:]})
    if absent:
        raise CheckpointError(
            f"{folder} lacks {len(absent)} of its files: {few(absent)}."
        )
    parts = {}
    for name, key in _of_model(paths).items():
        tensor: Any = index.state_dict_metadata[key]
        dtype = tensor.properties.dtype
        parts[name] = Part(
            tuple(tensor.size), dtype, partial(_read, folder, index, key)
        )
    return PartsReader(parts)


def _index(raw: Mapping[str, Any]) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """Return torch's index of the tensors, made anew, and the paths of their names."""
    from torch.distributed.checkpoint import metadata as kinds
    from torch.distributed.checkpoint.filesystem import _StorageInfo

    tensors: dict[str, Any] = {}
    for name, entry in raw["state_dict_metadata"].items():
        if "size" in (entry.state or {}):  # else bytes, which are a pickle
            dtype = entry.state["properties"].state[0]
            chunks = entry.state["chunks"]
            tensors[str(name)] = kinds.TensorStorageMetadata(
                kinds.TensorProperties(torch.empty(0, dtype=dtype).dtype),
                _sizes(entry.state["size"]),
                [
                    kinds.ChunkStorageMetadata(
                        _sizes(c.state["offsets"]), _sizes(c.state["sizes"])
                    )
                    for c in chunks
                ],
            )
    storage = {
        kinds.MetadataIndex(key.state["fqn"], key.state.get("offset")): _StorageInfo(
            place.state["relative_path"],
            int(place.state["offset"]),
            int(place.state["length"]),
        )
        for key, place in raw["storage_data"].items()
        if key.state["fqn"] in tensors
    }
    planned = raw.get("planner_data") or {}
    paths = {name: tuple(map(str, planned.get(name) or (name,))) for name in tensors}
    return kinds.Metadata(tensors, None, storage, kinds.StorageMeta()), paths


def _sizes(value: Any) -> torch.Size:
    return torch.empty(tuple(value), device="meta").shape  # refuses what is no shape


def _of_model(paths: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return ``{name in the model: name in the index}``, without the optimiser's tensors."""
    inner = {
        name: path for name, path in paths.items() if not path[0].startswith(_BESIDE)
    }
    while True:
        first = {path[0] for path in inner.values() if len(path) > 1}
        key = next((k for k in (*STATE_KEYS, "app") if k in first), None)
        if key is None:
            return {unwrapped(".".join(path)): name for name, path in inner.items()}
        inner = {
            n: path[1:] for n, path in inner.items() if path[0] == key and len(path) > 1
        }


def _read(folder: Path, index: Any, name: str) -> Tensor:
    from torch.distributed.checkpoint import CheckpointException, FileSystemReader
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = FileSystemReader(folder)
    tensor = index.state_dict_metadata[name]
    reader.read_metadata = lambda *_, **__: index  # type: ignore[method-assign]
    result = {name: torch.empty(tensor.size, dtype=tensor.properties.dtype)}
    try:
        with warnings.catch_warnings(action="ignore"):  # that there is one process
            load(result, storage_reader=reader, no_dist=True)
    except (Exception, CheckpointException) as error:  # the latter is no Exception
        raise CheckpointError(
            f"{folder}: {plain(name)} cannot be read; is it damaged?"
        ) from error
    return result[name]
