"""Tiny random models of the common families, and inputs for them."""

import numpy as np
import torch
import transformers
from torch import nn

from ontogeny import Inputs

VOCABULARY = 64
MASK = 4
LENGTHS = (5, 23, 1, 17, 8, 8, 20, 3)
FAMILIES = ("gpt2", "gpt_neox", "llama", "bert", "eurobert")
BLOCKS = {
    "gpt2": "h.*",
    "gpt_neox": "layers.*",
    "llama": "layers.*",
    "bert": "encoder.layer.*",
    "eurobert": "layers.*",
}
MLPS = {
    "gpt2": "h.*.mlp",
    "gpt_neox": "layers.*.mlp",
    "llama": "layers.*.mlp",
    "bert": "layer.*.intermediate",
    "eurobert": "layers.*.mlp",
}
CAUSAL = ("gpt2", "gpt_neox", "llama")


def build(family, layers=3, seed=0, head=True):
    """Build a random model of 16 features; without its head if `head` is false."""
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    t = transformers
    torch.manual_seed(seed)
    if family == "gpt2":
        config = t.GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=32,
            n_embd=16,
            n_layer=layers,
            n_head=4,
            bos_token_id=1,
            eos_token_id=2,
            resid_pdrop=0.1,
        )
        classes = t.GPT2LMHeadModel, t.GPT2Model
    elif family == "gpt_neox":
        config, classes = (
            t.GPTNeoXConfig(**sizes),
            (t.GPTNeoXForCausalLM, t.GPTNeoXModel),
        )
    elif family == "llama":
        config = t.LlamaConfig(num_key_value_heads=2, **sizes)
        classes = t.LlamaForCausalLM, t.LlamaModel
    elif family == "bert":
        config, classes = t.BertConfig(**sizes), (t.BertForMaskedLM, t.BertModel)
    else:
        config = t.EuroBertConfig(num_key_value_heads=2, mask_token_id=MASK, **sizes)
        classes = t.EuroBertForMaskedLM, t.EuroBertModel
    return classes[0 if head else 1](config).eval()


def token_lists(lengths=LENGTHS, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(5, VOCABULARY, length).tolist() for length in lengths]


def inputs_of(lengths=LENGTHS, seed=0, side="right"):
    rows = token_lists(lengths, seed)
    return Inputs.from_tokens(rows, mask_token_id=MASK, vocab_size=VOCABULARY).padded(
        side
    )


class Block(nn.Module):
    """A residual block whose attention returns (output, weights), like a nanoGPT of one's own."""

    def __init__(self, width, heads, causal, uniform):
        super().__init__()
        self.attention = OwnAttention(width, heads, causal, uniform)
        self.mlp = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
        )

    def forward(self, x, attention_mask):
        x = x + self.attention(x, attention_mask)[0]
        return x + self.mlp(x)


class OwnAttention(nn.Module):
    def __init__(self, width, heads, causal, uniform):
        super().__init__()
        self.heads, self.causal, self.uniform = heads, causal, uniform
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, attention_mask):
        b, t, m = x.shape
        q, k, v = (
            self.qkv(x)
            .reshape(b, t, 3, self.heads, m // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        scores = q @ k.transpose(-1, -2) * (0.0 if self.uniform else 1.0)
        if attention_mask is not None:
            scores = scores.masked_fill(
                attention_mask[:, None, None, :] == 0, -torch.inf
            )
        if self.causal:
            future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        weights = scores.softmax(dim=-1)
        return (weights @ v).transpose(1, 2).reshape(b, t, m), weights


class OwnModel(nn.Module):
    """A small transformer that owes nothing to any library; counts its calls."""

    def __init__(
        self, layers=3, width=16, heads=2, causal=True, uniform=False, masked=True
    ):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(
            [Block(width, heads, causal, uniform) for _ in range(layers)]
        )
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(width, VOCABULARY)
        self.masked = masked
        self.calls = [0] * layers

    def forward(self, idx, attention_mask=None):
        x = self.embed(idx)
        for index, block in enumerate(self.blocks):
            self.calls[index] += 1
            x = block(x, attention_mask if self.masked else None)
        return self.head(self.dropout(x))
