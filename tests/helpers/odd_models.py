"""Small causal models of one's own, each odd in one way, and what they give by hand."""

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
        return (logits, None) if targets is None else (logits.flatten(0, 1), torch.zeros(()))


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


class Scaled(Plain):
    """Is built from the settings in each checkpoint, of which no shape shows the scale."""

    def __init__(self, config):
        super().__init__()
        self.scale = config["rope"]["scale"]

    def forward(self, ids):
        return super().forward(ids) * self.scale


def texts_of(lengths=(12, 5, 9, 12, 7, 12), seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(2, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
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
            logits = logits[0, -len(row) :] if isinstance(model, Prefixed) else logits[0]
            losses.append(float(F.cross_entropy(logits[: len(row) - 1].float(), row[1:])))
    return losses
