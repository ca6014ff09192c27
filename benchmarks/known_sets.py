"""How often "memorised", "generalises" and "overfits" are said wrongly and rightly.

    OMP_NUM_THREADS=1 python benchmarks/known_sets.py [--draws 300] [--rows rows.jsonl] [--only FAMILY]

Losses and answers of both sets are drawn around courses that are known, and judged by the function
that judges those of a study. Wrong are: known, where less than 95 % of all such texts are right in
the end; a step whose interval lacks the true one; overfitting of a loss that does not rise. Texts
differ by half a nat (standard deviation), and by a tenth more at each checkpoint. Checkpoints
jitter as well, all texts by the same: shares of what is gained over word frequencies, drawn anew
at each checkpoint or with a memory of .5.

Beside them stands what the best test could find: of answers the most powerful of 5 %, of rises one
that knows the course, its begin and the memory of the noise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import binom, nct, t

from ontogeny.claims import Certainty, Claim, Kind
from ontogeny.features.predictions.rises import rise_p_value
from ontogeny.features.predictions.set_claims import claims_of_sets

FREQUENCIES = 3.0  # nats per token
GAIN = 1.5
OF_TEXTS = 0.5
OF_CELLS = 0.1
JITTERS = (
    (0.0, 0.0),
    (0.01, 0.0),
    (0.03, 0.0),
    (0.01, 0.5),
)  # share of the gain, memory


def node_of(
    held: np.ndarray, training: np.ndarray, right: dict[str, np.ndarray] | None = None
) -> xr.Dataset:
    """Return the node of losses, or answers, (step, text) of both sets."""
    data: dict[str, Any] = {}
    values = {"training": training, "held": held}
    right = right or {name: np.exp(-costs) for name, costs in values.items()}
    for name, costs in values.items():
        text = f"{name}_text"
        count = costs.shape[1]
        data[f"{name}_cost"] = (("step", text), costs)
        data[f"{name}_right"] = (("step", text), right[name])
        data[f"{name}_line"] = (text, np.full(count, FREQUENCIES))
        data[f"{name}_count"] = (text, np.full(count, 10))
    loss = np.stack([costs.mean(axis=1) for costs in values.values()], axis=1)
    share = np.stack([right[name].mean(axis=1) for name in values], axis=1)
    data["set_loss"] = (("step", "set"), loss)
    data["set_accuracy"] = (("step", "set"), share)
    data["gap"] = ("step", loss[:, 1] - loss[:, 0])
    data["answers_scored"] = np.int8("right_given" in right)
    steps = np.arange(len(held)) * 100
    return xr.Dataset(data, coords={"step": steps, "set": ["training", "held-out"]})


def claim_of(data: xr.Dataset, kind: Kind) -> Claim | None:
    claims = claims_of_sets("n", data)
    return next((claim for claim in claims if claim.kind is kind), None)


def is_sure(claim: Claim | None) -> bool:
    return claim is not None and claim.certainty is Certainty.SURE


def answers(
    shares: np.ndarray, texts: int, rng: np.random.Generator, memory: bool = True
) -> xr.Dataset:
    """Return answers of texts that are right in given shares; a text is as hard at every step."""
    steps = len(shares)
    hard = rng.random(texts) if memory else rng.random((steps, texts))
    right = (np.broadcast_to(hard, (steps, texts)) < shares[:, None]).astype(float)
    costs = np.where(right > 0, 0.1, 3.0)
    given = {"training": right, "held": right, "right_given": right}
    return node_of(costs, costs, given)


def losses(
    mean: np.ndarray, texts: int, jitter: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    of_texts = rng.normal(0, OF_TEXTS, texts)
    of_cells = rng.normal(0, OF_CELLS, (len(mean), texts))
    return (mean + jitter)[:, None] + of_texts + of_cells


def jitter_of(
    steps: int, share: float, memory: float, rng: np.random.Generator
) -> np.ndarray:
    """Return a stationary course, whose standard deviation is a share of the gain."""
    course = rng.normal(0, 1, steps)
    for place in range(1, steps):
        course[place] = (
            memory * course[place - 1] + np.sqrt(1 - memory**2) * course[place]
        )
    return share * GAIN * course


def falls(steps: int, end: float = FREQUENCIES - GAIN) -> np.ndarray:
    """Return a loss that falls to its end in the first third of the run, and stays there."""
    place = np.arange(steps) / (steps - 1)
    return end + (FREQUENCIES + 1 - end) * np.exp(-15 * place)


def rises(steps: int, share: float) -> np.ndarray:
    """Return a loss that falls, and then rises by a share of the gain."""
    place = np.arange(steps) / (steps - 1)
    return falls(steps) + share * GAIN * np.clip(place - 0.4, 0, None) / 0.6


def of_answers(draws: int) -> Iterator[dict[str, Any]]:
    for texts in (20, 100, 400):
        for end in (0.9, 0.94, 0.97, 0.99, 1.0):
            shares = np.array([0.05, 0.2, 0.5, 0.8, end, end, end, end])
            said = covered = 0
            for seed in range(draws):
                data = answers(shares, texts, np.random.default_rng(seed))
                claim = claim_of(data, Kind.GENERALISES)
                if is_sure(claim):
                    said += 1
                    covered += claim.since_low <= 400 <= claim.since_high
            yield {
                "what": "right answers",
                "end": end,
                "texts": texts,
                "said": said,
                "covered": covered,
            }


def of_gains(draws: int) -> Iterator[dict[str, Any]]:
    for texts in (20, 80):
        for share in (0.0, 0.01):
            for steps in (8, 16):
                said = covered = 0
                mean = falls(steps)
                line = FREQUENCIES - 0.95 * (FREQUENCIES - mean[-1])
                truth = 100 * int(np.argmax(mean <= line))
                for seed in range(draws):
                    rng = np.random.default_rng(seed)
                    held = losses(mean, texts, jitter_of(steps, share, 0.0, rng), rng)
                    claim = claim_of(node_of(held, held), Kind.GENERALISES)
                    if is_sure(claim):
                        said += 1
                        covered += claim.since_low <= truth <= claim.since_high
                yield {
                    "what": "gain",
                    "jitter": share,
                    "texts": texts,
                    "steps": steps,
                    "said": said,
                    "covered": covered,
                }


def of_nothing(draws: int) -> Iterator[dict[str, Any]]:
    """Losses that stay at word frequencies, or 1 nat above them."""
    for texts in (5, 20, 80):
        for above in (0.0, 1.0):
            said = 0
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                mean = np.array([4.0, 3.5, 3.2, 3.0, 3.0, 3.0]) + above
                held = losses(mean, texts, np.zeros(6), rng)
                said += is_sure(claim_of(node_of(held, held), Kind.GENERALISES))
            yield {"what": "no gain", "above": above, "texts": texts, "said": said}


def of_rises(draws: int) -> Iterator[dict[str, Any]]:
    for rise in (0.0, 0.1, 0.3):
        for steps in (5, 12, 24):
            for share, memory in (
                (0.0, 0),
                (0.003, 0),
                (0.01, 0),
                (0.03, 0),
                (0.01, 0.5),
            ):
                said = 0
                for seed in range(draws):
                    rng = np.random.default_rng(seed)
                    jitter = jitter_of(steps, share, memory, rng)
                    held = losses(rises(steps, rise), 80, jitter, rng)
                    down = np.linspace(0, 0.5, steps)
                    training = losses(falls(steps) - down, 80, jitter, rng)
                    said += is_sure(claim_of(node_of(held, training), Kind.OVERFITS))
                yield {
                    "what": "overfits",
                    "rise": rise,
                    "steps": steps,
                    "jitter": share,
                    "memory": memory,
                    "said": said,
                }


def of_answer_power(draws: int) -> Iterator[dict[str, Any]]:
    """Exact power over all numbers of right texts, at a last checkpoint."""
    for texts in (63, 100, 200, 400, 1000, 2000):
        counts = np.arange(texts + 1)
        node = [is_known(texts, right) for right in counts]
        for share in (0.97, 0.98, 0.99, 0.995, 1.0):
            power = float(binom.pmf(counts, texts, share)[node].sum())
            yield {
                "what": "power of answers",
                "share": share,
                "texts": texts,
                "power": round(power, 3),
                "most": round(most_powerful(texts, share), 3),
            }


def is_known(texts: int, right: int) -> bool:
    told = np.repeat([[0.0], [1.0]], texts, axis=1)
    told[1, right:] = 0
    given = {"training": told, "held": told, "right_given": told}
    return is_sure(claim_of(node_of(3 - told, 3 - told, given), Kind.GENERALISES))


def most_powerful(texts: int, share: float, level: float = 0.05) -> float:
    """Return the power of the randomised test of 95 %, which no test of this level exceeds."""
    counts = np.arange(texts + 1)
    beyond = binom.sf(counts, texts, 0.95)
    first = int(np.argmax(beyond <= level))
    part = (level - beyond[first]) / binom.pmf(first, texts, 0.95)
    return float(binom.sf(first, texts, share) + part * binom.pmf(first, texts, share))


def of_rise_power(draws: int) -> Iterator[dict[str, Any]]:
    """Courses that rise in a line after a third of the checkpoints, in units of their jitter."""
    for steps in (5, 6, 8, 12, 16, 20, 30, 50):
        for memory in (0.0, 0.5):
            shape = np.clip(np.arange(steps) / (steps - 1) - 1 / 3, 0, None) * 1.5
            for rise in (0, 3, 4, 5, 6, 7, 8, 12, 15):
                said = 0
                for seed in range(draws):
                    rng = np.random.default_rng(seed)
                    noise = jitter_of(steps, 1 / GAIN, memory, rng)
                    said += rise_p_value(noise + rise * shape) <= 0.05
                yield {
                    "what": "power of rises",
                    "steps": steps,
                    "memory": memory,
                    "rise": rise,
                    "said": said,
                    "most": round(knowing_all(rise * shape, memory), 3),
                }


def knowing_all(course: np.ndarray, memory: float, level: float = 0.05) -> float:
    """Return the power of a test that knows the shape and the memory, not the sizes."""
    apart = np.abs(np.subtract.outer(np.arange(len(course)), np.arange(len(course))))
    root = np.linalg.inv(np.linalg.cholesky(np.where(apart, memory**apart, 1.0)))
    shape = root @ course
    flat = root @ np.ones(len(course))
    flat /= np.linalg.norm(flat)
    size = float(np.linalg.norm(shape - flat * (flat @ shape)))
    freedom = len(course) - 2
    return float(nct.sf(t.isf(level, freedom), freedom, size)) if size else level


FAMILIES = {
    "answers": of_answers,
    "nothing": of_nothing,
    "gains": of_gains,
    "rises": of_rises,
    "answer-power": of_answer_power,
    "rise-power": of_rise_power,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--only", choices=list(FAMILIES))
    arguments = parser.parse_args()
    asked = [arguments.only] if arguments.only else list(FAMILIES)
    for family in asked:
        for row in FAMILIES[family](arguments.draws):
            print(json.dumps(row), flush=True)
            if arguments.rows:
                with arguments.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
