"""Fits per second on a GPU, for every extractor.

    python benchmarks/extractors_gpu.py [--samples 5000] [--features 768]

Prints one line an extractor: seconds for a fit on the CPU and on the GPU, and fits per second on
the GPU. Errors must agree with the CPU's.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ontogeny import concepts

OPTIONS: dict[str, dict[str, Any]] = {"nmf": {"nonnegative": "relu"}}


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--concepts", type=int, default=100)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no GPU found")
    warnings.simplefilter("ignore")
    generator = torch.Generator().manual_seed(0)
    shape = (options.samples, options.features)
    low = torch.randn(shape[0], options.concepts, generator=generator)
    mix = torch.randn(options.concepts, shape[1], generator=generator)
    cpu = low @ mix / options.concepts**0.5 + 0.27 * torch.randn(shape, generator=generator)
    gpu = cpu.cuda()
    print(f"{'extractor':12s} {'cpu':>9s} {'gpu':>9s} {'fits/s':>8s}  errors")
    for name in concepts.names():

        def make(name: str = name) -> Any:
            return concepts.make(name, options.concepts, random_state=0, **OPTIONS.get(name, {}))

        start = time.perf_counter()
        here = make().fit(cpu)
        t_cpu = time.perf_counter() - start
        t_gpu, there = seconds(lambda make=make: make().fit(gpu))
        print(
            f"{name:12s} {t_cpu:9.3f} {t_gpu:9.3f} {1 / t_gpu:8.1f}  "
            f"{here.relative_error_:.5f}, {there.relative_error_:.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
