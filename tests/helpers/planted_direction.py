"""A run whose layer comes to write one direction where a text has a label; its loss reads it."""

import numpy as np
import torch
from torch import nn

import ontogeny as og

VOCABULARY, WIDTH, LENGTH = 24, 48, 8
STEPS = (0, 10, 20, 30, 40, 50, 60, 70)
BORN = 40


def direction(seed=0):
    return np.random.default_rng([seed, 3]).normal(size=WIDTH)


class Labelled(nn.Module):
    """``out`` writes the token, noise, and `strength` of a direction after a first id below 12.

    Where the direction is there, the head expects ids of the upper half.
    """

    def __init__(self, strength=0.0, step=0, seed=0, needed=True, spread=1.0):
        super().__init__()
        rng = np.random.default_rng([seed, 1])
        self.words = nn.Embedding.from_pretrained(
            torch.from_numpy(rng.normal(size=(VOCABULARY, WIDTH))).float(), freeze=False
        )
        unit = direction(seed) / np.linalg.norm(direction(seed))
        self.written = nn.Parameter(torch.from_numpy(strength * unit).float())
        drift = np.random.default_rng([seed, 5, step]).normal(size=(4999, WIDTH))
        self.register_buffer("noise", torch.from_numpy(spread * drift).float())
        self.out = nn.Identity()
        upper = np.where(np.arange(VOCABULARY) < VOCABULARY // 2, -1.0, 1.0)
        head = 2.0 * np.outer(upper, unit) if needed else np.zeros((VOCABULARY, WIDTH))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = nn.Parameter(torch.from_numpy(head).float())

    def forward(self, input_ids, attention_mask=None):
        marked = (input_ids[:, :1] < VOCABULARY // 2).float() - 0.5
        places = torch.arange(1, input_ids.shape[1] + 1)
        history = 31 * input_ids.cumsum(1) + 997 * places + 7 * input_ids
        hidden = self.words(input_ids) + self.noise[history % len(self.noise)]
        return self.head(self.out(hidden + marked[..., None] * self.written))


def run(born=BORN, strength=3.0, steps=STEPS, seed=0, **options):
    models = {
        step: Labelled(strength if step >= born else 0.0, step, seed, **options)
        for step in steps
    }
    return og.Trajectory.from_models(models)


def texts(count=120, seed=0):
    """Texts whose later ids are of the upper half where the label is 1."""
    rng = np.random.default_rng([seed, 2])
    first = rng.integers(0, VOCABULARY, count)
    labels = (first < VOCABULARY // 2).astype(int)
    low = np.where(labels == 1, VOCABULARY // 2, 0)[:, None]
    later = low + rng.integers(0, VOCABULARY // 2, (count, LENGTH - 1))
    ids = np.concatenate([first[:, None], later], axis=1)
    return og.Inputs.from_tokens(ids, labels=labels.tolist(), vocab_size=VOCABULARY)
