"""A decoder of one's own, as nanoGPT writes it: a file of code, its checkpoints and its tokens."""

import numpy as np
import torch

from ontogeny import own_code

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, -1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y)


class Attending(Attention):
    def forward(self, x):
        q, k, v = (t[:, None] for t in self.c_attn(x).chunk(3, -1))
        seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        weights = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf).softmax(-1)
        return self.c_proj((weights @ v)[:, 0]), weights


class Block(nn.Module):
    def __init__(self, width, attention):
        super().__init__()
        self.attn = attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))

    def forward(self, x):
        y = self.attn(x)
        x = x + (y[0] if isinstance(y, tuple) else y)
        return x + self.mlp(x)


class Config:
    block_size = 24


class GPT(nn.Module):
    def __init__(self, attention=Attention):
        super().__init__()
        self.config = Config()
        self.wte, self.wpe = nn.Embedding(50, 16), nn.Embedding(24, 16)
        self.h = nn.ModuleList([Block(16, attention) for _ in range(3)])
        self.lm_head = nn.Linear(16, 50, bias=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(x)


class LastOnly(GPT):
    def forward(self, idx):
        return super().forward(idx)[:, [-1]], None


def build():
    return GPT()


def attending():
    return GPT(Attending)
"""
OBSERVABLE = """
from dataclasses import dataclass

import ontogeny as og
from ontogeny import needs
from ontogeny.observables import by_layer


@dataclass(frozen=True)
class ActivationNorm(og.Observable):
    layers: str = "mlp"

    def needs(self):
        return [needs.Activations(self.layers)]

    def observe(self, reading, state):
        return by_layer(reading[self.needs()[0]], lambda path, a: {"norm": a.norm(dim=1).mean()})


def not_a_class():
    return None
"""
STEPS = (0, 10, 20, 40)


def write_own(folder, steps=STEPS):
    """Write model.py, mine.py, val.bin and out/ckpt_STEP.pt as nanoGPT does, compiled."""
    (folder / "model.py").write_text(CODE)
    (folder / "mine.py").write_text(OBSERVABLE)
    rng = np.random.default_rng(0)
    rng.integers(0, 50, 2000).astype(np.uint16).tofile(folder / "val.bin")
    torch.manual_seed(0)
    model = own_code.load("model.py:build", folder)()
    (folder / "out").mkdir()
    for step in steps:
        state = {
            f"_orig_mod.{name}": tensor for name, tensor in model.state_dict().items()
        }
        optimizer = {"state": {}, "param_groups": [{"lr": 0.1}]}
        whole = {
            "model": state,
            "optimizer": optimizer,
            "iter_num": step,
            "model_args": {"n": 3},
        }
        torch.save(whole, folder / "out" / f"ckpt_{step}.pt")
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p))
    return folder
