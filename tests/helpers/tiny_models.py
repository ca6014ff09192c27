"""Models of a few thousand parameters, of several architectures, with random weights."""

import torch
import transformers
from torch import nn

TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "vocab_size": 40,
    "max_position_embeddings": 16,
    **TOKENS,
}


def gpt2():
    config = transformers.GPT2Config(
        n_embd=16, n_layer=2, n_head=2, vocab_size=40, n_positions=16, **TOKENS
    )
    return transformers.GPT2LMHeadModel(config)


def gpt_neox():
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SIZES))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))


def eurobert():
    config = transformers.EuroBertConfig(
        **SIZES, mask_token_id=3, num_key_value_heads=1
    )
    return transformers.EuroBertForMaskedLM(config)


def mixtral():
    config = transformers.MixtralConfig(
        **SIZES, num_key_value_heads=1, num_local_experts=2
    )
    return transformers.MixtralForCausalLM(config)


class Own(nn.Module):
    """Tied weights, a persistent and a non-persistent buffer, a scalar parameter."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.randn(()))
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(3), persistent=False)

    def forward(self, input_ids):
        return self.head(self.scale * self.norm(self.embed(input_ids)))
