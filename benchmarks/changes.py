"""Error rates, power and coverage of `development`, for the tables of the guide to error rates.

    OMP_NUM_THREADS=1 python benchmarks/changes.py [memory] [power] [coverage] [--families 40]

`memory`: share of families of 24 curves with a changed one, by the trend test alone, where all is
stationary noise with memory. `power`: share of real developments that are found in such a family.
`coverage`: share of half-change intervals that hold the step at which the continuous curve crosses
half of its change.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from ontogeny.dynamics import development, holm, trend_test
from ontogeny.dynamics.half_change import half_change_interval

ROWS, LAST = 24, 10_000
PHI = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95)
COUNTS = (12, 24, 32)
SPACINGS = ("even", "log")
Curve = Callable[[np.ndarray], np.ndarray]


def steps_of(spacing: str, count: int) -> np.ndarray:
    """Return `count` steps from 0 to LAST."""
    if spacing == "even":
        return np.linspace(0, LAST, count).round()
    steps = [0.0]
    for left in range(count - 1, 0, -1):  # geometric where it can be, one by one at the start
        ratio = (LAST / max(steps[-1], 0.5)) ** (1 / left)
        steps.append(max(steps[-1] + 1, round(max(steps[-1], 0.5) * ratio)))
    return np.array(steps)


def jitter(rng: np.random.Generator, shape: tuple[int, ...], phi: float) -> np.ndarray:
    """Return stationary autoregressive noise (rows, steps, ...) of variance 1."""
    found = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        found[:, t] = phi * found[:, t - 1] + np.sqrt(1 - phi**2) * found[:, t]
    return found


def values_of(rng: np.random.Generator, rows: int, count: int, phi: float) -> np.ndarray:
    return jitter(rng, (rows, count), phi)


def distances(
    reference: int, dimensions: int = 200, fresh: float = 0.0
) -> Callable[[np.random.Generator, int, int, float], np.ndarray]:
    """Return a function that gives distances (rows, steps) of jittering vectors to one of them."""

    def made(rng: np.random.Generator, rows: int, count: int, phi: float) -> np.ndarray:
        found = []
        for _ in range(rows // ROWS):
            points = jitter(rng, (ROWS, count, dimensions), phi)
            points += fresh * rng.standard_normal(points.shape)
            found.append(np.linalg.norm(points - points[:, [reference]], axis=2))
        return np.concatenate(found)

    return made


def similarities(rng: np.random.Generator, rows: int, count: int, phi: float) -> np.ndarray:
    return 1 - distances(-1)(rng, rows, count, phi) ** 2 / 500


def walks(rng: np.random.Generator, rows: int, count: int, phi: float) -> np.ndarray:
    return np.cumsum(rng.standard_normal((rows, count)), axis=1)


def shocks(rng: np.random.Generator, rows: int, count: int, phi: float) -> np.ndarray:
    """Memory of heavy-tailed shocks (Student's t, 3 degrees of freedom)."""
    found = rng.standard_t(3, (rows, count + 100))
    for t in range(1, count + 100):
        found[:, t] += phi * found[:, t - 1]
    return found[:, 100:]


SOURCES: dict[str, tuple[Callable[..., np.ndarray], int | None]] = {
    "values": (values_of, None),
    "distances to the last": (distances(-1), -1),
    "distances to the first": (distances(0), 0),
    "distances to the last, 5 dimensions": (distances(-1, 5), -1),
    "distances to the last, with fresh noise of 0.3": (distances(-1, fresh=0.3), -1),
    "similarities with the last": (similarities, -1),
    "values with heavy-tailed shocks": (shocks, None),
    "random walks": (walks, None),
}


def false_families(name: str, phi: float, families: int) -> str:
    """Return how many families over all counts and spacings have a changed row."""
    make, reference = SOURCES[name]
    found = total = 0
    for count in COUNTS:
        for spacing in SPACINGS:
            rng = np.random.default_rng([count, int(100 * phi), len(name), len(spacing)])
            values = make(rng, families * ROWS, count, phi)
            at = None if reference is None else reference % count
            p = trend_test(steps_of(spacing, count), values, at)  # the order test adds caution
            corrected = [holm(family) for family in p.reshape(families, ROWS)]
            found += int(np.sum(np.min(corrected, axis=1) <= 0.01))
            total += families
    return f"{found}/{total}"


SHAPES: dict[str, Curve] = {
    "straight line": lambda u: u,
    "S-curve, slow": lambda u: 1 / (1 + np.exp(-12 * (u - 0.5))),
    "S-curve, fast and late": lambda u: 1 / (1 + np.exp(-25 * (u - 0.7))),
    "exponential": lambda u: 1 - np.exp(-6 * u),
    "square root": np.sqrt,
    "square root on doublings": lambda u: np.exp2(0.5 * np.arange(len(u))),
    "jump": lambda u: (u > 0.45).astype(float),
    "overshoot": lambda u: u * np.exp(-3 * u),
}


def power(shape: str, noise: float, count: int, towards: bool) -> float:
    """Return the share of 100 rows that are found in a family of 24."""
    rng = np.random.default_rng([count, int(1000 * noise)])
    signal = SHAPES[shape](np.linspace(0, 1, count))
    signal = (signal - signal[0]) / np.ptp(signal)
    values = (1.1 - signal if towards else signal) + noise * rng.standard_normal((100, count))
    if towards:
        values[:, -1] = 0.0
    reference = count - 1 if towards else None
    p = development(np.arange(count), values, 0.0, reference, n_tests=ROWS).p_uncorrected
    return float(np.mean(ROWS * p <= 0.01))


def planted_curve(shape: str, rng: np.random.Generator) -> Curve:
    at, width, rate = rng.uniform(0.2, 0.8), rng.uniform(0.04, 0.12), rng.uniform(2, 8)
    curves: dict[str, Curve] = {
        "smooth S-curve": lambda u: 1 / (1 + np.exp(-(u - at) / width)),
        "jump between checkpoints": lambda u: 0.5 * (1 + np.tanh((u - at) / 2e-4)),
        "square root": np.sqrt,
        "exponential": lambda u: 1 - np.exp(-rate * u),
        "overshoot": lambda u: 1 - np.exp(-rate * u) * np.cos(1.5 * rate * u),
        "straight line": lambda u: u,
    }
    return curves[shape]


def covered(shape: str, spacing: str, noise: float, seed: int) -> bool:
    """Return whether one interval holds the step at which the curve crosses half of its change."""
    rng = np.random.default_rng([seed, int(1000 * noise), len(shape), len(spacing)])
    curve, steps = planted_curve(shape, rng), steps_of(spacing, int(rng.integers(12, 33)))
    in_log = spacing == "log" and shape in ("smooth S-curve", "jump between checkpoints")

    def signal(at: np.ndarray) -> np.ndarray:
        return curve(np.log1p(at) / np.log1p(LAST) if in_log else at / LAST)

    fine = np.unique(np.r_[np.linspace(0, LAST, 50_001), np.geomspace(0.01, LAST, 50_001)])
    ends = signal(np.array([0.0, LAST]))
    truth = fine[np.argmax((signal(fine) - ends[0]) / np.ptp(ends) >= 0.5)]
    values = (signal(steps) - ends[0]) / np.ptp(ends) + noise * rng.standard_normal(len(steps))
    floor = np.full(len(steps), 1.96 * np.sqrt(2) * noise)
    low, high = half_change_interval(steps, values, floor, random_state=rng)
    return bool(low <= truth <= high)


def row(*cells: object) -> None:
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["memory", "power", "coverage"])
    parser.add_argument("--families", type=int, default=40)
    options = parser.parse_args()
    if "memory" in options.parts:
        row("noise", *(f"phi {phi}" for phi in PHI))
        for name in SOURCES:
            kept = (0.0,) if name == "random walks" else PHI
            row(name, *(false_families(name, phi, options.families) for phi in kept))
    if "power" in options.parts:
        noises = (0.01, 0.03, 0.1)
        row("shape", *(f"{count} steps, noise {n}" for count in COUNTS for n in noises))
        for towards in (False, True):
            for shape in SHAPES:
                name = f"{shape}, distance to the last" if towards else shape
                rates = [power(shape, n, c, towards) for c in COUNTS for n in noises]
                row(name, *(f"{rate:.2f}" for rate in rates))
    if "coverage" in options.parts:
        noises = (0.01, 0.03, 0.05, 0.1)
        row("shape", *(f"{s}, noise {n}" for s in SPACINGS for n in noises))
        shapes = ("smooth S-curve", "jump between checkpoints", "square root", "exponential",
                  "overshoot", "straight line")  # fmt: skip
        for shape in shapes:
            rates = [
                np.mean([covered(shape, s, n, seed) for seed in range(100)])
                for s in SPACINGS
                for n in noises
            ]
            row(shape, *(f"{rate:.2f}" for rate in rates))


if __name__ == "__main__":
    main()
