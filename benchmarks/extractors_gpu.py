"""Seconds for a fit on a device, for every extractor, with its error against float64 on the CPU.

    python benchmarks/extractors_gpu.py [--device cuda] [--samples 5000] [--features 768]

After one fit to warm up, the median and the range of several are printed. Exits with 1 if the
relative error of a fit is off that of the CPU's in float64 by more than its tolerance, or if two
fits of a device differ in a bit.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import torch

from ontogeny import concepts

OPTIONS: dict[str, dict[str, Any]] = {"nmf": {"nonnegative": "relu"}}
TOLERANCE = 0.005  # of the relative error
# Clusters start from other draws than scikit-learn's, so that they end in other optima.
OWN_START = {"kmeans": 0.02, "convex-nmf": 0.02}


def activations(samples: int, features: int, rank: int) -> torch.Tensor:
    """Return a product of rank `rank` with noise, in float32 on the CPU."""
    generator = torch.Generator().manual_seed(0)
    low = torch.randn(samples, rank, generator=generator)
    mix = torch.randn(rank, features, generator=generator)
    noise = torch.randn(samples, features, generator=generator)
    return low @ mix / rank**0.5 + 0.27 * noise


def timed(name: str, r: int, A: torch.Tensor) -> tuple[float, Any]:
    """Return seconds and the fitted extractor; the device has finished when the clock stops."""
    start = time.perf_counter()
    fitted = concepts.make(name, r, random_state=0, **OPTIONS.get(name, {})).fit(A)
    fitted.components_.sum().item()  # waits for the device, whichever it is
    return time.perf_counter() - start, fitted


def compare(name: str, r: int, A: torch.Tensor, device: str, repeats: int) -> bool:
    """Print the line of one extractor; return whether it is within its tolerance."""
    slow, reference = timed(name, r, A.double())
    there = A.to(device)
    timed(name, r, there)
    fits = [timed(name, r, there) for _ in range(repeats)]
    seconds = sorted(each for each, _ in fits)
    same = all(torch.equal(fits[0][1].components_, fit.components_) for _, fit in fits)
    off = abs(fits[0][1].relative_error_ - reference.relative_error_)
    sound = same and off <= OWN_START.get(name, TOLERANCE)
    print(
        f"{name:12s} {slow:9.3f} {statistics.median(seconds):9.3f} "
        f"{seconds[0]:9.3f} {seconds[-1]:9.3f} {off:9.1e}  "
        f"{'ok' if sound else 'off' if same else 'not repeatable'}",
        flush=True,
    )
    return sound


def main(arguments: list[str] | None = None) -> int:
    """Compare the extractors and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--concepts", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--extractors", nargs="+", default=list(concepts.names()))
    options = parser.parse_args(arguments)
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit(
            "no GPU found; --device cpu compares float32 with float64 on the CPU"
        )
    warnings.simplefilter("ignore")
    A = activations(options.samples, options.features, options.concepts)
    columns = ("cpu f64", "median", "least", "most", "error off")
    print(f"{'extractor':12s} " + " ".join(f"{each:>9s}" for each in columns))
    sound = [
        compare(name, options.concepts, A, options.device, options.repeats)
        for name in options.extractors
    ]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    raise SystemExit(main())
