"""Weight blocks: a matrix or a part of a fused one, without rows that are no tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, LayerMatchError
from ..trajectory.weights.files import Reader
from .aliases import block_aliases, family_of_tensors
from .families import Family
from .layers import match_paths
from .sites import FUSED_PARTS, part_index, split_label


@dataclass(frozen=True, eq=False)
class WeightBlock:
    """How to read one weight block, the same for every checkpoint of a trajectory.

    Parameters
    ----------
    name
        The block: a tensor's name, or tensor and part (``"h.0.attn.c_attn.weight#q"``).
    tensor
        The tensor that holds it.
    shape
        Shape of the block, in the orientation that the tensor is stored in.
    masked_rows
        How many rows of the tensor are left out because they belong to no token.
    runs
        Where the block's rows lie in the tensor, as (first, last plus one); runs follow each other.
    columns
        Which columns belong to the block; None takes all.
    """

    name: str
    tensor: str
    shape: tuple[int, ...]
    masked_rows: int
    runs: tuple[tuple[int, int], ...]
    columns: tuple[int, int] | None = None

    def rows(self, reader: Reader, start: int, stop: int) -> Tensor:
        """Return rows `start` to `stop` of the block from an opened checkpoint.

        Only these rows are read. Bounds are those of the block, not of the tensor.
        """
        pieces = []
        passed = 0
        for first, last in self.runs:
            low = max(start - passed, 0)
            high = min(stop - passed, last - first)
            if low < high:
                pieces.append(reader.rows(self.tensor, first + low, first + high))
            passed += last - first
        rows = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        return rows if self.columns is None else rows[:, slice(*self.columns)]


def weight_block(
    reader: Reader,
    name: str,
    configuration: Mapping[str, Any] | None = None,
    tokens: int | None = None,
) -> WeightBlock:
    """Return how to read a block that `match_blocks` named.

    Parameters
    ----------
    reader
        An opened checkpoint; any of the trajectory, since all have the same shapes.
    name
        The block's name.
    configuration
        The model's (`Checkpoint.configuration`); needed for the number of heads of a part that lies
        interleaved (GPT-NeoX).
    tokens
        Number of ids of the tokenizer, added and unused ones included. Rows of
        embedding and vocabulary map beyond it are padding, are left out and counted; None keeps
        all.

    Raises
    ------
    LayerMatchError
        If the block is no part of its tensor.
    ArgumentError
        If `tokens` is not positive, or the number of heads is needed and unknown.

    Examples
    --------
    >>> from ontogeny import Trajectory
    >>> from transformers import GPT2Config, GPT2Model
    >>> model = GPT2Model(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    >>> with Trajectory.from_models({0: model})[0].open() as reader:
    ...     query = weight_block(reader, "h.0.attn.c_attn.weight#q")
    ...     embed = weight_block(reader, "wte.weight", tokens=7)
    ...     embed.rows(reader, 2, 7).shape
    torch.Size([5, 4])
    >>> query.shape, embed.shape, embed.masked_rows
    ((4, 4), (7, 4), 2)
    """
    if tokens is not None and (isinstance(tokens, bool) or tokens < 1):
        raise ArgumentError(
            f"tokens must be a positive number of tokens or None; got {tokens!r}."
        )
    tensor, part = split_label(name)
    shape = tuple(reader.shape(tensor))
    family = family_of_tensors(tuple(reader.names()))
    if part:
        if family is None or part not in FUSED_PARTS or not family.is_fused(tensor):
            raise LayerMatchError(f"{tensor!r} has no part {part!r}.")
        return _part(name, shape, family, configuration)
    rows = shape[0]
    if tokens is not None and family is not None and family.is_vocabulary(tensor):
        rows = min(rows, tokens)
    return WeightBlock(name, tensor, (rows, *shape[1:]), shape[0] - rows, ((0, rows),))


def _part(
    name: str,
    shape: tuple[int, ...],
    family: Family,
    configuration: Mapping[str, Any] | None,
) -> WeightBlock:
    tensor, part = split_label(name)
    heads = _heads(name, configuration) if family.interleaved else None
    # Models with GPT-2's names and linear layers, such as nanoGPT's, store (out, in).
    axis = 0 if shape[0] == 3 * shape[-1] else family.fused_axis
    index = part_index(part, shape[axis], heads).numpy()
    if axis == 1:
        columns = int(index[0]), int(index[-1]) + 1
        return WeightBlock(
            name, tensor, (shape[0], len(index)), 0, ((0, shape[0]),), columns
        )
    breaks = np.flatnonzero(np.diff(index) > 1) + 1
    runs = tuple((int(run[0]), int(run[-1]) + 1) for run in np.split(index, breaks))
    return WeightBlock(name, tensor, (len(index), *shape[1:]), 0, runs)


def _heads(name: str, configuration: Mapping[str, Any] | None) -> int:
    heads = (configuration or {}).get("num_attention_heads")
    if not isinstance(heads, int):
        raise ArgumentError(
            f"{name!r} lies interleaved by heads; configuration must give num_attention_heads, "
            f"got {heads!r}."
        )
    return heads


def match_blocks(reader: Reader, patterns: str | Sequence[str]) -> list[str]:
    """Return the names of the weight matrices that match: floating point, two or more dimensions.

    Layer 2 comes before layer 10, as in the model.

    Parameters
    ----------
    reader
        An opened checkpoint.
    patterns
        The patterns of :mod:`ontogeny.capture.layers` over tensor names; ``"*.weight"`` matches
        every ``weight``, however deep. In families known by these names, ``attn``, ``mlp``,
        ``q``, ``k``, ``v``, ``o``, ``embed``, ``unembed`` and ``layers[2].mlp`` are short names.

    Raises
    ------
    LayerMatchError
        If a pattern matches no weight matrix.

    Examples
    --------
    >>> from ontogeny import Trajectory
    >>> from transformers import GPT2Config, GPT2Model
    >>> model = GPT2Model(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    >>> with Trajectory.from_models({0: model})[0].open() as reader:
    ...     match_blocks(reader, "layers[-1].q"), match_blocks(reader, "embed")
    (['h.1.attn.c_attn.weight#q'], ['wte.weight'])
    """
    matrices = [
        name
        for name in reader.names()
        if len(reader.shape(name)) >= 2 and reader.dtype(name).is_floating_point
    ]
    # Files give names in the order of characters: 0, 1, 10, 2.
    if matrices == sorted(matrices):
        matrices.sort(
            key=lambda n: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", n)]
        )
    aliases = block_aliases(matrices)
    family = family_of_tensors(tuple(matrices))
    return match_paths(
        matrices,
        patterns,
        "blocks",
        "weight matrix",
        aliases,
        lambda name: _parts(family, name),
    )


def _parts(family: Family | None, name: str) -> tuple[str, ...]:
    return ("", *FUSED_PARTS) if family is not None and family.is_fused(name) else ("",)


def kind_of_block(name: str) -> str:
    """Return what kind of matrix a block is, whatever its layer.

    Examples
    --------
    >>> (
    ...     kind_of_block("layers.0.q_proj.weight"),
    ...     kind_of_block("h.3.attn.c_attn.weight#q"),
    ... )
    ('q_proj', 'c_attn#q')
    >>> kind_of_block(
    ...     "encoder.layer.0.attention.output.dense.weight"
    ... )  # "dense" says too little
    'attention.output.dense'
    """
    path, _, part = name.partition("#")
    parts = [p for p in path.split(".") if not p.isdigit()]
    kind = parts[-2] if len(parts) > 1 else parts[-1]
    if kind == "dense":
        kind = re.sub(r".*\.\d+\.", "", path).rpartition(".")[0]
    return f"{kind}#{part}" if part else kind
