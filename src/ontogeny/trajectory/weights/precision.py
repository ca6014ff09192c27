"""Which floating-point dtype holds weights without loss."""

from __future__ import annotations

import functools

import torch

from .files import Reader


def widest(reader: Reader) -> torch.dtype:
    """Return the dtype that holds every stored floating-point tensor without loss.

    config.json is not asked: it names the dtype of the first parameter only. Rotary frequencies,
    which older releases stored in float32 beside weights of half precision, do not count: models
    compute them.
    """
    names = (
        name for name in reader.names() if not name.endswith("rotary_emb.inv_freq")
    )
    floating = {dtype for dtype in map(reader.dtype, names) if dtype.is_floating_point}
    return promoted(*floating) if floating else torch.float32


def promoted(*dtypes: torch.dtype) -> torch.dtype:
    """Return the dtype that holds all of these without loss; float8 beside others is bfloat16.

    Examples
    --------
    >>> (
    ...     promoted(torch.float8_e4m3fn, torch.float32),
    ...     promoted(torch.float16, torch.bfloat16),
    ... )
    (torch.float32, torch.float32)
    """
    if len(set(dtypes)) > 1:  # PyTorch has no common one of eight bits and others
        dtypes = tuple(
            torch.bfloat16 if d.is_floating_point and d.itemsize == 1 else d
            for d in dtypes
        )
    return functools.reduce(torch.promote_types, dtypes)
