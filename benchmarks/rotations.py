"""The orthogonal factor of the product of two sets of activations, four ways.

    OMP_NUM_THREADS=1 python benchmarks/rotations.py [FEATURES ...] [--condition K]

Processor seconds of one factor from the m x m product, how far its columns are from orthonormal,
and how far the directions of activations (unit columns of A^T x, at random) are from the SVD's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ontogeny.distances.features import by_inverses

SAMPLES = 5000


def activations(m: int, condition: float) -> tuple[Tensor, Tensor]:
    """Two related sets (n, m) whose product has about this condition number."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    falling = torch.logspace(0, -np.log10(condition) / 2, m, dtype=torch.float64)
    codes = draw(SAMPLES, m)
    moved = (codes + 0.3 * draw(SAMPLES, m)) * falling
    return (codes * falling) @ torch.linalg.qr(draw(m, m)).Q, moved @ torch.linalg.qr(
        draw(m, m)
    ).Q


def by_svd(M: Tensor) -> Tensor:
    left, _, right = torch.linalg.svd(M)
    return left @ right


def by_numpy(M: Tensor) -> Tensor:
    left, _, right = np.linalg.svd(M.numpy())
    return torch.from_numpy(left @ right)


def by_eigenvectors(M: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(M.mT @ M)
    Q = M @ (vectors / values.clamp(min=values[-1] * 1e-30).sqrt()) @ vectors.mT
    return 1.5 * Q - 0.5 * Q @ (Q.mT @ Q)  # one Newton-Schulz step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=int, nargs="*", default=[512, 1024, 2048])
    parser.add_argument("--condition", type=float, default=1e6)
    chosen = parser.parse_args()
    ways: dict[str, Callable[[Tensor], Tensor | None]] = {
        "SVD (PyTorch)": by_svd,
        "SVD (NumPy)": by_numpy,
        "eigenvectors": by_eigenvectors,
        "Newton": by_inverses,
    }
    for m in chosen.features:
        A, B = activations(m, chosen.condition)
        M = A.mT @ B
        directions = torch.nn.functional.normalize(A[:50].mT, dim=0)
        expected = None
        for name, way in ways.items():
            start = time.process_time()
            Q = way(M)
            seconds = time.process_time() - start
            if Q is None:
                print(
                    f"{m:5d} {name:14s} {seconds:6.2f} s, not exact: the SVD is taken"
                )
                continue
            expected = Q.mT @ directions if expected is None else expected
            apart = (Q.mT @ directions - expected).norm(dim=0).max()
            skew = (Q.mT @ Q - torch.eye(m, dtype=Q.dtype)).norm()
            print(
                f"{m:5d} {name:14s} {seconds:6.2f} s, orthonormal to {float(skew):.0e}, "
                f"directions apart {float(apart):.0e}"
            )


if __name__ == "__main__":
    main()
