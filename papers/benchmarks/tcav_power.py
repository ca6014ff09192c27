"""How often tests of TCAV find planted concepts, and how often ones that are not there.

    python papers/benchmarks/tcav_power.py

Prints shares called significant at 5 %: the numbers of papers/docs/guides/tcav.md.
"""

import numpy as np

from ontogeny.concepts import CAV
from ontogeny.dynamics import permutation_test
from ontogeny_papers.concepts.concept_directions import LabelledRows, fit_direction

TEXTS, HELD, DRAWS, REPEATS = 120, 60, 99, 200
SETTINGS = ((0, 0), (0, 2), (1, 0), (1, 0.5), (1, 1), (1, 2), (3, 2))


def shares(width: int, common: float, apart: float, along: float) -> dict[str, float]:
    """Return the shares of repeats in which each statistic differs from shuffled labels."""
    rng = np.random.default_rng(0)
    hits = {"score": 0.0, "derivative": 0.0, "accuracy": 0.0}
    for repeat in range(REPEATS):
        y = np.append(rng.permutation(TEXTS) % 2, rng.permutation(HELD) % 2)
        A = rng.normal(size=(len(y), width))
        A[:, 0] += apart * (2 * y - 1) / 2
        shared = rng.normal(size=width) * common
        gradients = rng.normal(size=(HELD, width)) + shared
        gradients[:, 0] += along
        rows = LabelledRows(
            np.arange(len(y)), y == 1, np.arange(TEXTS), np.arange(TEXTS, TEXTS + HELD)
        )
        cav = CAV(solver="mean-difference")
        found = fit_direction(A, rows, cav, DRAWS, 1, random_state=repeat)
        derivative = gradients @ found.stacked()
        score, slope = (derivative > 0).mean(0), derivative.mean(0)
        p = {
            "score": permutation_test(score[0], score[2:], 0.5).p_value,
            "derivative": permutation_test(slope[0], slope[2:], 0.0).p_value,
            "accuracy": permutation_test(
                found.accuracy, found.random_accuracy, alternative="greater"
            ).p_value,
        }
        for name, value in p.items():
            hits[name] += float(value <= 0.05) / REPEATS
    return hits


if __name__ == "__main__":
    for width in (5, 32):
        for common in (0, 0.5, 2):
            for apart, along in SETTINGS:
                found = shares(width, common, apart, along)
                words = ", ".join(
                    f"{name} {share:.3f}" for name, share in found.items()
                )
                print(
                    f"width {width}, common {common}, apart {apart}, along {along}: {words}"
                )
