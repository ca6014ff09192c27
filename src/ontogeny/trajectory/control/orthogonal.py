"""Random orthogonal maps of one side of a matrix.

Sides of up to `HAAR_LIMIT` are turned by a matrix drawn uniformly from all orthogonal ones (Haar
measure; Mezzadri 2007). Larger sides, vocabularies among them, are permuted with random signs,
which is orthogonal as well and costs no product of matrices.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor


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
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(text, digest_size=32).digest()))


HAAR_LIMIT = 1024
"""The largest side that is turned by a dense matrix."""

_OWN_LIMIT = 128  # up to this size each side has a draw of its own
_AT_HAND = 4  # maps that are kept as they are, for the next rows of a tensor
_CACHED = 256  # draws that a process keeps: 128 KiB each up to that size, and one for each larger


@dataclass(frozen=True, eq=False)
class Rotation:
    """A dense orthogonal matrix, (n, n) float64."""

    matrix: Tensor

    def left(self, values: Tensor) -> Tensor:
        """Return ``Q @ values``."""
        return self.matrix @ values

    def right(self, values: Tensor) -> Tensor:
        """Return ``values @ Q``."""
        return values @ self.matrix


@dataclass(frozen=True, eq=False)
class SignedPermutation:
    """Row i of the result is row ``order[i]`` times ``signs[i]``; both have shape (n,)."""

    order: Tensor
    signs: Tensor

    def left(self, values: Tensor) -> Tensor:
        """Return the rows in another order, with signs."""
        return values[self.order] * self.signs[:, None]

    def right(self, values: Tensor) -> Tensor:
        """Return the columns in another order, with signs."""
        return values[:, self.order] * self.signs


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
def signed_permutation(size: int, random_state: int, name: str, side: str) -> SignedPermutation:
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
