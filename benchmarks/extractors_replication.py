"""How many concepts of each extractor another fit to the same activations finds again.

    env OMP_NUM_THREADS=1 python benchmarks/extractors_replication.py ACTIVATIONS.npz [--concepts N]

The file holds activations ``A`` (n, m) of one layer, and ``text`` (n,), which text each comes from.
Prints shares of codes that correlate by 0.9, whatever the sign: with noise of 1e-6 on the
activations, which is what another processor changes; and those that a study shows beside its noise
floor: in the other floating-point precision, with three other seeds, with the tokens in another
order, and of two halves of the texts. Then the median correlation of each code with the nearest one
of the same fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch

from ontogeny import concepts
from ontogeny.features.concepts.noise import replication, shares
from ontogeny.units import Units

CHANGES = ("rounding", "seed", "order of tokens", "half of texts")
OPTIONS = {"nmf": {"nonnegative": "split"}}


def row(extractor: str, A: torch.Tensor, units: Units, r: int) -> str:
    """Return what is found again, as one line of a table."""

    def fit(B, seed=0):
        made = concepts.make(extractor, r, seed, **OPTIONS.get(extractor, {}))
        return made.fit_transform(B), made.transform

    begin = time.perf_counter()
    codes = fit(A)[0]
    others = {f"seed {seed}": fit(A, seed)[0] for seed in (1, 2, 3)}
    others["float64"] = fit(A.double())[0]
    noisy = A * (
        1 + 1e-6 * torch.randn(A.shape, generator=torch.Generator().manual_seed(0))
    )
    found = replication(A, codes, others, fit, units, 0)
    again = [
        shares(codes, fit(noisy)[0])[0],
        *found["found_again"].sel(change=list(CHANGES)),
    ]
    cells = [f"{float(value):.2f}" for value in again]
    cells += [
        f"{float(found['code_likeness']):.2f}",
        f"{time.perf_counter() - begin:.0f} s",
    ]
    return " | ".join([f"{extractor:12}", *cells])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("activations")
    parser.add_argument("--concepts", type=int, default=100)
    parser.add_argument("--extractors", nargs="*", default=concepts.names())
    arguments = parser.parse_args()
    with np.load(arguments.activations) as file:
        A = torch.from_numpy(file["A"]).float()
        units = Units(file["text"])
    print(f"{tuple(A.shape)}, {units.count} texts, r = {arguments.concepts}")
    print(
        "extractor    | noise |",
        " | ".join(CHANGES),
        "| nearest code of the same fit | time",
    )
    for extractor in arguments.extractors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(row(extractor, A, units, arguments.concepts), flush=True)


if __name__ == "__main__":
    main()
