"""Error rates, power and coverage of `development`, for the tables of the guide to error rates.

    OMP_NUM_THREADS=1 python benchmarks/changes.py [PART ...] [--families 40]

Parts: noise, found, memory, power, coverage. What the file of --results holds of the first two, a
line of JSON each, is not measured again. `noise` and `found`: share of single curves that are
called changed where there is only noise, and where noise is a tenth of a change; of those that slow
noise leaves open; and of those that are called changed in a page of 60. `memory`: share of families
of 24 curves with a changed one, by the trend test alone, where all is noise with memory. `power`:
share of real developments that are found in such a family. `coverage`: share of half-change
intervals that hold the step at which the continuous curve crosses half of its change.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ontogeny.dynamics import development, holm, step_order_test, trend_test
from ontogeny.dynamics.half_change import half_change_interval
from ontogeny.dynamics.order import smallest_p
from ontogeny.dynamics.reasons import CHANCE
from ontogeny.dynamics.trend_tests import trend_p_values

ROWS = 24
LAST = 10_000
PHI = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95)
COUNTS = (12, 24, 32)
SPACINGS = ("even", "log")
Curve = Callable[..., np.ndarray]


def steps_of(spacing: str, count: int) -> np.ndarray:
    """Return `count` steps from 0 to LAST."""
    if spacing == "even":
        return np.linspace(0, LAST, count).round()
    steps = [0.0]
    # Geometric where it can be, one by one at the start.
    for left in range(count - 1, 0, -1):
        ratio = (LAST / max(steps[-1], 0.5)) ** (1 / left)
        steps.append(max(steps[-1] + 1, round(max(steps[-1], 0.5) * ratio)))
    return np.array(steps)


def jitter(rng: np.random.Generator, shape: tuple[int, ...], phi: float) -> np.ndarray:
    """Return stationary autoregressive noise (rows, steps, ...) of variance 1."""
    found = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        found[:, t] = phi * found[:, t - 1] + np.sqrt(1 - phi**2) * found[:, t]
    return found


def values_of(
    rng: np.random.Generator, rows: int, count: int, phi: float
) -> np.ndarray:
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


def similarities(
    rng: np.random.Generator, rows: int, count: int, phi: float
) -> np.ndarray:
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
            rng = np.random.default_rng(
                [count, int(100 * phi), len(name), len(spacing)]
            )
            values = make(rng, families * ROWS, count, phi)
            at = None if reference is None else reference % count
            # The order test adds caution.
            p = trend_test(steps_of(spacing, count), values, at)
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
    values = (1.1 - signal if towards else signal) + noise * rng.standard_normal(
        (100, count)
    )
    if towards:
        values[:, -1] = 0.0
    reference = count - 1 if towards else None
    p = development(
        np.arange(count), values, 0.0, reference, n_tests=ROWS
    ).p_uncorrected
    return float(np.mean(ROWS * p <= 0.01))


def planted_curve(shape: str, rng: np.random.Generator) -> Curve:
    at = rng.uniform(0.2, 0.8)
    width = rng.uniform(0.04, 0.12)
    rate = rng.uniform(2, 8)
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
    curve = planted_curve(shape, rng)
    steps = steps_of(spacing, int(rng.integers(12, 33)))
    in_log = spacing == "log" and shape in (
        "smooth S-curve",
        "jump between checkpoints",
    )

    def signal(at: np.ndarray) -> np.ndarray:
        return curve(np.log1p(at) / np.log1p(LAST) if in_log else at / LAST)

    fine = np.unique(
        np.r_[np.linspace(0, LAST, 50_001), np.geomspace(0.01, LAST, 50_001)]
    )
    ends = signal(np.array([0.0, LAST]))
    truth = fine[np.argmax((signal(fine) - ends[0]) / np.ptp(ends) >= 0.5)]
    values = (signal(steps) - ends[0]) / np.ptp(ends) + noise * rng.standard_normal(
        len(steps)
    )
    floor = np.full(len(steps), 1.96 * np.sqrt(2) * noise)
    low, high = half_change_interval(steps, values, floor, random_state=rng)
    return bool(low <= truth <= high)


SIZES = (6, 8, 12, 16, 24, 50)
PAGE = 60
CURVES = 600
SLOW = {f"AR(1), {phi}": phi for phi in (0.0, 0.3, 0.5, 0.7, 0.9)}


def walk_by_steps(rng: np.random.Generator, steps: np.ndarray) -> np.ndarray:
    shocks = rng.standard_normal((CURVES, len(steps)))
    return np.cumsum(np.sqrt(np.diff(steps, prepend=steps[0])) * shocks, axis=1)


NOISES: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    **{
        name: lambda rng, s, phi=phi: jitter(rng, (CURVES, len(s)), phi)
        for name, phi in SLOW.items()
    },
    "random walk": lambda rng, s: walks(rng, CURVES, len(s), 1.0),
    "random walk in steps": walk_by_steps,
    "random walk and as much fresh noise": lambda rng, s: (
        walks(rng, CURVES, len(s), 1.0) + rng.standard_normal((CURVES, len(s)))
    ),
    "heavy tails, 3 degrees of freedom": lambda rng, s: rng.standard_t(
        3, (CURVES, len(s))
    ),
    "heavy tails, 2 degrees of freedom": lambda rng, s: rng.standard_t(
        2, (CURVES, len(s))
    ),
    "noise that grows threefold": lambda rng, s: (
        rng.standard_normal((CURVES, len(s))) * np.geomspace(1, 3, len(s))
    ),
    "noise that is three times as large in the last third": lambda rng, s: (
        rng.standard_normal((CURVES, len(s)))
        * np.where(np.arange(len(s)) < 2 * len(s) / 3, 1, 3)
    ),
    "random walk with heavy tails": lambda rng, s: np.cumsum(
        rng.standard_t(3, (CURVES, len(s))), axis=1
    ),
}

CHANGES: dict[str, Curve] = {
    "sigmoid": lambda u, rng: (
        1 / (1 + np.exp(-(u - rng.uniform(0.2, 0.8)) / rng.uniform(0.03, 0.12)))
    ),
    "exponential": lambda u, rng: 1 - np.exp(-rng.uniform(3, 10) * u),
    "jump": lambda u, rng: (np.arange(len(u)) > rng.integers(1, len(u) - 2)).astype(
        float
    ),
    "power law": lambda u, rng: 1 - (1 + np.arange(len(u))) ** -0.5,
    "straight line": lambda u, rng: u,
    "overshoot, noise .02": lambda u, rng: u * np.exp(-3 * u),
}


def told(values: np.ndarray, steps: np.ndarray) -> dict[str, float]:
    """Return shares of curves that changed, alone and in pages, and that slow noise leaves open."""
    found = trend_p_values(steps, values)
    alone = np.maximum(found.short, smallest_p(len(steps)))
    of_order = step_order_test(values, 999, level=0.05, n_tests=1) <= CHANCE
    shown = of_order & (found.slow <= CHANCE)
    of_noise = of_order & (alone <= 0.01)
    pages = np.array([holm(p) for p in alone.reshape(-1, PAGE)]).ravel() <= 0.01
    return {
        "changed": float(np.mean(shown & of_noise)),
        "slow noise": float(np.mean(of_noise & (found.slow > CHANCE))),
        "changed in a page": float(np.mean(shown & pages)),
    }


def of_noise(name: str, spacing: str, count: int) -> dict[str, float]:
    steps = steps_of(spacing, count)
    return told(
        NOISES[name](np.random.default_rng([count, len(name), 1]), steps), steps
    )


def of_change(name: str, phi: float, count: int) -> dict[str, float]:
    rng = np.random.default_rng([count, int(10 * phi), len(name)])
    u = np.linspace(0, 1, count)
    signal = np.array([CHANGES[name](u, rng) for _ in range(CURVES)])
    signal = (signal - signal[:, :1]) / np.ptp(signal, axis=1, keepdims=True)
    noise = (0.02 if "overshoot" in name else 0.1) * jitter(rng, (CURVES, count), phi)
    return told(signal + noise, np.arange(count, dtype=float))


def resumed(
    results: Path, part: str, key: str, measure: Callable[[], dict[str, float]]
) -> None:
    """Print what was measured, or measure it and keep it."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    known = {(row["part"], row["key"]): row for row in map(json.loads, lines)}
    if (part, key) not in known:
        known[part, key] = {"part": part, "key": key, **measure()}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[part, key]) + "\n")
    print(*known[part, key].values(), sep="\t", flush=True)


def row(*cells: object) -> None:
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def tables(parts: list[str], results: Path) -> None:
    """Measure what single curves give, or show what was measured."""
    for count in SIZES:
        for name in NOISES if "noise" in parts else ():
            for spacing in SPACINGS:
                measure = functools.partial(of_noise, name, spacing, count)
                resumed(results, "noise", f"{name}; {spacing}; {count}", measure)
        for name in CHANGES if "found" in parts else ():
            for phi in (0.0, 0.3, 0.5, 0.9):
                measure = functools.partial(of_change, name, phi, count)
                resumed(results, "found", f"{name}; {phi}; {count}", measure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", default=["noise", "found", "memory", "power", "coverage"]
    )
    parser.add_argument("--families", type=int, default=40)
    parser.add_argument("--results", type=Path, default=Path("changes.jsonl"))
    options = parser.parse_args()
    if {"noise", "found"} & set(options.parts):
        tables(options.parts, options.results)
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
        shapes = (
            "smooth S-curve",
            "jump between checkpoints",
            "square root",
            "exponential",
            "overshoot",
            "straight line",
        )
        for shape in shapes:
            rates = [
                np.mean([covered(shape, s, n, seed) for seed in range(100)])
                for s in SPACINGS
                for n in noises
            ]
            row(shape, *(f"{rate:.2f}" for rate in rates))


if __name__ == "__main__":
    main()
