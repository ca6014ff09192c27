"""Revisions for the stand-in Hub: tiny models as the bytes of their files."""

import io
import json

import torch
import transformers
from safetensors.torch import save
from torch import nn

from helpers.hub_server import folder_files

REPO = "lab/tiny"
TOKENIZER = {
    "version": "1.0",
    "model": {
        "type": "WordLevel",
        "vocab": {"a": 0, "b": 1, "[UNK]": 2},
        "unk_token": "[UNK]",
    },
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "truncation": None,
    "padding": None,
}


def tokenizer_files(**vocabulary):
    model = {
        **TOKENIZER["model"],
        "vocab": {**TOKENIZER["model"]["vocab"], **vocabulary},
    }
    return {
        "tokenizer.json": json.dumps({**TOKENIZER, "model": model}).encode(),
        "tokenizer_config.json": b'{"tokenizer_class": "PreTrainedTokenizerFast"}',
    }


def linear(seed):
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def linear_files(seed, **more):
    return {"model.safetensors": save(dict(linear(seed).state_dict())), **more}


def bin_files(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return {"pytorch_model.bin": buffer.getvalue()}


def neox(seed):
    torch.manual_seed(seed)
    config = transformers.GPTNeoXConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        vocab_size=40,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=0,
    )
    return transformers.GPTNeoXForCausalLM(config).eval()


def model_files(model, folder, shard="5GB"):
    model.save_pretrained(folder, max_shard_size=shard)
    return folder_files(folder)


def two_shards(first, second):
    """Return a checkpoint in two shards, each made from a number."""
    torch.manual_seed(first)
    a = torch.randn(8, 40)
    torch.manual_seed(second)
    b = torch.randn(8, 40)
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"metadata": {}, "weight_map": {"a": names[0], "b": names[1]}}
    return {
        names[0]: save({"a": a}),
        names[1]: save({"b": b}),
        "model.safetensors.index.json": json.dumps(index).encode(),
    }
