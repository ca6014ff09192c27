"""Tiny random models of every family that has short names, and inputs for them."""

import numpy as np
import torch
import transformers as t

from ontogeny import Inputs

VOCABULARY, WIDTH, HEADS, LAYERS = 64, 32, 4, 2
LENGTHS = (5, 19, 1, 12, 8, 8, 17, 3)
MASK = 4
_COMMON = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_GROUPED = {"num_key_value_heads": 2, "head_dim": 8}


def _gpt2(vocab_size):
    return t.GPT2LMHeadModel(
        t.GPT2Config(
            vocab_size=vocab_size,
            n_positions=40,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def _t5(vocab_size):
    return t.T5EncoderModel(
        t.T5Config(
            vocab_size=vocab_size,
            d_model=WIDTH,
            d_kv=8,
            d_ff=48,
            num_layers=LAYERS,
            num_heads=HEADS,
        )
    )


def _of(config, model, **other):
    return lambda size: model(config(**{**_COMMON, "vocab_size": size, **other}))


_MAKERS = {
    "gpt2": _gpt2,
    "gpt_neox": _of(t.GPTNeoXConfig, t.GPTNeoXForCausalLM),
    "gpt_neox sequential": _of(
        t.GPTNeoXConfig, t.GPTNeoXForCausalLM, use_parallel_residual=False
    ),
    "llama": _of(t.LlamaConfig, t.LlamaForCausalLM, **_GROUPED),
    "olmo": _of(t.OlmoConfig, t.OlmoForCausalLM),
    "olmo2": _of(t.Olmo2Config, t.Olmo2ForCausalLM),
    "qwen2": _of(t.Qwen2Config, t.Qwen2ForCausalLM, num_key_value_heads=2),
    "qwen3": _of(t.Qwen3Config, t.Qwen3ForCausalLM, **_GROUPED),
    "gemma": _of(t.GemmaConfig, t.GemmaForCausalLM, **_GROUPED),
    "gemma2": _of(t.Gemma2Config, t.Gemma2ForCausalLM, **_GROUPED),
    "gemma3_text": _of(t.Gemma3TextConfig, t.Gemma3ForCausalLM, **_GROUPED),
    "eurobert": _of(t.EuroBertConfig, t.EuroBertForMaskedLM, num_key_value_heads=2),
    "bert": _of(t.BertConfig, t.BertForMaskedLM),
    "roberta": _of(
        t.RobertaConfig, t.RobertaForMaskedLM, pad_token_id=1, bos_token_id=0
    ),
    "modernbert": _of(
        t.ModernBertConfig,
        t.ModernBertForMaskedLM,
        cls_token_id=1,
        sep_token_id=2,
        local_attention=8,
    ),
    "t5": _t5,
}
NAMES = tuple(_MAKERS)
FUSED = ("gpt2", "gpt_neox", "modernbert")
NORMED_QUERIES = ("olmo2", "qwen3", "gemma3_text")


def build(name, seed=0, vocabulary=VOCABULARY):
    """Build a random model whose norms, biases and positions are no identities or zeros."""
    torch.manual_seed(seed)
    model = _MAKERS[name](vocabulary).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def token_lists(lengths=LENGTHS, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(5, VOCABULARY, length).tolist() for length in lengths]


def inputs_of(lengths=LENGTHS, side="right", pad_token_id=0):
    inputs = Inputs.from_tokens(
        token_lists(lengths),
        mask_token_id=MASK,
        pad_token_id=pad_token_id,
        vocab_size=VOCABULARY,
    )
    return inputs.padded(side)
