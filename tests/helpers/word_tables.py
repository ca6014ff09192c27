"""Runs whose layer writes word classes: some in every run, some in one, born at known steps."""

import numpy as np
import torch

STEPS = (0, 10, 20, 40, 80)
WORDS, SHARED, PRIVATE, WIDTH = 40, 6, 3, 24


class Table(torch.nn.Module):
    """An embedding that is read as a layer."""

    def __init__(self, rows):
        super().__init__()
        self.embedding = torch.nn.Embedding.from_pretrained(rows, freeze=False)
        self.layer = torch.nn.Identity()

    def forward(self, input_ids, attention_mask=None):
        # Noise of a token in its context: noise of a word would make it a concept of all runs.
        before = (input_ids * torch.arange(1, 1 + input_ids.shape[1])).cumsum(1)[
            ..., None
        ]
        noise = torch.sin(before * torch.arange(1, 1 + WIDTH) * 7.3)
        return self.layer(self.embedding(input_ids) + 0.3 * noise)


def rows_of_run(seed):
    """Six word classes in every run, born at steps of its own; three more in each run alone."""
    rng = np.random.default_rng(seed)
    names = [
        *range(SHARED),
        *range(SHARED + seed * PRIVATE, SHARED + (seed + 1) * PRIVATE),
    ]
    directions = rng.normal(size=(len(names), WIDTH)) * 3
    born = [i % 4 for i in range(len(names))]
    found = []
    for t in range(len(STEPS)):
        rows = np.zeros((WORDS, WIDTH))
        for name, direction, start in zip(names, directions, born, strict=True):
            if t >= start:
                rows[[2 * name, 2 * name + 1]] += direction
        found.append(rows)
    return found


def models_of(seed, pieces=1):
    """Return models by step; of several `pieces` of a word only the last, first in the table."""
    found = {}
    for step, rows in zip(STEPS, rows_of_run(seed), strict=True):
        table = np.concatenate([rows, np.zeros(((pieces - 1) * WORDS, WIDTH))])
        found[step] = Table(torch.tensor(table, dtype=torch.float32))
    return found
