"""Small causal models of one's own, each odd in one way, and what they give by hand."""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from ontogeny import Inputs

VOCABULARY, WIDTH = 30, 12


class Plain(nn.Module):
    """Every token sees the mean of itself and of those before it."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def matrix(self):
        return self.mix.weight

    def hidden(self, ids):
        x = self.embed(ids)
        mean = x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
        return x + torch.tanh(F.linear(mean, self.matrix(), self.mix.bias))

    def forward(self, ids):
        return self.head(self.hidden(ids))


class Probabilities(Plain):
    def forward(self, ids):
        return super().forward(ids).softmax(-1)


class LogProbabilities(Plain):
    def forward(self, ids):
        return super().forward(ids).log_softmax(-1)


class Surprises(Plain):
    def forward(self, ids):
        return -super().forward(ids).log_softmax(-1)


class Bits(Plain):
    def forward(self, ids):
        return super().forward(ids).log_softmax(-1) / math.log(2)


class Digits(Plain):
    def forward(self, ids):
        return super().forward(ids).log_softmax(-1) / math.log(10)


class Percent(Plain):
    def forward(self, ids):
        return 100 * super().forward(ids).softmax(-1)


class FixedLength(Plain):
    """Has a row of numbers for each of four places, and takes no other length."""

    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.randn(4, WIDTH))

    def hidden(self, ids):
        return super().hidden(ids) + self.place


class UnreadAnswer(FixedLength):
    """Is not shown the last of five tokens, and gives a row for it all the same."""

    def forward(self, ids):
        logits = super().forward(ids[:, :-1])
        return torch.cat([logits, logits[:, -1:]], 1)


class Odds(Plain):
    """Returns exp(logits), which nothing tells from logits for sure."""

    def forward(self, ids):
        return super().forward(ids).exp()


class Centred(Plain):
    """Takes the largest logit of a batch from all, which changes no prediction."""

    def forward(self, ids):
        logits = super().forward(ids)
        return logits - logits.max()


class ShiftsInside(Plain):
    """Puts a token before a text and drops its last: the row of a token predicts that token."""

    def forward(self, ids):
        return super().forward(F.pad(ids, (1, 0), value=1)[:, :-1])


class Teacher(nn.Module):
    """A recurrent decoder that is given the tokens before."""

    def __init__(self):
        super().__init__()
        self.embed, self.start = (
            nn.Embedding(VOCABULARY, WIDTH),
            nn.Parameter(torch.ones(WIDTH)),
        )
        self.cell, self.head = (
            nn.GRU(WIDTH, WIDTH, batch_first=True),
            nn.Linear(WIDTH, VOCABULARY),
        )

    def forward(self, ids):
        begin = self.start.expand(len(ids), 1, WIDTH)
        return self.head(self.cell(torch.cat([begin, self.embed(ids)[:, :-1]], 1))[0])


class HiddenFirst(Plain):
    """Gives hidden features, wider than the vocabulary, before the logits."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(WIDTH, VOCABULARY + 4)

    def forward(self, ids):
        hidden = self.hidden(ids)
        return self.wide(hidden), self.head(hidden)


class LogitsFirst(HiddenFirst):
    def forward(self, ids):
        return super().forward(ids)[::-1]


class Named(HiddenFirst):
    def forward(self, ids):
        return dict(zip(("features", "output"), super().forward(ids), strict=True))


class TimeFirst(nn.Module):
    """A recurrent model that wants (tokens, texts)."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(VOCABULARY, WIDTH), nn.LSTM(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.head(self.cell(self.embed(ids))[0])


class MaskReversed(Plain):
    def forward(self, ids, attention_mask=None):
        hidden = self.hidden(ids)
        if attention_mask is not None:
            hidden = hidden * (1 - attention_mask)[..., None]
        return self.head(hidden)


class CountsFromTheEnd(Plain):
    """Counts positions as if texts were padded on the left, wherever padding is."""

    def forward(self, ids, attention_mask=None):
        mask = torch.ones_like(ids) if attention_mask is None else attention_mask
        place = torch.arange(ids.shape[1]) - ids.shape[1] + mask.sum(1, keepdim=True)
        return self.head(self.hidden(ids) * (1 + place.clamp_min(0))[..., None] / 4)


class TargetsTemper(Plain):
    """Gives other logits where it is given targets, and does not need them."""

    def forward(self, ids, targets=None):
        return super().forward(ids) * (1 if targets is None else 0.5)


class TargetsLeak(Plain):
    """Needs targets for logits of every token, and looks at them."""

    def forward(self, ids, targets=None):
        hidden = self.hidden(ids)
        if targets is None:
            return self.head(hidden[:, -1:])
        return self.head(hidden + self.embed(targets))


class DropsLayers(Plain):
    """Drops its layer in one of ten calls, by Python's random numbers."""

    def hidden(self, ids):
        return self.embed(ids) if random.random() < 0.1 else super().hidden(ids)


class DropsWords(Plain):
    def forward(self, ids):
        return super().forward(torch.where(torch.rand(ids.shape) < 0.01, 0, ids))


class NoisyRouter(Plain):
    """Noise of its router seldom changes the expert."""

    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 4 * WIDTH)

    def hidden(self, ids):
        hidden = super().hidden(ids)
        gate = self.router(hidden)
        gate = gate + 0.03 * torch.randn_like(gate)
        chosen = F.one_hot(gate.argmax(-1), 4)[..., None]
        return hidden + (self.experts(hidden).unflatten(-1, (4, WIDTH)) * chosen).sum(
            -2
        )


class DrawsInVain(Plain):
    """Draws a number at every call, as layers do that are dropped in training alone."""

    def forward(self, ids):
        drawn = torch.rand([])
        return super().forward(ids) + (drawn if self.training else 0)


class LargestSoFar(Plain):
    """Divides by the largest feature that it has seen."""

    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.zeros(()))

    def hidden(self, ids):
        hidden = super().hidden(ids)
        self.largest.copy_(torch.maximum(self.largest, hidden.abs().max()))
        return 4 * hidden / self.largest


class KeptByShape(Plain):
    """Keeps the first token's vector of the first batch of each shape."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def hidden(self, ids):
        begin = self.kept.setdefault(ids.shape, self.embed(ids[:, :1]).detach())
        return super().hidden(ids) + begin


class Alternating(Plain):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, ids):
        self.calls += 1
        return super().forward(ids) * (1 + self.calls % 2)


class Full(Plain):
    """Its layer takes 60 tokens of a batch, and passes the others by."""

    def hidden(self, ids):
        hidden = super().hidden(ids)
        fits = (torch.arange(ids.numel()) < 60).view(ids.shape)[..., None]
        return torch.where(fits, hidden, self.embed(ids))


class LooksAheadInLongTexts(Plain):
    def hidden(self, ids):
        hidden = super().hidden(ids)
        return hidden + hidden.mean(1, keepdim=True) if ids.shape[1] > 16 else hidden


class HookOfPlaces(Plain):
    """A hook on its head adds what depends on the place of a token."""

    def __init__(self):
        super().__init__()
        self.head.register_forward_hook(HookOfPlaces._tilted)

    @staticmethod
    def _tilted(_module, _args, output):
        shape = output.shape[1], VOCABULARY
        return (
            output
            + torch.linspace(0, 3, shape[0] * shape[1]).view(shape)[None, : shape[0]]
        )

    def get_output_embeddings(self):
        return self.head


class PadsRight(Plain):
    def forward(self, ids):
        return super().forward(F.pad(ids, (0, -ids.shape[1] % 8)))


class Prefixed(Plain):
    def forward(self, ids):
        return super().forward(F.pad(ids, (3, 0), value=1))


class PadsBothSides(Plain):
    def forward(self, ids):
        return super().forward(F.pad(ids, (2, -ids.shape[1] % 8), value=1))


class Dropping(Plain):
    def forward(self, ids):
        return F.dropout(super().forward(ids), 0.1)


class Remembering(Plain):
    def __init__(self):
        super().__init__()
        self.last = 0.0

    def forward(self, ids):
        logits = super().forward(ids) + self.last
        self.last = logits.mean(dim=(0, 1))
        return logits


class Flattening(Plain):
    def forward(self, ids, targets=None):
        logits = super().forward(ids)
        return (
            (logits, None)
            if targets is None
            else (logits.flatten(0, 1), torch.zeros(()))
        )


class LastOnly(Plain):
    def forward(self, ids):
        return super().forward(ids)[:, -1]


class TokensFirst(Plain):
    def forward(self, ids):
        return super().forward(ids).transpose(0, 1)


class Overwriting(Plain):
    def forward(self, ids):
        logits = super().forward(ids)
        ids.zero_()
        return logits


class Crowded(Plain):
    """At each place only the text of a batch with the largest gate passes: experts are full."""

    def forward(self, ids):
        hidden = self.hidden(ids)
        gate = hidden[..., :1]
        return self.head(hidden * (gate >= gate.amax(dim=0)) + 0.3 * hidden)


class SpectralNorm(Plain):
    def __init__(self):
        super().__init__()
        self.mix = nn.utils.parametrizations.spectral_norm(self.mix)


class WeightNorm(Plain):
    def __init__(self):
        super().__init__()
        self.mix = nn.utils.parametrizations.weight_norm(self.mix)


class Hooked(Plain):
    def __init__(self):
        super().__init__()
        self.mix.register_forward_hook(lambda _module, _args, output: 0.5 * output)
        self.head.register_forward_hook(lambda _module, _args, output: 0.5 * output)


class Double(Plain):
    def __init__(self):
        super().__init__()
        self.double()

    def hidden(self, ids):
        return self.embed(ids)


class Table(Plain):
    def forward(self, ids):
        return {"loss": torch.zeros(()), "logits": super().forward(ids)}


class Cached(Plain):
    """Keeps a normalised weight from its first call in evaluation mode on."""

    kept = None

    def matrix(self):
        if self.kept is None:
            self.kept = F.normalize(self.mix.weight, dim=1).detach()
        return self.kept


class Fused(Plain):
    """Adds a second matrix to the first when it goes to evaluation mode, as adapters do."""

    def __init__(self):
        super().__init__()
        self.further, self.fused = nn.Linear(WIDTH, WIDTH), False

    def train(self, mode=True):
        if mode == self.fused:
            sign = -1 if mode else 1
            self.mix.weight.data += sign * self.further.weight.data
            self.fused = not mode
        return super().train(mode)


class Computing(Plain):
    """Computes a buffer that is not stored, when its weights are loaded."""

    def __init__(self):
        super().__init__()
        self.register_buffer("normal", torch.zeros(WIDTH, WIDTH), persistent=False)
        self.register_load_state_dict_post_hook(Computing._compute)

    def _compute(self, _keys):
        self.normal.copy_(F.normalize(self.mix.weight.data, dim=1))

    def matrix(self):
        return self.normal


class Unstored(Plain):
    """Has a random matrix that is not stored with its weights."""

    def __init__(self):
        super().__init__()
        self.register_buffer("random", torch.randn(WIDTH, WIDTH), persistent=False)

    def matrix(self):
        return self.mix.weight @ self.random


class Unsaved(Plain):
    """Is scaled by what no checkpoint would hold: an attribute, a buffer or a hook."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.scale, self.table = kind, 1.0, [1.0, 1.0]
        self.tensor = torch.ones(())
        self.register_buffer("buffer", torch.ones(()), persistent=False)

    def put(self, scale, hook):
        if self.kind == "attribute":
            self.scale = scale
        elif self.kind == "list":
            self.table = [1.0, scale]
        elif self.kind == "hook" and scale != 1:
            self.head.register_forward_hook(hook)
        elif self.kind in ("tensor", "buffer"):
            getattr(self, self.kind).fill_(scale)

    def forward(self, ids):
        return (
            super().forward(ids)
            * self.scale
            * self.table[1]
            * self.tensor
            * self.buffer
        )


class Scaled(Plain):
    """Is built from the settings in each checkpoint, of which no shape shows the scale."""

    def __init__(self, config):
        super().__init__()
        self.scale = config["rope"]["scale"]

    def forward(self, ids):
        return super().forward(ids) * self.scale


def texts_of(lengths=(12, 5, 9, 12, 7, 12), seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = [
        torch.randint(2, VOCABULARY, (n,), generator=generator).tolist()
        for n in lengths
    ]
    return Inputs.from_tokens(rows)


def nats(model, inputs):
    """Return the loss of each text in nats per token, each read alone, by hand."""
    losses = []
    with torch.no_grad():
        for ids, mask in zip(inputs.ids, inputs.mask, strict=True):
            row = torch.tensor(ids[mask])
            logits = model.eval()(row[None].clone())
            logits = logits["logits"] if isinstance(logits, dict) else logits
            logits = logits[0] if isinstance(logits, tuple) else logits
            logits = (
                logits[0, -len(row) :] if isinstance(model, Prefixed) else logits[0]
            )
            losses.append(
                float(F.cross_entropy(logits[: len(row) - 1].float(), row[1:]))
            )
    return losses
