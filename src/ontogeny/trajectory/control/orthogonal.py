"""Orthogonal maps of the sides of a matrix, drawn for a tensor by its name and a seed.

Sides of up to `HAAR_LIMIT` are turned by a matrix drawn uniformly from all orthogonal ones (Haar
measure; Mezzadri 2007). Larger sides, vocabularies among them, are permuted with random signs,
which costs no product of matrices but mixes nothing: where a motion is large in one row, so is its
image. It is mixed by the other side, if that one is turned. Where both sides are large, nothing
would mix, so each is mixed in blocks by Hadamard matrices after its permutation.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from .hadamard import mixed_columns, mixed_rows


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
ROWS_MIXED = 32  # of a matrix with two larger sides: no more than are computed at once
_COLUMNS_MIXED = 1024

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


def is_mixed(shape: tuple[int, ...]) -> bool:
    """Return whether both sides of a tensor are too large to be turned by dense matrices.

    Examples
    --------
    >>> is_mixed((50_257, 768)), is_mixed((4096, 4096)), is_mixed((4096,))
    (False, True, False)
    """
    return (
        len(shape) > 1 and shape[0] > HAAR_LIMIT and math.prod(shape[1:]) > HAAR_LIMIT
    )


def mixed(values: Tensor) -> Tensor:
    """Return rows of a permuted matrix, mixed in blocks: its sides are too large for dense maps.

    With the permutations and signs before, it is an orthogonal map of each side. A motion that is
    large in one column, or in one row, is spread over `_COLUMNS_MIXED` columns and `ROWS_MIXED`
    rows, where a dense map spreads it over all. So a control of a wide model says how much such
    channels do as they stand in the run, and not what it would be if no channel stuck out at all.

    Parameters
    ----------
    values
        Rows, (n, m), from a multiple of `ROWS_MIXED` on.
    """
    return mixed_rows(mixed_columns(values, _COLUMNS_MIXED), ROWS_MIXED)
