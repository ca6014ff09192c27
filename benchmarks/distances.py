"""Time and accuracy of the distances at 768 x 100, as ratios within one run.

    taskset -c 1 env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/distances.py

Processor time, median of several calls. The dense forms are the report's formulas written out
plainly: scipy's logm and sqrtm of the 768 x 768 Gram matrices (eps = 1e-12), and a double loop over
pairs of columns with centred (Pearson) correlations.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy import linalg
from scipy.optimize import linear_sum_assignment

from ontogeny import distances


def median_seconds(function: Callable[[], object], repeats: int) -> float:
    function()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def dense_matrix_log(W: np.ndarray, V: np.ndarray, eps: float = 1e-12) -> float:
    first, second = (linalg.logm(x @ x.T + eps * np.eye(len(x))) for x in (W, V))
    return float(np.linalg.norm(first - second))


def dense_bures(W: np.ndarray, V: np.ndarray, eps: float = 1e-12) -> float:
    first, second = (x @ x.T + eps * np.eye(len(x)) for x in (W, V))
    root = linalg.sqrtm(first)
    fidelity = np.trace(linalg.sqrtm(root @ second @ root)).real
    return float(np.sqrt(max(np.trace(first) + np.trace(second) - 2 * fidelity, 0.0)))


def looped_correlations(W: np.ndarray, V: np.ndarray) -> np.ndarray:
    table = np.zeros((W.shape[1], V.shape[1]))
    for i in range(W.shape[1]):
        for j in range(V.shape[1]):
            a = W[:, i] - W[:, i].mean()
            b = V[:, j] - V[:, j].mean()
            table[i, j] = abs(a @ b) / np.sqrt((a @ a) * (b @ b))
    return table


def looped_optimal(W: np.ndarray, V: np.ndarray) -> float:
    table = looped_correlations(W, V)
    return float(table[linear_sum_assignment(-table)].mean())


def looped_internal(W: np.ndarray) -> float:
    table = looped_correlations(W, W)
    np.fill_diagonal(table, -1e9)
    return float(table[linear_sum_assignment(-table)].mean())


def looped_weighted(W: np.ndarray, V: np.ndarray, U: np.ndarray) -> float:
    table = looped_correlations(W, V)
    weights = np.abs(U).sum(axis=0) / np.abs(U).sum()
    return float((weights * table[linear_sum_assignment(-table)]).sum())


def compare_with_one_svd(
    W: np.ndarray, U: np.ndarray, rng: np.random.Generator
) -> None:
    svd = median_seconds(lambda: np.linalg.svd(W, full_matrices=False), 15)
    print(f"one thin SVD of 768 x 100: {1e3 * svd:.2f} ms")
    for label, size in (("far (0.1 noise)", 0.1), ("near (1e-8 noise)", 1e-8)):
        V = W + size * rng.standard_normal(W.shape)
        taken = median_seconds(lambda V=V: distances.compare(W, V, U), 15)
        print(
            f"  compare, 13 measures, {label}: {1e3 * taken:.1f} ms = {taken / svd:.1f} SVDs"
        )


def against_dense_forms(W: np.ndarray, U: np.ndarray, rng: np.random.Generator) -> None:
    V = W + 0.1 * rng.standard_normal(W.shape)
    rows = [
        (
            "matrix-log",
            lambda: dense_matrix_log(W, V),
            lambda: distances.matrix_log(W, V, eps=1e-12),
        ),
        ("bures", lambda: dense_bures(W, V), lambda: distances.bures(W, V, eps=1e-12)),
        (
            "optimal",
            lambda: looped_optimal(W, V),
            lambda: distances.correlation("optimal", W, V),
        ),
        (
            "internal",
            lambda: looped_internal(W),
            lambda: distances.correlation("internal", W),
        ),
        (
            "weighted",
            lambda: looped_weighted(W, V, U),
            lambda: distances.correlation("weighted", W, V, U=U),
        ),
    ]
    print("\nmeasure      dense ms   ours ms   ratio   dense value   our value")
    for name, dense, ours in rows:
        slow = median_seconds(dense, 1)
        fast = median_seconds(ours, 15)
        print(
            f"{name:11s} {1e3 * slow:9.1f} {1e3 * fast:9.2f} {slow / fast:7.0f}"
            f"   {dense():11.6g} {ours():11.6g}"
        )


def near_zero(W: np.ndarray, rng: np.random.Generator) -> None:
    turn = np.linalg.qr(rng.standard_normal((W.shape[1],) * 2))[0]
    others = {
        "W": W,
        "W Q": W @ turn,
        "permuted": W[:, rng.permutation(W.shape[1])],
        "W + 1e-8 noise": W + 1e-8 * rng.standard_normal(W.shape),
    }
    names = ("procrustes", "matrix-log", "grassmann", "bures")
    print(
        f"\n{'against':16s}"
        + "".join(f"{name:>12s}" for name in names)
        + "   (default eps)"
    )
    for label, V in others.items():
        values = (distances.distance(name, W, V) for name in names)
        print(f"{label:16s}" + "".join(f"{value:12.3g}" for value in values))


def all_pairs(W: np.ndarray, rng: np.random.Generator, steps: int, layers: int) -> None:
    """Steps that come closer and closer, so that most pairs take the exact branch."""
    svd = median_seconds(lambda: np.linalg.svd(W, full_matrices=False), 5)
    sizes = np.logspace(0, -7, steps)[:, None, None]
    stack = np.stack(
        [W + sizes * rng.standard_normal((steps, *W.shape)) for _ in range(layers)]
    )
    U = np.abs(rng.standard_normal((layers, steps, 200, W.shape[1])))
    wall = time.perf_counter()
    processor = time.process_time()
    distances.pairwise(stack, U)
    wall = time.perf_counter() - wall
    processor = time.process_time() - processor
    pairs = layers * steps * (steps + 1) // 2
    print(
        f"\npairwise, {steps} steps x {layers} layers x 13 measures ({pairs} pairs): "
        f"{wall:.0f} s, {processor:.0f} s of processor time, "
        f"{processor / pairs / svd:.1f} thin SVDs a pair"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--layers", type=int, default=11)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    W = rng.random((768, 100))
    U = np.abs(rng.standard_normal((500, 100)))
    # Scipy's logm may say that it is not accurate, and it is not.
    warnings.simplefilter("ignore")
    compare_with_one_svd(W, U, rng)
    against_dense_forms(W, U, rng)
    near_zero(W, rng)
    all_pairs(W, rng, given.steps, given.layers)


if __name__ == "__main__":
    main()
