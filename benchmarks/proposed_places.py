"""How often places are proposed that should not be, and how often the right ones are.

    python benchmarks/proposed_places.py [--draws 300] [--rows rows.jsonl] [--text FILE]

Models are asked as a study asks them: three checkpoints, texts halved, places chosen on one half
and judged on the other. Of *drawn* models the loss of each text at each place is drawn around a
course. *Trained* ones are small models that see new texts at each step: sums, copies after a
separator, chains of tokens, random tokens, and the letters of a text where one is named, each from
a seed of its own. Rows that a file holds already are not measured again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import ontogeny as og
from ontogeny.start.places import proposed_places

VOCAB = 256  # of drawn texts, whose first token is their number
SMALL = 27  # of texts that models are trained on: letters and a space
SEPARATOR = VOCAB - 1
STEPS = 3
TEXTS = 60
BLIND = float(np.log(VOCAB))


class Drawn(nn.Module):
    """A model of given losses (checkpoints, texts, places)."""

    def __init__(self, step: int, costs: np.ndarray, texts: list[list[int]]) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.tensor(float(step)))
        width = costs.shape[2]
        cost = torch.tensor(costs[step, :, 1:]).clamp(1e-6, 50.0)
        self.size = np.log(VOCAB - 1) - cost - torch.log(-torch.expm1(-cost))
        rows = [[*text[1:], *[0] * (width - len(text))] for text in texts]
        self.follows = torch.tensor(rows)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*ids.shape, VOCAB, dtype=torch.float64)
        text = ids[:, :1] % len(self.follows)
        place = torch.arange(min(ids.shape[1], self.follows.shape[1]))
        row = torch.arange(len(ids))[:, None]
        logits[row, place, self.follows[text, place]] = self.size[text, place]
        return logits.float() + 0 * self.step


@dataclass(frozen=True)
class Case:
    """Texts, and the losses or the training that a model has on them; what should be proposed."""

    right: dict[str, Any] | None
    make: Callable[[np.random.Generator, int], tuple[list[list[int]], og.Trajectory]]


def even_texts(rng: np.random.Generator, texts: int, length: int) -> list[list[int]]:
    """Return random texts of one length, each of which begins with its number."""
    ids = rng.integers(0, SEPARATOR, (texts, length))
    ids[:, 0] = np.arange(texts)
    return [[int(token) for token in row] for row in ids]


def separated(rng: np.random.Generator, texts: int) -> list[list[int]]:
    """Return texts of several lengths, each with one separator."""
    return [
        [*text[: rng.integers(4, 9)], SEPARATOR, *text[9 : rng.integers(11, 14)]]
        for text in even_texts(rng, texts, 14)
    ]


def drawn(
    rng: np.random.Generator,
    texts: list[list[int]],
    falls: np.ndarray,
    noise: float = 0.3,
) -> og.Trajectory:
    """Return checkpoints whose loss falls by shares of a blind guess (checkpoints, texts, places)."""
    width = max(map(len, texts))
    luck = rng.normal(0, 0.03, (STEPS, 1, width))
    of_texts = rng.normal(0, noise, (1, len(texts), width))
    of_cells = rng.normal(0, noise / 2, (STEPS, len(texts), width))
    costs = abs(BLIND * (1 - falls) + luck + of_texts + of_cells)
    return og.Trajectory.from_models(
        {step: Drawn(step, costs, texts) for step in range(STEPS)}
    )


def course(falls: np.ndarray) -> np.ndarray:
    """Return falls at three checkpoints of which the middle has two thirds."""
    return np.outer([0, 2 / 3, 1], falls)


def of_falls(length: int, falls: Callable[[np.ndarray], np.ndarray]) -> Callable:
    def make(rng: np.random.Generator, texts: int) -> Any:
        ids = even_texts(rng, texts, length)
        return ids, drawn(rng, ids, falls(np.arange(length))[:, None])

    return make


def by_separator(before: np.ndarray, after: np.ndarray) -> Callable:
    """Give texts of which the loss before a separator, and after it, falls by shares (3,)."""

    def make(rng: np.random.Generator, texts: int) -> Any:
        ids = separated(rng, texts)
        at = np.array([text.index(SEPARATOR) for text in ids])
        is_after = np.arange(max(map(len, ids))) > at[:, None]
        return ids, drawn(
            rng, ids, np.where(is_after, after[:, None, None], before[:, None, None])
        )

    return make


class Small(nn.Module):
    """Reads the last three tokens: sums, copies and chains are learned in seconds."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(SMALL, 24)
        self.hidden = nn.Linear(3 * 24, 128)
        self.out = nn.Linear(128, SMALL)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        here = self.embed(ids)
        shifted = [
            nn.functional.pad(here, (0, 0, back, 0))[:, : here.shape[1]]
            for back in range(3)
        ]
        return self.out(torch.relu(self.hidden(torch.cat(shifted, dim=2))))


def trained(
    rule: Callable[[np.random.Generator], Callable], steps: int = 250
) -> Callable:
    """Give new texts of a rule, and three checkpoints of a run on others."""

    def run(rng: np.random.Generator, texts: int) -> Any:
        rows = rule(rng)
        model = Small(int(rng.integers(1 << 30)))
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
        kept = {0: copy_of(model)}
        for step in range(1, steps + 1):
            batch = torch.tensor(rows(rng, 128))
            said = model(batch)[:, :-1].reshape(-1, SMALL)
            loss = nn.functional.cross_entropy(said, batch[:, 1:].reshape(-1))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step in (steps // 2, steps):
                kept[step] = copy_of(model)
        return rows(rng, texts).tolist(), og.Trajectory.from_models(kept)

    return run


def copy_of(model: Small) -> Small:
    other = Small(0)
    other.load_state_dict(model.state_dict())
    return other


def sums(_: np.random.Generator) -> Callable:
    def rows(rng: np.random.Generator, count: int) -> np.ndarray:
        first, second = rng.integers(0, 11, (2, count))
        return np.column_stack([first, second, (first + second) % 11])

    return rows


def copies(_: np.random.Generator) -> Callable:
    """Two random tokens, a separator, and both again."""

    def rows(rng: np.random.Generator, count: int) -> np.ndarray:
        first, second = rng.integers(0, 10, (2, count))
        mark = np.full(count, SMALL - 1)
        return np.column_stack([first, second, mark, first, second])

    return rows


def chains(rng: np.random.Generator) -> Callable:
    """Of each token two others can follow: every place but the first is learned."""
    follows = rng.integers(0, SMALL, (SMALL, 2))

    def rows(rng: np.random.Generator, count: int) -> np.ndarray:
        found = [rng.integers(0, SMALL, count)]
        while len(found) < 8:
            found.append(follows[found[-1], rng.integers(0, 2, count)])
        return np.column_stack(found)

    return rows


def random_tokens(_: np.random.Generator) -> Callable:
    return lambda rng, count: rng.integers(0, SMALL, (count, 6))


def letters(path: Path) -> Callable:
    """Twelve letters of a text each, from anywhere."""
    kept = " ".join(re.findall("[a-z]+", path.read_text().lower()))
    ids = np.frombuffer(kept.replace(" ", "`").encode(), np.uint8) - ord("`")

    def rows(rng: np.random.Generator, count: int) -> np.ndarray:
        starts = rng.integers(0, len(ids) - 12, (count, 1))
        return ids[starts + np.arange(12)].astype(np.int64)

    return rows


NONE = np.zeros(STEPS)
WELL = np.array([0, 0.6, 0.9])
CASES = {
    "drawn, nothing learned, 3 places": Case(
        None, of_falls(3, lambda at: np.zeros((STEPS, len(at))))
    ),
    "drawn, nothing learned, 20 places": Case(
        None, of_falls(20, lambda at: np.zeros((STEPS, len(at))))
    ),
    "drawn, all learned, late places better": Case(
        None, of_falls(20, lambda at: course(0.1 + 0.02 * at))
    ),
    "drawn, early in training": Case(None, of_falls(20, lambda at: course(0.004 * at))),
    "drawn, the first places learned alone": Case(
        None, of_falls(6, lambda at: course(0.5 * (at < 3)))
    ),
    "drawn, separator, nothing learned": Case(None, by_separator(NONE, NONE)),
    "drawn, separator, all learned": Case(None, by_separator(WELL / 2, WELL)),
    "trained on random tokens": Case(None, trained(random_tokens)),
    "trained on chains": Case(None, trained(chains)),
    "drawn, last of 3": Case(
        {"score": "last:1"}, of_falls(3, lambda at: np.outer(WELL, at == 2))
    ),
    "drawn, last 2 of 6, half of the loss": Case(
        {"score": "last:2"}, of_falls(6, lambda at: course(0.5 * (at >= 4)))
    ),
    "drawn, last of 20, a fifth of the loss": Case(
        {"score": "last:1"}, of_falls(20, lambda at: course(0.2 * (at == 19)))
    ),
    "drawn, after a separator": Case(
        {"answer_after": SEPARATOR}, by_separator(NONE, WELL)
    ),
    "trained on chains, a tenth of the steps": Case(None, trained(chains, 24)),
    "trained on sums": Case({"score": "last:1"}, trained(sums)),
    "trained on copies": Case({"score": "last:2"}, trained(copies)),
}


def measured(case: Case, draws: int) -> dict[str, int]:
    """Return how often a case has a proposal, and how often it is the right one."""
    said = right = 0
    for seed in range(draws):
        ids, trajectory = case.make(np.random.default_rng(seed), TEXTS)
        found = proposed_places(trajectory, og.Inputs.from_tokens(ids))
        said += found is not None
        right += found is not None and found.table == case.right
    return {"draws": draws, "said": said, "right": right}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--rows", type=Path, default=Path("proposed_places.jsonl"))
    parser.add_argument("--text", type=Path)
    arguments = parser.parse_args()
    cases = dict(CASES)
    if arguments.text:
        for steps in (16, 50, 250):
            rule = letters(arguments.text)
            name = f"trained on letters of a text, {steps} steps"
            cases[name] = Case(None, trained(lambda _, rule=rule: rule, steps))
    lines = arguments.rows.read_text().splitlines() if arguments.rows.exists() else []
    there = {row["case"] for row in map(json.loads, lines)}
    for name, case in cases.items():
        if name in there:
            continue
        counts = measured(case, arguments.draws)
        row = json.dumps({"case": name, "plain": case.right is not None, **counts})
        print(row, flush=True)
        with arguments.rows.open("a") as file:
            file.write(row + "\n")


if __name__ == "__main__":
    main()
