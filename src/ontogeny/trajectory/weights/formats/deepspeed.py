"""Checkpoints of DeepSpeed: ZeRO 1 to 3, whose weights are divided among processes.

What ``zero_to_fp32.py``, which DeepSpeed puts beside them, documents: of stages 1 and 2, groups of
parameters are flat float32 vectors that are cut into one piece for each process; of stage 3, each
parameter is cut alone. Tensors are put together when they are read.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....errors import CheckpointError
from ..files import WeightFiles
from ..parts import Part, PartsReader
from ..pickled import read_pickle, unwrapped

_FILE = re.compile(
    r"(?:bf16_)?(?:zero_pp_rank_(?P<rank>\d+)_)?mp_rank_(?P<part>\d+)_(?P<kind>model|optim)_states\.pt"
)


def find(folder: Path) -> WeightFiles | None:
    """Return the files of a ZeRO checkpoint in a folder, or in the one that it calls the latest."""
    try:
        tag = (folder / "latest").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        tag = ""
    inner = sorted(
        path for path in folder.iterdir() if path.name.startswith("global_step")
    )
    inner = [path for path in folder.iterdir() if path.name == tag] or inner[-1:]
    for place in (folder, *inner):
        files = [
            path for path in place.glob("*_states.pt") if _FILE.fullmatch(path.name)
        ]
        if files and not any(place.glob("layer_*-model_*-model_states.pt")):
            return WeightFiles(tuple(sorted(files, key=_order)), reader=read)
    return None


def _order(path: Path) -> tuple[str, int]:
    match = _FILE.fullmatch(path.name)
    assert match is not None
    return match["kind"], int(match["rank"] or 0)


def read(files: tuple[Path, ...]) -> PartsReader:
    """Return a reader over the float32 weights that the optimiser holds, of all processes.

    Without files of the optimiser, of stages up to 2, it gives the model's own weights.

    Raises
    ------
    CheckpointError
        If files of some processes are not there, the model is cut into parts that compute apart
        (tensor or pipeline parallelism), or the files hold something else.
    """
    folder = files[0].parent
    matches = filter(None, (_FILE.fullmatch(path.name) for path in files))
    if len({match["part"] for match in matches}) > 1:
        raise CheckpointError(
            f"{folder} holds a model in parts (tensor parallelism); convert with DeepSpeed's "
            "ds_to_universal.py, or the converter of what trained it."
        )
    states = [read_pickle(path) for path in files if _order(path)[0] == "model"]
    optimisers = [read_pickle(path) for path in files if _order(path)[0] == "optim"]
    try:
        parts = _parts(
            folder, states, [part["optimizer_state_dict"] for part in optimisers]
        )
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise CheckpointError(
            f"{folder} is not laid out as ZeRO 1 to 3; run the zero_to_fp32.py beside it, and open "
            "what it writes."
        ) from None
    return PartsReader({unwrapped(name): part for name, part in parts.items()})


def _parts(folder: Path, states: Sequence[Any], zero: Sequence[Any]) -> dict[str, Part]:
    state = states[0]
    module = states[0]["module"] or {}
    tensors = {name: v for name, v in module.items() if isinstance(v, Tensor)}
    if not zero or "zero_stage" not in zero[0]:
        if not tensors or not all(v.numel() for v in tensors.values()):
            raise CheckpointError(
                f"{folder} lacks the files *_optim_states.pt, which hold the weights; copy them "
                "there."
            )
        return {
            n: _part(v.shape, [v.reshape(-1)], dtype=v.dtype)
            for n, v in tensors.items()
        }
    # The stage itself is of a class of DeepSpeed's.
    third = "fp32_flat_groups" in zero[0]
    count = zero[0]["partition_count"]
    count = max(count) if isinstance(count, list) else count
    if count != len(zero) or (third and count != len(states)):
        raise CheckpointError(
            f"{folder} holds files of {min(len(zero), len(states))} of {count} processes; copy all "
            "of them there."
        )
    # Buffers; of stages 1 and 2 all tensors, in half precision, of which frozen ones stay.
    names = tensors if not third else set(state["buffer_names"]) & set(tensors)
    parts = {
        name: _part(tensors[name].shape, [tensors[name].reshape(-1)]) for name in names
    }
    for name, shape in (state.get("frozen_param_shapes") or {}).items():
        fragments = [
            part["frozen_param_fragments"][name].reshape(-1) for part in states
        ]
        parts[name] = _part(shape, fragments, dtype=fragments[0].dtype)
    parts |= _cut(state, zero) if third else _flat(state, zero)
    shared = state["shared_params"].items()
    return parts | {name: parts[other] for name, other in shared if other in parts}


def _flat(state: Any, zero: Sequence[Any]) -> dict[str, Part]:
    """Return parts of stages 1 and 2: a group of parameters is one vector in pieces."""
    parts = {}
    paddings = zero[0].get("param_alignment_paddings")
    for i, shapes in enumerate(state["param_shapes"]):
        pieces = [part["single_partition_of_fp32_groups"][i] for part in zero]
        start = 0
        for j, (name, shape) in enumerate(shapes.items()):
            parts[name] = _part(shape, pieces, start)
            start += math.prod(shape) + (paddings[i][j] if paddings else 0)
        _check_length(start, sum(map(len, pieces)), 2 * len(zero))
    return parts


def _cut(state: Any, zero: Sequence[Any]) -> dict[str, Part]:
    """Return parts of stage 3: every parameter is cut into pieces of equal length."""
    parts = {}
    start = 0
    groups = [part["fp32_flat_groups"] for part in zero]
    shapes = (group.items() for group in state["param_shapes"])
    for name, shape in itertools.chain.from_iterable(shapes):
        length = math.ceil(math.prod(shape) / len(zero))
        ranks = [partial(_stretch, list(pieces), start, length) for pieces in groups]
        parts[name] = _part(shape, ranks)
        start += length
    _check_length(start, sum(map(len, groups[0])), 1)
    return parts


def _check_length(used: int, length: int, padding: int) -> None:
    if math.ceil(used / padding) != math.ceil(length / padding):
        raise ValueError(f"{used} of {length}")


def _part(
    shape: Sequence[int],
    pieces: Sequence[Any],
    start: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Part:
    """Return a tensor that lies from `start` on in vectors, or in what gives them, in a row."""

    def read() -> Tensor:
        vectors = [piece if isinstance(piece, Tensor) else piece() for piece in pieces]
        return (
            _stretch(vectors, start, math.prod(shape)).reshape(tuple(shape)).to(dtype)
        )

    return Part(tuple(shape), dtype, read)


def _stretch(vectors: Sequence[Tensor], start: int, length: int) -> Tensor:
    inside = []
    at = 0
    for vector in vectors:
        inside.append(vector[max(start - at, 0) : max(start + length - at, 0)])
        at += len(vector)
    return torch.cat(inside)
