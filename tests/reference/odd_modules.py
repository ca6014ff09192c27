"""Decoders of one's own, as a user brings them: `ontogeny study --model odd_modules.py:NAME`."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

VOCABULARY = 40  # a few rows more than the tokenizer knows
WIDTH = 16
LONGEST = 64
PREFIX = 4
MULTIPLE = 8


class Attention(nn.Module):
    """Causal, with two heads; gives its weights back beside its output."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (2, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(ahead, -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2)), weights


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attn, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 24), nn.GELU(), nn.Linear(24, WIDTH))

    def forward(self, x):
        x = x + self.attn(self.before_attn(x))[0]
        return x + self.mlp(self.before_mlp(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LONGEST + PREFIX, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def read(self, x):
        x = x + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    def forward(self, ids):
        return self.read(self.words(ids))


class PadsInside(Decoder):
    """Reads a multiple of eight tokens, as some kernels ask for, and gives back as many as came."""

    def forward(self, ids):
        padded = nn.functional.pad(ids, (0, -ids.shape[1] % MULTIPLE))
        return super().forward(padded)[:, : ids.shape[1]]


class PadsAndKeeps(Decoder):
    """The same, and gives back the padded length."""

    def forward(self, ids):
        return super().forward(nn.functional.pad(ids, (0, -ids.shape[1] % MULTIPLE)))


class Prefixed(Decoder):
    """Reads trained tokens before every text, as prompt tuning does, and gives all rows back."""

    def __init__(self):
        super().__init__()
        self.prefix = nn.Parameter(torch.randn(PREFIX, WIDTH))

    def forward(self, ids):
        prefix = self.prefix.expand(len(ids), -1, -1)
        return self.read(torch.cat([prefix, self.words(ids)], dim=1))


class WeightNormed(Decoder):
    """Directions and lengths of the rows of each MLP are parameters of their own."""

    def __init__(self):
        super().__init__()
        for block in self.blocks:
            weight_norm(block.mlp[0])
            weight_norm(block.mlp[2])


class Shared(nn.Module):
    """One block that is called three times."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.block = Block()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for _ in range(3):
            x = self.block(x)
        return self.head(x)
