"""A run whose layer comes to write a direction of its own for known words."""

import numpy as np
import torch
from torch import nn

import ontogeny as og
from helpers.described_examples import zipf_texts

WIDTH, WORDS = 16, 60
PLANTED = (3, 5, 7, 9, 12)
STEPS = (0, 10, 20, 40, 80, 160)


class LookupModel(nn.Module):
    """``out`` gives the word's row, and noise of its own in every text."""

    def __init__(self, rows, resettable=True):
        super().__init__()
        noise = np.random.default_rng(1).normal(size=(4999, WIDTH))
        self.register_buffer("noise", torch.from_numpy(0.3 * noise).float())
        self.words = nn.Embedding.from_pretrained(torch.from_numpy(rows).float())
        self.out = nn.Identity()
        if not resettable:
            self.scale = nn.Parameter(torch.ones(1))

    def forward(self, input_ids, attention_mask=None):
        places = torch.arange(1, input_ids.shape[1] + 1)
        history = (
            31 * input_ids
            + (input_ids * places**2).sum(dim=1, keepdim=True)
            + 997 * places
        )
        noise = self.noise[history % len(self.noise)]
        return self.out(self.words(input_ids) + noise)


def lookup_run(steps=STEPS, resettable=True):
    """Return the trajectory: nothing at step 0, then one planted word after the other."""
    directions = np.random.default_rng(0).normal(size=(len(PLANTED), WIDTH))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    models = {}
    for step in steps:
        rows = np.zeros((WORDS, WIDTH))
        for number, (word, direction) in enumerate(
            zip(PLANTED, directions, strict=True)
        ):
            rows[word] = 4.0 * (step >= STEPS[min(number + 1, 4)]) * direction
        models[step] = LookupModel(rows, resettable)
    return og.Trajectory.from_models(models)


def lookup_texts(**options):
    return zipf_texts(texts=120, length=24, words=WORDS, **options)
