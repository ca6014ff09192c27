"""Numbers mixed in blocks by Hadamard matrices, which is orthogonal and costs a few products each.

The Hadamard matrix of size 2^k is the Kronecker product of smaller ones (Sylvester 1867). So a
block is mixed in steps of at most 32, which a core multiplies at the speed of its memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import torch
from torch import Tensor

_STEP = 32


def mixed_columns(values: Tensor, block: int) -> Tensor:
    """Return (n, m) `values` with the numbers of each row mixed in blocks of columns.

    Parameters
    ----------
    values
        In single or double precision.
    block
        A power of two. What is left of `m` is mixed in smaller powers of two, a last column alone
        not at all.

    Examples
    --------
    >>> mixed_columns(torch.tensor([[1.0, 0.0, 0.0, 0.0, 3.0]]), 4)
    tensor([[0.5000, 0.5000, 0.5000, 0.5000, 3.0000]])
    """
    parts = [
        _mixed(values[:, start:stop].reshape(-1, width, 1)).view(-1, stop - start)
        for start, stop, width in _spans(values.shape[1], block)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def mixed_rows(values: Tensor, block: int) -> Tensor:
    """Return (n, m) `values` with the numbers of each column mixed in blocks of rows.

    Examples
    --------
    >>> mixed_rows(torch.eye(3), 2)
    tensor([[ 0.7071,  0.7071,  0.0000],
            [ 0.7071, -0.7071,  0.0000],
            [ 0.0000,  0.0000,  1.0000]])
    """
    columns = values.shape[1]
    parts = [
        _mixed(values[start:stop].reshape(-1, width, columns)).view(-1, columns)
        for start, stop, width in _spans(len(values), block)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _spans(size: int, block: int) -> Iterator[tuple[int, int, int]]:
    """Give the parts of a side, from the widest blocks on: start, stop, width of the blocks."""
    start = 0
    while start < size:
        width = min(block, 1 << (size - start).bit_length() - 1)
        stop = size - (size - start) % width
        yield start, stop, width
        start = stop


def _mixed(values: Tensor) -> Tensor:
    """Return (blocks, width, after) `values` mixed over the width, a power of two."""
    width, after = values.shape[1:]
    scale = width**-0.5
    while width > 1:
        step = min(width, _STEP)
        matrix = _hadamard(step, values.dtype) * scale
        if after == 1:
            values = values.reshape(-1, step) @ matrix
        else:
            values = torch.matmul(matrix, values.reshape(-1, step, after))
        scale = 1.0
        after *= step
        width //= step
    return values


@functools.lru_cache(maxsize=16)
def _hadamard(size: int, dtype: torch.dtype) -> Tensor:
    matrix = torch.ones(1, 1, dtype=dtype)
    signs = torch.tensor([[1, 1], [1, -1]], dtype=dtype)
    while len(matrix) < size:
        matrix = torch.kron(signs, matrix)
    return matrix
