"""How far a measured loss is from what a run recorded, where both agree and where they do not.

    OMP_NUM_THREADS=1 python benchmarks/recorded_losses.py --text FILE --foreign FILE
        [--runs 3] [--draws 100] [--rows rows.jsonl]

Runs are small character models of nanoGPT's form with dropout, trained here on the first nine
tenths of a text. At each of six checkpoints a draw has what the run would have written down and
what a study would measure. Of `AGREE` only luck and dropout lie between them: another sample of 20
batches, other texts of the same kind, training losses with dropout. Of `DIFFER` the study reads
the weights or the texts in another way than the run did. A draw is far by the largest share that
`ontogeny.features.predictions.recorded` would still call far: the excess at the last checkpoint,
or the median over checkpoints where that is less.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

BLOCK = 64
WIDTH = 64
CHECKPOINTS = (0, 100, 200, 400, 700, 1000)
BATCH = 32
BATCHES = 20  # of an estimate, as nanoGPT's eval_iters in its smallest settings
TEXTS = 80  # that a study reads
LEAST = 0.05  # nats per token
SHARES = (0.03, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
TEXT: list[Path] = []


class Block(nn.Module):
    causal = True
    activation = staticmethod(nn.functional.gelu)

    def __init__(self, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(self.before[0](x)).chunk(3, dim=2)
        shape = (batch, length, self.heads, -1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        mixed = mixed.transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + self.dropout(self.out(mixed))
        inner = self.activation(self.up(self.before[1](x)))
        return x + self.dropout(self.down(inner))


class Characters(nn.Module):
    def __init__(self, vocabulary: int, heads: int = 4, dropout: float = 0.2) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, WIDTH)
        self.place = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList([Block(heads, dropout) for _ in range(3)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.dropout(self.embed(ids) + self.place.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@functools.cache
def vocabulary() -> str:
    return "".join(sorted({c for path in TEXT for c in path.read_text()[:400_000]}))


@functools.cache
def ids_of(place: int) -> Tensor:
    at = {c: i for i, c in enumerate(vocabulary())}
    return torch.tensor([at[c] for c in TEXT[place].read_text()[:400_000]])


def parts() -> tuple[Tensor, Tensor]:
    """Return what the run is trained on and what it is validated on."""
    ids = ids_of(0)
    end = len(ids) * 9 // 10
    return ids[:end], ids[end:]


def batch(ids: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    starts = rng.integers(0, len(ids) - BLOCK, count)
    return torch.stack([ids[s : s + BLOCK] for s in starts.tolist()])


def token_losses(model: nn.Module, rows: Tensor) -> Tensor:
    logits = model(rows)[:, :-1]
    return cross_entropy(logits.transpose(1, 2), rows[:, 1:], reduction="none")


@functools.cache
def trained(seed: int) -> tuple[dict[int, dict[str, Tensor]], dict[int, float]]:
    """Return the weights of a run and its training losses, the mean of the last 20 batches."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Characters(len(vocabulary()), dropout=(0.0, 0.1, 0.2)[seed % 3])
    optimiser = torch.optim.AdamW(model.parameters(), 2e-3)
    weights: dict[int, dict[str, Tensor]] = {}
    logged: list[float] = []
    losses: dict[int, float] = {}
    for step in range(CHECKPOINTS[-1] + 1):
        if step in CHECKPOINTS:
            weights[step] = copy.deepcopy(model.state_dict())
        loss = token_losses(model, batch(parts()[0], BATCH, rng)).mean()
        logged.append(loss.item())
        if step in CHECKPOINTS:
            losses[step] = float(np.mean(logged[-BATCHES:]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return weights, losses


@functools.cache
def pool(seed: int, step: int, way: str, place: str) -> np.ndarray:
    """Return the losses of many texts (texts,), by a builder and a reading of the texts."""
    weights = trained(seed)[0][step]
    model = Characters(len(vocabulary()), heads=BUILDERS.get(way, 4), dropout=0.0)
    model.load_state_dict(weights)
    changed(model, way)
    rng = np.random.default_rng(1)
    ids = {"validation": parts()[1], "training": parts()[0], "foreign": ids_of(1)}
    rows = batch(ids[place], 700, rng)
    size = len(vocabulary())
    if way == "another order of the vocabulary":
        rows = torch.as_tensor(np.random.default_rng(2).permutation(size))[rows]
    if way == "ids one too high":
        rows = (rows + 1) % size
    if way == "in capitals":
        at = {c: i for i, c in enumerate(vocabulary())}
        upper = torch.tensor([at.get(c.upper(), at[c]) for c in vocabulary()])
        rows = upper[rows]
    with torch.no_grad():
        costs = torch.cat([token_losses(model, part) for part in rows.split(100)])
    length = LENGTHS.get(way, BLOCK) - 1
    return costs[:, :length].mean(dim=1).numpy()


LENGTHS = {"texts of 32 of 64 tokens": 32, "texts of 16 of 64 tokens": 16}
BUILDERS = {"2 heads of 4": 2, "8 heads of 4": 8, "1 head of 4": 1}


def changed(model: nn.Module, way: str) -> None:
    """Read the same weights in another way than they were trained."""
    for block in model.blocks:
        if way == "ReLU for GELU":
            block.activation = nn.functional.relu
        if way == "no norm before attention":
            block.before[0] = nn.Identity()
        if way == "no causal mask":
            block.causal = False
    if way == "no places":
        nn.init.zeros_(model.place.weight)
    if way == "no last norm":
        model.norm = nn.Identity()


Draw = Callable[[int, int, np.random.Generator], tuple[float, float]]


def sample(values: np.ndarray, count: int, rng: np.random.Generator) -> float:
    return float(rng.choice(values, count).mean())


def recorded(seed: int, step: int, rng: np.random.Generator) -> float:
    values = pool(seed, step, "", "validation")
    return sample(values, BATCH * BATCHES, rng)


def few_batches(seed: int, step: int, rng: np.random.Generator) -> tuple[float, float]:
    values = pool(seed, step, "", "validation")
    return sample(values, TEXTS, rng), sample(values, 12 * BATCHES, rng)


def training_texts(
    seed: int, step: int, rng: np.random.Generator
) -> tuple[float, float]:
    values = pool(seed, step, "", "training")
    return sample(values, TEXTS, rng), recorded(seed, step, rng)


def with_dropout(seed: int, step: int, rng: np.random.Generator) -> tuple[float, float]:
    values = pool(seed, step, "", "validation")
    return sample(values, TEXTS, rng), trained(seed)[1][step]


def in_another_way(way: str, place: str = "validation") -> Draw:
    def drawn(seed: int, step: int, rng: np.random.Generator) -> tuple[float, float]:
        values = pool(seed, step, way, place)
        return sample(values, TEXTS, rng), recorded(seed, step, rng)

    return drawn


AGREE: dict[str, Draw] = {
    "an own loop: the same texts' kind": in_another_way(""),
    "20 batches of 12": few_batches,
    "measured on training texts": training_texts,
    "training losses with dropout": with_dropout,
    **{way: in_another_way(way) for way in LENGTHS},
}
DIFFER: dict[str, Draw] = {
    "other texts": in_another_way("", "foreign"),
    **{
        way: in_another_way(way)
        for way in (
            "another order of the vocabulary",
            "ids one too high",
            "in capitals",
            *BUILDERS,
            "ReLU for GELU",
            "no norm before attention",
            "no causal mask",
            "no places",
            "no last norm",
        )
    },
}


def largest_share(draw: Draw, seed: int, rng: np.random.Generator) -> float:
    """Return the largest share of the recorded loss by which a draw is still called far."""
    measured, written = np.array([draw(seed, step, rng) for step in CHECKPOINTS]).T
    excess = abs(measured - written)
    share = np.where(excess > LEAST, excess / written, 0.0)
    # Far at more than half of six checkpoints: at the fourth largest of them, and at the last one.
    return float(min(share[-1], np.sort(share)[-(len(share) // 2 + 1)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--foreign", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--rows", type=Path)
    arguments = parser.parse_args()
    TEXT.extend([arguments.text, arguments.foreign])
    for name, draw in {**AGREE, **DIFFER}.items():
        shares = [
            largest_share(draw, seed, np.random.default_rng(1000 * seed + number))
            for seed in range(arguments.runs)
            for number in range(arguments.draws)
        ]
        far = [sum(share > line for share in shares) for line in SHARES]
        low, middle, high = np.quantile(shares, [0.05, 0.5, 0.95])
        row = {
            "family": name,
            "draws": len(shares),
            "far": dict(zip(SHARES, far, strict=True)),
        }
        print(f"{name}: {low:.3f} {middle:.3f} {high:.3f}", far, flush=True)
        if arguments.rows:
            with arguments.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
