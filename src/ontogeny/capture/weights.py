"""Choosing weight matrices by patterns over tensor names.

A block is named by its tensor, or by tensor and part: ``h.2.attn.c_attn.weight#q`` is the query
part of a fused matrix. `weight_block` gives how to read one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..trajectory.weights import Reader
from .aliases import block_aliases, family_of_tensors
from .families import Family
from .fused import FUSED_PARTS
from .layers import match_paths


def match_blocks(reader: Reader, patterns: str | Sequence[str]) -> list[str]:
    """Return the names of the weight matrices that match: floating point, two or more dimensions.

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
    aliases, family = block_aliases(matrices), family_of_tensors(matrices)
    return match_paths(
        matrices, patterns, "blocks", "weight matrix", aliases, lambda name: _parts(family, name)
    )


def _parts(family: Family | None, name: str) -> tuple[str, ...]:
    return ("", *FUSED_PARTS) if family is not None and family.is_fused(name) else ("",)
