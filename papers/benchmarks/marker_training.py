"""Training on the marker task: seconds a step against the paper's loop written out plainly.

The plain loop does what the paper's own code does: batches by Python's `random`, one fused
query-key-value map, explicit causal attention at every position of every layer, AdamW as it comes.
Ours and the plain one take turns of a few steps in one process, so that other jobs on the machine
hit both; the ratio of their CPU seconds is the result. Run:

    python benchmarks/marker_training.py [--turns 30] [--layers 4] [--batch 64] [--seeds 4]
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ontogeny_papers.reproduce.training import (
    MarkerRun,
    OptimizerSettings,
    StackedModels,
    readout_loss,
)

STEPS = 5  # of each turn


class PlainBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            each.view(batch, length, self.heads, -1).transpose(1, 2)
            for each in self.qkv(self.norm(x)).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.tril(torch.ones(length, length)).bool()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class PlainModel(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.tokens = nn.Embedding(run.task.vocab_size, run.width)
        self.places = nn.Embedding(run.task.length, run.width)
        self.layers = nn.ModuleList(
            PlainBlock(run.width, run.heads) for _ in range(run.layers)
        )
        self.norm = nn.LayerNorm(run.width)
        self.head = nn.Linear(run.width, run.task.modulus)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]).expand(ids.shape))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, -1])


def plain_batch(run):
    """One batch as the paper's code makes it: one m and one choice of places, values in a loop."""
    task = run.task
    m = random.choice(task.counts)
    while True:
        places = sorted(random.sample(range(task.length - 1), m))
        if all(b - a > 1 for a, b in itertools.pairwise(places)):
            break
    drawn = random.choices(task.distractor_ids, k=run.batch_size * task.length)
    ids = torch.tensor(drawn).view(run.batch_size, task.length)
    labels = torch.zeros(run.batch_size, dtype=torch.long)
    for row in range(run.batch_size):
        total = 0
        for place in places:
            value = torch.randint(0, task.modulus, (1,)).item()
            ids[row, place], ids[row, place + 1] = task.marker_ids[0], value
            total += value
        labels[row] = total % task.modulus
    return ids, labels


class Plain:
    def __init__(self, run):
        self.run, self.model = run, PlainModel(run)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.data = 0.0

    def steps(self, count):
        for _ in range(count):
            begin = time.process_time()
            ids, labels = plain_batch(self.run)
            self.data += time.process_time() - begin
            loss = cross_entropy(self.model(ids), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            loss.item()


class Ours:
    """One step as `train_seeds` takes it, for one seed or several in one program."""

    def __init__(self, run, seeds):
        self.streams = [run.batches(seed) for seed in range(seeds)]
        self.stack = StackedModels([run.model() for _ in range(seeds)], readout_loss)
        self.optimizer, self.schedule = OptimizerSettings().build(self.stack, 10_000, 0)
        self.data, self.step = 0.0, 0

    def steps(self, count):
        for _ in range(count):
            begin = time.process_time()
            batches = [stream(self.step) for stream in self.streams]
            batch = type(batches[0])(
                *(torch.stack(each) for each in zip(*batches, strict=True))
            )
            self.data += time.process_time() - begin
            self.optimizer.zero_grad()
            loss = self.stack(batch).sum()
            loss.item()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.step += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("turns", 30), ("layers", 4), ("batch", 64), ("seeds", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    run = replace(MarkerRun(), layers=given.layers, batch_size=given.batch)
    torch.manual_seed(0)
    kinds = {
        "plain loop": (Plain(run), 1),
        "ours": (Ours(run, 1), 1),
        f"ours, {given.seeds} seeds at once": (Ours(run, given.seeds), given.seeds),
    }
    seconds = {name: [] for name in kinds}
    for each, _ in kinds.values():
        each.steps(STEPS)
        each.data = 0.0
    for _ in range(given.turns):
        for name, (each, seeds) in kinds.items():
            begin = time.process_time()
            each.steps(STEPS)
            seconds[name].append((time.process_time() - begin) / STEPS / seeds)
    whole = statistics.median(seconds["plain loop"])
    for name, (each, seeds) in kinds.items():
        mine = statistics.median(seconds[name])
        share = each.data / (sum(seconds[name]) * STEPS * seeds)
        ratio = statistics.median(
            a / b for a, b in zip(seconds["plain loop"], seconds[name], strict=True)
        )
        print(
            f"{name:28} {1000 * mine:7.1f} ms a step and seed, {ratio:5.2f} times as fast, "
            f"data {100 * share:5.2f} %"
        )
    print(
        f"(median of {given.turns} turns of {STEPS} steps; plain {1000 * whole:.1f} ms)"
    )


if __name__ == "__main__":
    main()
