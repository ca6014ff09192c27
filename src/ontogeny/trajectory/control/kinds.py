"""What each kind of control makes of the motion of one tensor.

Every function returns how far the control is from the first checkpoint of the path, in the shape
of the tensor: in double precision, but in single precision for rows of one that is in half, and
where it is `BY_ONE_MOTION` also for rows of one in single precision. That errs by at most 2^-24 of
the motion (2^-22 where it is mixed), and rounding the control by 2^-24 of it.
What does not move in the source does not move in a control of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from .orthogonal import (
    HAAR_LIMIT,
    ROWS_MIXED,
    Side,
    generator,
    is_mixed,
    mixed,
    side_map,
    signed_permutation,
)
from .sources import Sources, norm

Kind: TypeAlias = Callable[[Sources, str, str, int, slice | None], Tensor]


def turned(
    sources: Sources, name: str, first: str, random_state: int, rows: slice | None
) -> Tensor:
    """Return ``Q_l (W_t - W_0) Q_r``, with orthogonal maps that stay the same over steps.

    Parameters
    ----------
    sources
        The path is the first checkpoint and the present one.
    name
        The tensor. Those of three and more dimensions are matrices of (first, all other)
        dimensions; vectors are permuted with signs.
    first
        The name that its maps are drawn for: its own, or that of the tensor it is tied to.
    random_state
        Seed of the maps.
    rows
        The rows that are wanted; only of tensors `in_blocks`, and from a multiple of
        `rows_at_once` on.
    """
    shape = sources.here.shape(name)
    if rows is None:
        motion = sources.motion(sources.at, name)
        size = len(motion) if motion.ndim else 1
        left, right = _maps(motion, size, first, random_state)
        moved = left.left(motion.reshape(size, -1))
    else:
        left = signed_permutation(shape[0], random_state, first, "left")
        motion = sources.motion(sources.at, name, left.order[rows])
        _, right = _maps(motion, shape[0], first, random_state)
        moved = motion.reshape(len(motion), -1).mul_(
            left.signs[rows, None].to(motion.dtype)
        )
    if right is not None:
        moved = right.right(moved)
    if is_mixed(shape):
        moved = mixed(moved)
    return moved.reshape(motion.shape)


def _maps(
    motion: Tensor, size: int, first: str, random_state: int
) -> tuple[Side, Side | None]:
    if motion.ndim < 2:
        return signed_permutation(size, random_state, first, "left"), None
    left = side_map(size, random_state, first, "left")
    return left, side_map(math.prod(motion.shape[1:]), random_state, first, "right")


def mirrored(
    sources: Sources, name: str, first: str, random_state: int, rows: slice | None
) -> Tensor:
    """Return a turned motion and, of the next odd seed, the same one backwards: seeds go in pairs.

    What motion gives by luck has the other sign in the second of a pair; what it harms has not.
    """
    moved = turned(sources, name, first, random_state // 2, rows)
    return moved.neg_() if random_state % 2 else moved


def walk(
    sources: Sources, name: str, first: str, random_state: int, rows: slice | None
) -> Tensor:
    """Return the sum of Gaussian increments as long as those of the source (see `turned`).

    Increment j depends on the seed, the tensor and j alone, so it is the same at every step.
    """
    here = sources.here
    shape = (*here.shape(name), 2) if here.dtype(name).is_complex else here.shape(name)
    moved = np.zeros(shape)
    for j, length in enumerate(sources.lengths(name), start=1):
        if length > 0:
            noise = generator(random_state, first, "walk", j).standard_normal(
                shape, np.float32
            )
            step = torch.from_numpy(noise).to(torch.float64)
            moved += step.numpy() * (length / norm(step))
    return torch.from_numpy(moved)


def line(
    sources: Sources, name: str, first: str, random_state: int, rows: slice | None
) -> Tensor:
    """Return the way to the last checkpoint, by the share of the length of the path until now."""
    lengths = sources.lengths(name)
    share = lengths[: sources.at].sum() / (lengths.sum() or 1.0)
    return share * sources.motion(len(sources.path) - 1, name, rows)


def shuffled(
    sources: Sources, name: str, first: str, random_state: int, rows: slice | None
) -> Tensor:
    """Return the sum of increments with the lengths of the source and directions of other steps.

    The order is the same for all tensors. Where a tensor rests, neither its length nor its
    direction takes part.
    """
    lengths = sources.lengths(name)
    moving = np.flatnonzero(lengths)
    order = [j for j in shuffled_order(len(lengths), random_state) if lengths[j] > 0]
    moved = torch.zeros_like(sources.values(sources.at, name, rows))
    for place, j in zip(moving, order, strict=True):
        if place < sources.at:
            step = sources.values(j + 1, name, rows) - sources.values(j, name, rows)
            moved += step * (lengths[place] / lengths[j])
    return moved


def shuffled_order(count: int, random_state: int) -> np.ndarray:
    """Return an order of `count` increments, (count,) int64, that is not the one they have.

    Examples
    --------
    >>> sorted(shuffled_order(4, 0).tolist())
    [0, 1, 2, 3]
    """
    rng = generator(random_state, "order")
    while (order := rng.permutation(count)).tolist() == list(range(count)):
        pass
    return order


KINDS: dict[str, Kind] = {
    "turned": turned,
    "mirrored": mirrored,
    "walk": walk,
    "line": line,
    "shuffled": shuffled,
}

# Others add several motions up, or arrive where the run does, to the last bit.
BY_ONE_MOTION = ("turned", "mirrored")


# Numbers of rows that are computed at once: half a megabyte in single precision, which a core has
# at hand without the memory.
_AT_ONCE = 1 << 17


def rows_at_once(kind: str, shape: tuple[int, ...]) -> int:
    """Return how many rows of a tensor `in_blocks` are computed at once."""
    count = max(1, _AT_ONCE // max(math.prod(shape[1:]), 1))
    if kind in BY_ONE_MOTION and is_mixed(shape):
        return math.ceil(count / ROWS_MIXED) * ROWS_MIXED
    return count


def in_blocks(kind: str, shape: tuple[int, ...]) -> bool:
    """Return whether the rows of a tensor are computed in blocks, each from few others."""
    return kind != "walk" and len(shape) > 0 and shape[0] > HAAR_LIMIT
