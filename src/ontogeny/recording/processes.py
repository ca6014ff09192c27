"""Which of several training processes writes."""

from __future__ import annotations

import torch


def is_first_process() -> bool:
    """Return whether this process writes: under torch.distributed only rank 0 does."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return True
    return distributed.get_rank() == 0
