"""Small trajectories with known truth, and studies of them."""

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

import ontogeny as og
from ontogeny import needs
from ontogeny.observables import Observable, by_layer

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
LAYERS = "model.layers.*.mlp"


def tiny_model(seed=0, layers=2, width=16, vocabulary=40):
    from transformers import EuroBertConfig, EuroBertForMaskedLM

    torch.manual_seed(seed)
    config = EuroBertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=24,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        mask_token_id=1,
        bos_token_id=2,
        eos_token_id=3,
    )
    model = EuroBertForMaskedLM(config).eval()
    # Larger weights than the default: activations that differ visibly.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)
    return model


def tiny_inputs(texts=24, seed=0, vocabulary=40):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 14, texts)
    ids = np.zeros((texts, 14), dtype=np.int64)
    mask = np.zeros((texts, 14), dtype=bool)
    for row, length in enumerate(lengths):
        ids[row, :length] = rng.integers(4, vocabulary, length)
        mask[row, :length] = True
    return og.Inputs.from_tokens(ids, mask=mask, special=~mask, mask_token_id=1)


def developing(steps=STEPS, seed=0):
    """Weights go from one random model to another along an S-curve, with a little noise."""
    first, last = tiny_model(2 * seed), tiny_model(2 * seed + 1)
    models = {}
    for i, step in enumerate(steps):
        share = 1 / (1 + np.exp(-(i - len(steps) / 2)))
        model = copy.deepcopy(first)
        generator = torch.Generator().manual_seed(i)
        with torch.no_grad():
            for a, b in zip(model.parameters(), last.parameters(), strict=True):
                noise = (
                    torch.randn(a.shape, generator=generator)
                    * 0.01
                    * a.std(unbiased=False)
                )
                a.copy_((1 - share) * a + share * b + noise)
        models[step] = model
    return models


def jittering(steps=STEPS, size=0.02):
    """Independent noise around one model at every step."""
    base, models = tiny_model(0), {}
    for i, step in enumerate(steps):
        model = copy.deepcopy(base)
        generator = torch.Generator().manual_seed(100 + i)
        with torch.no_grad():
            for p in model.parameters():
                if p.ndim == 2:
                    p.add_(size * p.std() * torch.randn(p.shape, generator=generator))
        models[step] = model
    return models


def rotating(steps=STEPS):
    """The residual stream turns further and further; what the model computes stays the same."""
    base, models = tiny_model(0), {}
    width = base.config.hidden_size
    skew = torch.randn(
        width, width, generator=torch.Generator().manual_seed(7)
    ).double()
    skew = (skew - skew.T) / width
    for i, step in enumerate(steps):
        models[step] = rotated(base, torch.matrix_exp(0.4 * i * skew))
    return models


def rotated(base, Q):
    """Return a model with residual stream x Q: the same function, as its norms have unit gain."""
    model = copy.deepcopy(base)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                assert bool((p == 1).all())
            elif name.endswith(("o_proj.weight", "down_proj.weight")):
                p.copy_((Q.T @ p.double()).float())  # writes into the stream
            elif p.ndim == 2:
                # Reads from it (embedding rows lie in it).
                p.copy_((p.double() @ Q).float())
    return model


def record(models, folder, **options):
    """Write models as a Recorder does and return the trajectory."""
    recorder = og.Recorder(folder, every=lambda step: True)
    for step, model in models.items():
        recorder(step, model)
    return og.Trajectory.from_folder(folder, **options)


def observables(extractors=("pca", "ica"), n_concepts=4):
    return [
        og.observables.Loss(),
        og.observables.ActivationDecay(LAYERS),
        *(
            og.observables.Concepts(e, n_concepts=n_concepts, layers=LAYERS)
            for e in extractors
        ),
        og.observables.AttentionEntropy(),
        og.observables.WeightRank("model.layers.*.mlp.*.weight", n_draws=40),
    ]


@dataclass(frozen=True)
class ActivationNorm(Observable):
    """A user's observable, as short as it can be."""

    layers: str = LAYERS
    kind: ClassVar[str] = "activation-norm"

    def needs(self):
        return [needs.Activations(self.layers)]

    def observe(self, reading, state):
        return by_layer(
            reading[self.needs()[0]], lambda _, a: {"norm": a.norm(dim=1).mean()}
        )


class Counting:
    """A progress that remembers what it was told."""

    def __init__(self):
        self.notes, self.labels, self.cells = [], [], 0

    def note(self, text):
        self.notes.append(text)

    def start(self, tasks, cells):
        self.tasks, self.planned = tasks, cells

    def advance(self, label, cells, seconds):
        self.labels.append(label)
        self.cells += cells

    def finish(self):
        pass
