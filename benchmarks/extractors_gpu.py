"""Fits per second on a GPU: every extractor, one layer and eleven layers at once.

    python benchmarks/extractors_gpu.py [--layers 11] [--samples 5000] [--features 768]

Prints one line an extractor: seconds for a CPU fit of one layer, for a GPU fit of one layer and of
all layers in one call, and the fits per second of the latter. Errors must agree with the CPU's.
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
    parser.add_argument("--layers", type=int, default=11)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--concepts", type=int, default=100)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no GPU found")
    warnings.simplefilter("ignore")
    generator = torch.Generator().manual_seed(0)
    shape = (options.layers, options.samples, options.features)
    low = torch.randn(*shape[:2], options.concepts, generator=generator)
    mix = torch.randn(shape[0], options.concepts, shape[2], generator=generator)
    cpu = low @ mix / options.concepts**0.5 + 0.27 * torch.randn(shape, generator=generator)
    gpu = cpu.cuda()
    print(
        f"{'extractor':12s} {'cpu, 1':>9s} {'gpu, 1':>9s} {'gpu, all':>9s} {'fits/s':>8s}  errors"
    )
    for name in concepts.names():

        def make(name: str = name) -> Any:
            return concepts.make(name, options.concepts, random_state=0, **OPTIONS.get(name, {}))

        start = time.perf_counter()
        here = make().fit(cpu[0])
        t_cpu = time.perf_counter() - start
        t_one, there = seconds(lambda make=make: make().fit(gpu[0]))
        t_all, (fits, _) = seconds(lambda make=make: concepts.fit_stack(make(), gpu, together=True))
        errors = [here.relative_error_, there.relative_error_, fits[0].relative_error_]
        print(
            f"{name:12s} {t_cpu:9.3f} {t_one:9.3f} {t_all:9.3f} {options.layers / t_all:8.1f}  "
            + ", ".join(f"{e:.5f}" for e in errors),
            flush=True,
        )


if __name__ == "__main__":
    main()
