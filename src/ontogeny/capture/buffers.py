"""Where sampled activations lie: in memory, and in files for what memory has no room for."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError
from ..machine import free_memory
from ..scratch import scratch_array

SHARE = 0.5
"""Share of the free memory that samples may take: fits and the reference need the rest."""


def sample_buffers(
    shapes: Mapping[str, tuple[int, int]], device: torch.device
) -> dict[str, Tensor]:
    """Return a float32 tensor for the sample of each layer, with the same numbers to come.

    In the order of the layers, what goes beyond half of the free memory lies in files: the system
    writes their pages to disk and reads them again as it needs room. Samples on a GPU stay there.

    Raises
    ------
    ArgumentError
        If neither memory nor disk has room.

    Examples
    --------
    >>> sample_buffers({"mlp": (3, 2)}, torch.device("cpu"))["mlp"].shape
    torch.Size([3, 2])
    """
    free = free_memory() if device.type == "cpu" else None
    left = math.inf if free is None else SHARE * free
    found = {}
    for path, shape in shapes.items():
        size = 4 * math.prod(shape)
        if size <= left:
            found[path] = torch.empty(shape, dtype=torch.float32, device=device)
            left -= size
        else:
            found[path] = _in_a_file(path, shape, size)
    return found


def _in_a_file(path: str, shape: tuple[int, int], size: int) -> Tensor:
    try:
        return torch.from_numpy(scratch_array(shape, np.float32))
    except OSError as error:
        raise ArgumentError(
            f"the sample of {path!r} takes {size / 1e9:.3g} GB, and neither memory nor the folder "
            f"of temporary files has room for it ({error.strerror}); lower max_tokens, take fewer "
            "layers, or let TMPDIR name a folder on a larger disk."
        ) from error
