"""Error of convex NMF against processor time, for its two rules, on one core.

    OMP_NUM_THREADS=1 python benchmarks/convex_nmf.py [FILE.npy ...] [--rules RULE ...]

Both rules start from the same clusters, whose time is not counted; r = 100, float32. A row says how
far a rule is after 1, 3, 10 and 30 processor seconds: the relative error before the codes are
solved exactly. The matrices are the synthetic one of ``extractors.py``, one with the traits of a
sentence encoder's states, and activations in files, as ``extractors_data.py`` and
``sentence_states.py`` write them. Rules that are gone are measured with an older copy of the
package on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from extractors import R, synthetic
from threadpoolctl import threadpool_limits
from torch import Tensor

from ontogeny.concepts import convex

MARKS = (1, 3, 10, 30)
RULES = {"accelerated": convex._accelerated, "multiplicative": convex._multiplicative}


def encoder_like(n: int = 5000, m: int = 384) -> np.ndarray:
    """5,000 x 384: a fifth of the squares in the mean, heavy tails, a spectrum that decays."""
    rng = np.random.default_rng(0)
    turn = (
        np.linalg.qr(rng.standard_normal((m, m)))[0]
        * np.arange(1, m + 1)[:, None] ** -0.35
    )
    A = rng.laplace(size=(n, m)) @ turn
    A *= np.sqrt(0.8 / np.mean(A**2))
    return (A + np.sqrt(0.2) * rng.choice([-1.0, 1.0], m)).astype(np.float32)


def errors(rule: str, A: Tensor, start: Tensor, seconds: float) -> str:
    """Return the columns of a table: the error at each mark, and the number of iterations."""
    options = convex.ConvexNMF(len(start), variant=rule)
    norm2 = float(A.double().square().sum())
    steps = RULES[rule](A, A, start.clone(), options)
    begin = time.process_time()
    last = float("nan")
    found = []
    count = 0
    for mark in (mark for mark in MARKS if mark <= seconds):
        now = last
        while time.process_time() - begin < mark:
            last = now
            now = (2 * float(next(steps)[2]) / norm2) ** 0.5
            count += 1
        # What was finished when the time was up, or the first iteration if that took longer.
        found.append(f"{now if count == 1 else last:.4f} ({max(count - 1, 1)})")
        last = now
    return " | ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--seconds", type=float, default=MARKS[-1])
    parser.add_argument("--only-files", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    matrices = {path.stem: np.load(path).astype(np.float32) for path in chosen.files}
    if not chosen.only_files:
        matrices |= {"encoder-like": encoder_like(), "synthetic": synthetic()}
    with threadpool_limits(1):
        for name, A in matrices.items():
            A = torch.from_numpy(
                A / np.sqrt(np.mean(A**2, dtype=np.float64)).astype(np.float32)
            )
            start = convex._start(A, R, 0, None)
            for rule in chosen.rules:
                row = errors(rule, A, start, chosen.seconds)
                print(f"| {name} | {rule} | {row} |", flush=True)


if __name__ == "__main__":
    main()
