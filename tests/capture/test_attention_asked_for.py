"""Attention maps with sinks, and of transformers models that give them only when asked."""

import numpy as np
import pytest
import torch
import transformers as t

from helpers.capture_models import OwnModel, inputs_of
from ontogeny import capture
from ontogeny.errors import StudyWarning

SIZES = {"vocab_size": 64, "max_position_embeddings": 40}
NAMED = SIZES | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = SIZES | {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4}
DECODER |= {"decoder_ffn_dim": 48}


def gpt_oss():
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1, "pad_token_id": 0}
    kinds = ["sliding_attention", "full_attention"]
    return t.GptOssForCausalLM(
        t.GptOssConfig(
            **NAMED,
            num_key_value_heads=2,
            head_dim=8,
            intermediate_size=48,
            layer_types=kinds,
            sliding_window=8,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
            **experts,
        )
    )


def falcon(alibi):
    sizes = {
        "vocab_size": 64,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    return t.FalconForCausalLM(t.FalconConfig(**sizes, alibi=alibi))


MODELS = {
    "gpt-oss": gpt_oss,
    "falcon": lambda: falcon(False),
    "falcon alibi": lambda: falcon(True),
    "openai": lambda: t.OpenAIGPTLMHeadModel(
        t.OpenAIGPTConfig(vocab_size=64, n_positions=40, n_embd=32, n_layer=2, n_head=4)
    ),
    "mvp": lambda: t.MvpForCausalLM(t.MvpConfig(**DECODER)),
    "trocr": lambda: t.TrOCRForCausalLM(t.TrOCRConfig(**DECODER)),
    "xlm": lambda: t.XLMWithLMHeadModel(
        t.XLMConfig(vocab_size=64, emb_dim=32, n_layers=2, n_heads=4, causal=True)
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_has_the_entropy_of_the_maps_that_the_model_returns(name):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    inputs = inputs_of((12, 7, 12))
    found = capture.attention_entropy(model, inputs)
    # Of Falcon, maps beside the kernel look ahead.
    model.config._attn_implementation = "eager"
    sums, queries = np.zeros((2, 4)), 0
    for ids, mask in zip(inputs.ids, inputs.mask, strict=True):
        with torch.no_grad():
            maps = model(
                torch.tensor(ids[mask])[None], output_attentions=True
            ).attentions
        weights = torch.stack(maps)[:, 0].double()
        p = weights / weights.sum(-1, keepdim=True)
        sums += torch.special.entr(p).sum(-1).sum(-1).numpy()
        assert (p.triu(1) == 0).all()
        queries += p.shape[-1]
    np.testing.assert_allclose(found.values, sums / queries, rtol=1e-4)


def test_layers_whose_maps_are_left_out_are_named():
    model = OwnModel()
    model.blocks[1].attention.register_forward_hook(
        lambda _m, _a, o: (o[0], o[1] - 0.5)
    )
    with pytest.warns(
        StudyWarning, match=r"blocks\.1\.attention give .* are no attention maps"
    ):
        found = capture.attention_entropy(model, inputs_of())
    assert found.layer.values.tolist() == ["blocks.0.attention", "blocks.2.attention"]
