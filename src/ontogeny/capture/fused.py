"""Query, key and value of a fused projection, as activations and as weight rows."""

from __future__ import annotations

import torch

from ..errors import ArgumentError

FUSED_PARTS = ("q", "k", "v")


def part_index(part: str, width: int, heads: int | None) -> torch.Tensor:
    """Return where query, key or value lies among the `width` outputs of a fused projection.

    Parameters
    ----------
    part
        ``"q"``, ``"k"`` or ``"v"``.
    width
        Outputs of the fused projection: three times those of one part.
    heads
        None if the three lie one after the other (GPT-2, ModernBERT); the number of heads if they
        lie side by side within each head (GPT-NeoX).

    Returns
    -------
    torch.Tensor
        (width / 3,) int64, increasing.

    Raises
    ------
    ArgumentError
        If `width` does not split that way.

    Examples
    --------
    >>> part_index("k", 12, None).tolist(), part_index("k", 12, 2).tolist()
    ([4, 5, 6, 7], [2, 3, 8, 9])
    """
    groups = 3 * (heads or 1)
    if width % groups:
        split = "query, key and value" + (f" of {heads} heads" if heads else "")
        raise ArgumentError(f"a fused projection of width {width} does not split into {split}.")
    return torch.arange(width).reshape(heads or 1, 3, -1)[:, FUSED_PARTS.index(part)].flatten()
