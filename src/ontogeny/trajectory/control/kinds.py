"""What each kind of control makes of the motion of one tensor.

Every function returns how far the control is from the first checkpoint of the path, in the shape
of the tensor: in double precision, but in single precision for rows of one that is in half, and
where it is `BY_ONE_MOTION` also for rows of one in single precision. That errs by at most 2^-24 of
the motion, and rounding the control by as much of it.
What does not move in the source does not move in a control of it.

Sides of up to `HAAR_LIMIT` are turned by a matrix drawn uniformly from all orthogonal ones (Haar
measure; Mezzadri 2007). Larger sides, vocabularies among them, are permuted with random signs,
which is orthogonal as well and costs no product of matrices.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from .sources import Sources, norm


def generator(random_state: int, *purpose: str | int) -> np.random.Generator:
    """Return a generator for one purpose, such as a tensor's name and a side of it.

    The same seed and purpose give the same numbers in every process, in any order of use.

    Examples
    --------
    >>> one, other = generator(0, "weight", 3), generator(0, "weight", 3)
    >>> one.random() == other.random()
    True
    """
    text = repr((random_state, *purpose)).encode()
    return np.random.default_rng(
        int.from_bytes(hashlib.blake2b(text, digest_size=32).digest())
    )


HAAR_LIMIT = 1024  # the largest side that is turned by a dense matrix

_OWN_LIMIT = 128  # up to this size each side has a draw of its own
_AT_HAND = 4  # maps that are kept as they are, for the next rows of a tensor
_CACHED = 256  # draws that a process keeps: 128 KiB each up to that size, and one for each larger


@dataclass(frozen=True, eq=False)
class Rotation:
    """A dense orthogonal matrix, (n, n) float64."""

    matrix: Tensor

    def left(self, values: Tensor) -> Tensor:
        """Return ``Q @ values``."""
        return self.matrix @ values.to(self.matrix.dtype)

    def right(self, values: Tensor) -> Tensor:
        """Return ``values @ Q``."""
        return values.to(self.matrix.dtype) @ self.matrix


@dataclass(frozen=True, eq=False)
class SignedPermutation:
    """Row i of the result is row ``order[i]`` times ``signs[i]``; both have shape (n,)."""

    order: Tensor
    signs: Tensor

    def left(self, values: Tensor) -> Tensor:
        """Return the rows in another order, with signs."""
        return values.index_select(0, self.order) * self.signs[:, None]

    def right(self, values: Tensor) -> Tensor:
        """Return the columns in another order, with signs."""
        # A number of a row within the cache takes PyTorch .4 ns in single and 2.1 in double
        # precision, and NumPy .75 in both.
        if values.dtype == torch.float32:
            taken = values.index_select(1, self.order)
        else:
            array = np.take(values.numpy(), self.order.numpy(), axis=1, mode="clip")
            taken = torch.from_numpy(array)
        return taken.mul_(self.signs.to(values.dtype))


Side: TypeAlias = Rotation | SignedPermutation


def rotation(size: int, random_state: int, name: str, side: str) -> Rotation:
    """Return the dense map of a side of tensor `name`, uniform over all orthogonal ones.

    Beyond `_OWN_LIMIT` the matrices of all tensors with such a side and seed come from a single
    draw, whose rows and columns are permuted and signed anew for each: that is uniform too, and
    spares a decomposition for each tensor.
    """
    if size <= _OWN_LIMIT:
        return Rotation(_haar(size, random_state, name, side))
    rows = signed_permutation(size, random_state, name, f"{side} rows")
    columns = signed_permutation(size, random_state, name, f"{side} columns")
    return Rotation(columns.right(rows.left(_haar(size, random_state))))


@functools.lru_cache(maxsize=_CACHED)
def _haar(size: int, random_state: int, *purpose: str) -> Tensor:
    from scipy.stats import ortho_group  # slow to import

    rng = generator(random_state, "orthogonal", size, *purpose)
    if size == 1:  # scipy draws from two dimensions on
        return torch.from_numpy(rng.choice([-1.0, 1.0], (1, 1)))
    return torch.from_numpy(ortho_group.rvs(size, random_state=rng))


@functools.lru_cache(maxsize=_AT_HAND)
def signed_permutation(
    size: int, random_state: int, name: str, side: str
) -> SignedPermutation:
    """Return the map of a large side, or of a vector."""
    rng = generator(random_state, name, side)
    order = torch.from_numpy(rng.permutation(size))
    return SignedPermutation(order, torch.from_numpy(rng.choice([-1.0, 1.0], size)))


@functools.lru_cache(maxsize=_AT_HAND)
def side_map(size: int, random_state: int, name: str, side: str) -> Side:
    """Return the map of a side of a matrix, by its size.

    Parameters
    ----------
    size
        Rows or columns.
    random_state, name, side
        What it is drawn from: the seed, the tensor's name, ``"left"`` or ``"right"``.

    Examples
    --------
    >>> Q = side_map(3, 0, "weight", "left").matrix
    >>> torch.allclose(Q @ Q.T, torch.eye(3, dtype=torch.float64))
    True
    >>> type(side_map(50_000, 0, "weight", "left")).__name__
    'SignedPermutation'
    """
    make = rotation if size <= HAAR_LIMIT else signed_permutation
    return make(size, random_state, name, side)


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
        The rows that are wanted; only of tensors `in_blocks`.
    """
    if rows is None:
        motion = sources.motion(sources.at, name)
        size = len(motion) if motion.ndim else 1
        left, right = _maps(motion, size, first, random_state)
        moved = left.left(motion.reshape(size, -1))
    else:
        size = sources.here.shape(name)[0]
        left = signed_permutation(size, random_state, first, "left")
        motion = sources.motion(sources.at, name, left.order[rows])
        _, right = _maps(motion, size, first, random_state)
        moved = motion.reshape(len(motion), -1).mul_(
            left.signs[rows, None].to(motion.dtype)
        )
    return (moved if right is None else right.right(moved)).reshape(motion.shape)


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


def in_blocks(kind: str, shape: tuple[int, ...]) -> bool:
    """Return whether the rows of a tensor are computed in blocks, each from few others."""
    return kind != "walk" and len(shape) > 0 and shape[0] > HAAR_LIMIT
