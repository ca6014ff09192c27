"""Memory and time of ranking very many snapshots, and of ranking one matrix with all its nulls.

    env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/weight_rank.py [--steps 10000]

Snapshots of 128 x 128 in float32 lie in a memory-mapped file, a random walk with weak drift. The
peak is that of anonymous memory (what the process holds itself, without pages of the file), over
what it held before, looked at every 10 ms. Processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ontogeny import geometry
from ontogeny.observables import WeightRank
from ontogeny_papers.geometry.path import variance_rank_from_gram

SHAPE = (128, 128)


def anonymous() -> int:
    """Bytes of anonymous memory of this process (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell anonymous memory")


def peak_and_seconds(function: Callable[[], object]) -> tuple[object, float, float]:
    done = threading.Event()
    start = anonymous()
    highest = [start]

    def watch() -> None:
        while not done.wait(0.01):
            highest[0] = max(highest[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.process_time()
    result = function()
    seconds = time.process_time() - begin
    done.set()
    watcher.join()
    return result, (highest[0] - start) / 1e6, seconds


def write_walk(path: Path, steps: int) -> None:
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(path, "w+", np.float32, (steps, *SHAPE))
    drift = rng.normal(size=SHAPE)
    at = rng.normal(size=SHAPE)
    for step in range(steps):
        at += 0.01 * rng.normal(size=SHAPE) + 1e-4 * drift
        file[step] = at
    file.flush()


class Block:
    """A file of snapshots as `WeightRank` reads a weight block."""

    name = "w.weight"
    masked_rows = 0
    reference_step = 0

    def __init__(self, snapshots: np.ndarray) -> None:
        self.snapshots, self.shape = snapshots, snapshots.shape[1:]
        self.steps = np.arange(len(snapshots))

    def chunks(self):
        rows = max(1, 2**23 // (len(self.snapshots) * self.shape[1]))
        for start in range(0, self.shape[0], rows):
            part = self.snapshots[:, start : start + rows]
            yield part.reshape(len(part), -1).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument(
        "--gram", action="store_true", help="also by the whole Gram matrix"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshots.npy"
        write_walk(path, options.steps)
        snapshots = np.load(path, mmap_mode="r")
        print(
            f"{options.steps} snapshots of {SHAPE}: {snapshots.nbytes / 1e6:.0f} MB in float32"
        )
        cases: dict[str, Callable[[], object]] = {
            "variance_rank": lambda: geometry.variance_rank(snapshots),
            "WeightRank, 500 of the snapshots, 200 draws": lambda: int(
                WeightRank().observe(Block(snapshots), None).variance_rank
            ),
        }
        if options.gram:
            cases["by the Gram matrix"] = lambda: variance_rank_from_gram(
                geometry.gram(snapshots)
            )
        for name, function in cases.items():
            rank, peak, seconds = peak_and_seconds(function)
            print(f"{name}: rank {rank}, peak {peak:.0f} MB, {seconds:.1f} s of CPU")


if __name__ == "__main__":
    main()
