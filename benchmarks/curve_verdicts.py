"""How often verdicts on curves are wrong, and how often right, on curves of which all is known.

    OMP_NUM_THREADS=1 python benchmarks/curve_verdicts.py [PART ...] [--curves 100]

Parts: fits, regimes, signals, walks; default all.

Prints one line for each truth: share of curves of which the sentence is said. The curves are those
of the tests (`tests/helpers/shape_truths.py`), more of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers import shape_truths as truths
from helpers.series_examples import EARLY, LATE, planted
from ontogeny import dynamics

GRADUAL = (
    "linear",
    "log-linear",
    "growing",
    "cosine",
    "warm-up and decay",
    "linear in log step",
)
BENDS = ("smooth change of slope", "two soft bends", "two jumps", "three jumps")
SCHEDULES = (
    "one jump",
    "two jumps",
    "three jumps",
    "sine",
    "sawtooth",
    "warm restarts",
)


def share(
    said: Callable[[np.random.Generator, int], bool], count: int, seed: int = 1
) -> str:
    rng = np.random.default_rng(seed)
    return f"{np.mean([said(rng, i) for i in range(count)]):.3f}"


def fits(n: int) -> None:
    for count in (12, 24, 32):
        for noise in (0.005, 0.02, 0.05):
            for kind in truths.DECAYS:
                rates = []
                for spaced in (truths.even, truths.log_spaced):
                    steps = spaced(count)
                    rates.append(
                        share(
                            lambda rng, _, s=steps, k=kind, e=noise: (
                                dynamics.compare_fits(
                                    s, truths.decay(k, s, e, rng)
                                ).exponential
                            ),
                            n // 2,
                        )
                    )
                print("exponential", kind, count, noise, *rates, flush=True)


def regimes(n: int) -> None:
    def dated(steps: np.ndarray, values: np.ndarray, seed: int) -> bool:
        return dynamics.regimes(steps, values, random_state=seed).boundary is not None

    def gradual(kind: str, count: int, layers: int, rng: np.random.Generator) -> tuple:
        made = [truths.gradual_noise(kind, count, rng) for _ in range(layers)]
        return made[0][0], np.stack([values for _, values in made], axis=1)

    for count, steps in ((24, EARLY), (50, LATE)):
        for layers in (1, 6):
            for ratio in (6, 10):
                rate = share(
                    lambda rng, i, r=ratio, k=layers, s=steps: dated(
                        s,
                        planted(
                            "exponential",
                            "independent",
                            s,
                            k,
                            0.05,
                            rng,
                            len(s) // 2,
                            r,
                        ).T,
                        i,
                    ),
                    n,
                )
                print(
                    "boundary, true", f"{ratio} x in {layers}", count, rate, flush=True
                )
            for kind in GRADUAL:
                rate = share(
                    lambda rng, i, k=kind, c=count, m=layers: dated(
                        *gradual(k, c, m, rng), i
                    ),
                    n,
                )
                print("boundary, false:", kind, f"in {layers}", count, rate, flush=True)
        for layers in (1, 6):
            for kind in BENDS:
                for noise in (0.01, 0.003):
                    rate = share(
                        lambda rng, i, k=kind, e=noise, s=steps, m=layers: dated(
                            s,
                            np.stack(
                                [truths.bends(k, len(s), rng, e)[1] for _ in range(m)],
                                1,
                            ),
                            i,
                        ),
                        n,
                    )
                    print(
                        "boundary, false:",
                        kind,
                        noise,
                        f"in {layers}",
                        count,
                        rate,
                        flush=True,
                    )


def signals(n: int) -> None:
    def related(
        kind: str, count: int, rng: np.random.Generator, i: int, **given: float
    ) -> bool:
        steps, x, y = truths.scheduled_pair(kind, count, rng, **given)
        found = dynamics.compare_signals(x, y, steps, n_draws=199, random_state=i)
        return bool(found.pearson_p <= 0.05)

    for count in (24, 50):
        for r in (0.0, 0.5, 0.7, 0.9):
            rate = share(
                lambda rng, i, c=count, r=r: related("none", c, rng, i, r=r), n
            )
            print("related, noise correlates", r, count, rate, flush=True)
        for kind in SCHEDULES:
            for noise in (0.05, 0.02, 0.005):
                rate = share(
                    lambda rng, i, k=kind, c=count, e=noise: related(
                        k, c, rng, i, noise=e
                    ),
                    n,
                )
                print("related, false:", kind, noise, count, rate, flush=True)


def sentences(
    steps: np.ndarray, y: np.ndarray, other: np.ndarray, last: int | None
) -> dict:
    """Return which sentences are said of a curve, beside another one."""
    seen = dynamics.learning_progress(steps, y, 0.1 * np.std(y), reference_index=last)
    mapped = dynamics.recurrence(y, steps, reference_index=last)
    found = dynamics.regimes(steps, y, reference_index=last)
    both = dynamics.compare_signals(y, other, steps, n_draws=199, reference_index=last)
    return {
        "exponential": dynamics.compare_fits(
            steps, y, reference_index=last
        ).exponential,
        "approach": seen.progressed,
        "quiet": seen.converged,
        "fixed point": np.isfinite(mapped.fixed_point),
        "map no line": mapped.linear_p < 0.05,
        "boundary": found.boundary is not None,
        "related": both.pearson_p <= 0.05,
    }


def walks(n: int) -> None:
    for kind in truths.WALKS:
        for count in (12, 24, 50):
            last = count - 1 if "last" in kind else None
            rng = np.random.default_rng(1)
            pairs = [
                [truths.walk(kind, count, rng) for _ in range(2)] for _ in range(n)
            ]
            said = [sentences(truths.even(count), x, y, last) for x, y in pairs]
            rates = {name: np.mean([each[name] for each in said]) for name in said[0]}
            words = ", ".join(f"{name} {rate:.3f}" for name, rate in rates.items())
            print("walk:", kind, count, words, flush=True)


PARTS: dict[str, Callable[[int], None]] = {
    "fits": fits,
    "regimes": regimes,
    "signals": signals,
    "walks": walks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default all")
    parser.add_argument("--curves", type=int, default=100)
    options = parser.parse_args()
    for name in options.parts or PARTS:
        PARTS[name](options.curves)


if __name__ == "__main__":
    main()
