"""Which of several training processes writes."""

from __future__ import annotations

import os

import torch

from ..trajectory.weights.announced import announce


def is_first_process() -> bool:
    """Return whether this process writes: of those that a launcher has started only rank 0 does."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank() == 0
    # torchrun and accelerate say it before a process group is there, or where there is none.
    launched = "LOCAL_RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"
    rank = os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))
    if launched and rank != "0":
        announce(
            "rank",
            f"rank {rank} records nothing: of what a launcher started rank 0 does.",
        )
    return not launched or rank == "0"
