"""How the ten extractors grow with samples n, features m and concepts r, on one core.

    OMP_NUM_THREADS=1 python benchmarks/extractors_growth.py [EXTRACTOR ...] [--full]

For each extractor at default settings (NMF on the positive part): processor seconds and the memory
that a fit takes beside its activations, at a few sizes of which one is changed at a time. A power
law ``c n^a m^b r^d`` is fitted to the times and extrapolated to 20,000 x 4,096 and r = 100, which
`--full` measures as well. The activations are float32: r Laplace sources, mixed, and noise. Each
fit is made in a process of its own, so that its peak is that of the fit (VmHWM, Linux).
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ontogeny import concepts

BASE = (5_000, 1_024, 100)
SIZES = [
    BASE,
    *((n, *BASE[1:]) for n in (2_500, 10_000)),
    *((BASE[0], m, BASE[2]) for m in (512, 2_048, 4_096)),
    *((*BASE[:2], r) for r in (50, 200)),
]
FULL = (20_000, 4_096, 100)
OPTIONS = {"nmf": {"nonnegative": "relu"}}


@dataclass(frozen=True)
class Fit:
    """What one fit took: processor seconds, bytes beside the activations, and iterations."""

    seconds: float
    peak: int
    foreseen: int
    iterations: int


def activations(n: int, m: int, r: int) -> np.ndarray:
    """Return r mixed Laplace sources and noise, (n, m) in float32."""
    rng = np.random.default_rng(0)
    found = rng.laplace(size=(n, r)).astype(np.float32) @ (
        rng.standard_normal((r, m), dtype=np.float32) / np.float32(r**0.5)
    )
    for rows in np.array_split(found, max(1, n // 1000)):
        rows += 0.27 * rng.standard_normal(rows.shape, dtype=np.float32)
    return found


def memory(entry: str) -> int:
    """Return an entry of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(entry))


def measure(name: str, size: tuple[int, int, int]) -> Fit:
    """Fit once in this process."""
    # Loads libraries.
    concepts.make(name, 5, **OPTIONS.get(name, {})).fit(activations(200, 20, 5))
    A = activations(*size)
    made = concepts.make(name, size[2], **OPTIONS.get(name, {}))
    foreseen = made.memory_needed(*A.shape, itemsize=A.itemsize)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    begin = time.process_time()
    made.fit(A)
    seconds = time.process_time() - begin
    return Fit(seconds, memory("VmHWM") - before, foreseen, made.n_iter_)


def power_law(sizes: list[tuple[int, int, int]], values: list[float]) -> np.ndarray:
    """Return log c and the exponents of n, m and r by least squares of the logarithms."""
    X = np.column_stack([np.ones(len(sizes)), np.log(sizes)])
    return np.linalg.lstsq(X, np.log(values), rcond=None)[0]


def table(name: str, full: bool) -> None:
    """Print the table of one extractor, and what its growth says of the full size."""
    print(
        f"\n### {name}\n\n| n | m | r | seconds | memory, MB | at least, MB | iterations |"
    )
    print("| --- |" + " --- |" * 6)
    context = multiprocessing.get_context("fork")
    found = []
    for size in [*SIZES, *[FULL] * full]:
        with context.Pool(1) as pool:  # of one task: what was freed is not taken again
            fit = pool.apply(measure, (name, size))
        found.append(fit)
        numbers = (
            *(f"{k:,}" for k in size),
            f"{fit.seconds:.1f}",
            f"{fit.peak / 1e6:.0f}",
            f"{fit.foreseen / 1e6:.0f}",
            fit.iterations,
        )
        print("| " + " | ".join(map(str, numbers)) + " |", flush=True)
    law = power_law(SIZES, [fit.seconds for fit in found[: len(SIZES)]])
    foreseen = np.exp(law @ [1, *np.log(FULL)])
    print(
        f"\nseconds ~ n^{law[1]:.2f} m^{law[2]:.2f} r^{law[3]:.2f}; {foreseen:.0f} s at "
        f"{FULL[0]:,} x {FULL[1]:,}, r = {FULL[2]}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extractors", nargs="*", default=concepts.names())
    parser.add_argument("--full", action="store_true", help="measure the full size too")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in chosen.extractors:
        table(name, chosen.full)


if __name__ == "__main__":
    main()
