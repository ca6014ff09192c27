"""Checkpoints of DeepSpeed: ZeRO 1 to 3, whose weights are divided among processes.

What ``zero_to_fp32.py``, which DeepSpeed puts beside them, documents: of stages 1 and 2, groups of
parameters are flat float32 vectors that are cut into one piece for each process; of stage 3, each
parameter is cut alone. Tensors are put together when they are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
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
    inner = sorted(path for path in folder.iterdir() if path.name.startswith("global_step"))
    inner = [path for path in folder.iterdir() if path.name == tag] or inner[-1:]
    for place in (folder, *inner):
        files = [path for path in place.glob("*_states.pt") if _FILE.fullmatch(path.name)]
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
    if len({match["part"] for path in files if (match := _FILE.fullmatch(path.name))}) > 1:
        raise CheckpointError(
            f"{folder} holds a model in parts (tensor parallelism); convert with DeepSpeed's "
            "ds_to_universal.py, or the converter of what trained it."
        )
    states = [read_pickle(path) for path in files if _order(path)[0] == "model"]
    optimisers = [read_pickle(path) for path in files if _order(path)[0] == "optim"]
    try:
        parts = dict(_parts(folder, states, optimisers))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise CheckpointError(
            f"{folder} is not laid out as ZeRO 1 to 3; run the zero_to_fp32.py beside it, and open "
            "what it writes."
        ) from None
    return PartsReader({unwrapped(name): part for name, part in parts.items()})


def _parts(
    folder: Path, states: Sequence[Any], optimisers: Sequence[Any]
) -> Iterator[tuple[str, Part]]:
    state, module = states[0], states[0]["module"]
    zero = [each["optimizer_state_dict"] for each in optimisers]
    if not zero or "zero_stage" not in zero[0]:
        yield from _whole(folder, module)
        return
    count = zero[0]["partition_count"]
    count = max(count) if isinstance(count, list) else count
    third = "fp32_flat_groups" in zero[0]  # the stage itself is of a class of DeepSpeed's
    if count != len(zero) or (third and count != len(states)):
        raise CheckpointError(
            f"{folder} holds files of {min(len(zero), len(states))} of {count} processes; copy all "
            "of them there."
        )
    # Buffers; of stages 1 and 2 all tensors, in half precision, of which frozen ones stay.
    held = {n: v for n, v in module.items() if not third or n in state["buffer_names"]}
    parts = {n: _part(_float, v.shape, v) for n, v in held.items() if isinstance(v, Tensor)}
    parts |= dict(_frozen(states, third))
    parts |= dict(_cut(state, zero) if third else _flat(state, zero))
    for name, shared in state["shared_params"].items():
        if shared in parts:
            parts[name] = parts[shared]
    yield from parts.items()


def _whole(folder: Path, module: Any) -> Iterator[tuple[str, Part]]:
    tensors = {n: v for n, v in (module or {}).items() if isinstance(v, Tensor)}
    if not tensors or any(v.numel() == 0 for v in tensors.values()):
        raise CheckpointError(
            f"{folder} lacks the files *_optim_states.pt, which hold the weights; copy them there."
        )
    for name, value in tensors.items():
        yield name, Part(tuple(value.shape), value.dtype, partial(_same, value))


def _frozen(states: Sequence[Any], third: bool) -> Iterator[tuple[str, Part]]:
    for name, shape in (states[0].get("frozen_param_shapes") or {}).items():
        pieces = [state["frozen_param_fragments"][name] for state in states]
        pieces = pieces if third else pieces[:1]
        yield name, Part(tuple(shape), pieces[0].dtype, partial(_joined, shape, pieces))


def _flat(state: Any, zero: Sequence[Any]) -> Iterator[tuple[str, Part]]:
    """Yield parts of stages 1 and 2: a group of parameters is one vector in pieces."""
    paddings = zero[0].get("param_alignment_paddings")
    for i, shapes in enumerate(state["param_shapes"]):
        pieces = [each["single_partition_of_fp32_groups"][i] for each in zero]
        start = 0
        for j, (name, shape) in enumerate(shapes.items()):
            yield name, _part(_of_vector, shape, shape, pieces, start)
            start += math.prod(shape) + (paddings[i][j] if paddings else 0)
        _check_length(start, sum(map(len, pieces)), 2 * len(zero))


def _cut(state: Any, zero: Sequence[Any]) -> Iterator[tuple[str, Part]]:
    """Yield parts of stage 3: every parameter is cut into pieces of equal length."""
    groups = [each["fp32_flat_groups"] for each in zero]
    start = 0
    for shapes in state["param_shapes"]:
        for name, shape in shapes.items():
            length = math.ceil(math.prod(shape) / len(zero))
            yield name, _part(_of_ranks, shape, shape, groups, start, length)
            start += length
    _check_length(start, sum(map(len, groups[0])), 1)


def _check_length(used: int, length: int, padding: int) -> None:
    if math.ceil(used / padding) != math.ceil(length / padding):
        raise ValueError(f"{used} of {length}")


def _part(function: Any, shape: Any, *arguments: Any) -> Part:
    return Part(tuple(shape), torch.float32, partial(function, *arguments))


def _same(value: Tensor) -> Tensor:
    return value


def _float(value: Tensor) -> Tensor:
    return value.float()


def _joined(shape: Sequence[int], pieces: Sequence[Tensor]) -> Tensor:
    return torch.cat([p.reshape(-1) for p in pieces])[: math.prod(shape)].reshape(tuple(shape))


def _of_vector(shape: Sequence[int], pieces: Sequence[Tensor], start: int) -> Tensor:
    """Return what lies from `start` on in a vector that is cut into pieces."""
    stop, at, inside = start + math.prod(shape), 0, []
    for piece in pieces:
        inside.append(piece[max(start - at, 0) : max(stop - at, 0)])
        at += len(piece)
    return _joined(shape, inside)


def _of_ranks(
    shape: Sequence[int], groups: Sequence[Sequence[Tensor]], start: int, length: int
) -> Tensor:
    """Return a parameter of which each process has as many numbers, at the same place."""
    return _joined(shape, [_of_vector((length,), list(pieces), start) for pieces in groups])
