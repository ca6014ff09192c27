"""What one large matrix of a control run costs for each parameter, beside a copy of it.

    OMP_NUM_THREADS=1 python benchmarks/control_matrices.py [WIDTH]

Processor time, the least of eight readings. The weights of a control of N parameters take N times
the number of its kind; below a width of 1,024 sides are turned by dense matrices, which take more.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ontogeny import Trajectory
from ontogeny.trajectory import Checkpoint

KINDS = ("turned", "mirrored", "line")


def main(width: int) -> None:
    print("ns a parameter", *KINDS, "copy", sep=" | ")
    for dtype in (torch.bfloat16, torch.float32):
        first = torch.randn(width, width).to(dtype)
        last = first + (0.1 * torch.randn(width, width)).to(dtype)
        run = Trajectory.from_models({0: {"w": first}, 1: {"w": last}})
        makers: list[Callable[[], object]] = [
            partial(read, run.control(kind, random_state=0)[1]) for kind in KINDS
        ]
        makers.append(partial(torch.empty_like(first).copy_, first))
        times = [1e9 * least(make) / first.numel() for make in makers]
        print(dtype, *(f"{t:.2f}" for t in times), sep=" | ")


def read(checkpoint: Checkpoint) -> Tensor:
    with checkpoint.open() as reader:
        return reader.get("w")


def least(function: Callable[[], object], repeats: int = 8) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
