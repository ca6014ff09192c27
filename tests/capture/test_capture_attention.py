"""Attention entropy against closed forms and the maps that transformers returns."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers.capture_models import CAUSAL, FAMILIES, OwnModel, build, inputs_of
from ontogeny import Inputs, capture
from ontogeny.capture.attention.collected import attention_map
from ontogeny.errors import LayerMatchError, NonFiniteError
from ontogeny.needs import Attention


def read(model, inputs, layers="*", batch_size=16):
    need = Attention(layers)
    settings = capture.ReadingSettings(batch_size)
    return capture.read(model, [need], {"text": inputs}, settings)[need]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("causal", [True, False])
def test_uniform_attention_has_the_entropy_of_its_visible_keys(causal, side):
    inputs = inputs_of(side=side)
    data = read(OwnModel(causal=causal, uniform=True), inputs, batch_size=3)
    for text, length in enumerate(inputs_of().lengths):
        visible = np.arange(1, length + 1) if causal else np.full(length, length)
        np.testing.assert_allclose(
            data.entropy[:, :, text], np.log(visible).mean(), atol=2e-6
        )
        np.testing.assert_allclose(
            data.uniform[text], np.log(visible).mean(), atol=1e-10
        )
    assert data.tokens.values.tolist() == list(inputs_of().lengths)


def test_special_queries_are_left_out_but_stay_visible_keys():
    inputs = Inputs.from_tokens([[1, 5, 6, 2], [1, 7, 2], [1, 2]], special_ids=[1, 2])
    data = read(OwnModel(causal=True, uniform=True), inputs)
    expected = [(np.log(2) + np.log(3)) / 2, np.log(2), np.nan]
    np.testing.assert_allclose(data.entropy[0, 0], expected, atol=1e-6)
    np.testing.assert_allclose(data.uniform, expected, atol=1e-10)
    assert data.tokens.values.tolist() == [2, 1, 0]


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_maps_that_transformers_returns(family):
    model, inputs = build(family), inputs_of()
    with torch.no_grad():  # larger weights, so that attention is far from uniform
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "emb" not in name and "wte" not in name:
                parameter.mul_(20)
    data = read(model, inputs, batch_size=3)
    entropy = np.zeros((3, 4, len(inputs)))
    model.set_attn_implementation("eager")
    for text, length in enumerate(inputs.lengths):
        with torch.no_grad():
            maps = model(
                input_ids=torch.tensor(inputs.ids[text : text + 1, :length]),
                output_attentions=True,
            ).attentions
        for layer, weights in enumerate(maps):
            p = weights[0].double()
            entropy[layer, :, text] = (
                -(p * p.clamp_min(1e-300).log()).sum(-1).mean(-1).numpy()
            )
    np.testing.assert_allclose(data.entropy, entropy, rtol=1e-4, atol=1e-5)
    gap = (data.uniform - data.entropy).values
    assert gap.min() > -1e-5 and gap.max() > 0.1
    weighted = (entropy * inputs.lengths).sum(-1) / inputs.lengths.sum()
    mean = capture.attention_entropy(model, inputs, batch_size=5)
    assert mean.dims == ("layer", "head")
    np.testing.assert_allclose(mean, weighted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_uniform_is_that_of_the_models_own_mask(family):
    inputs = inputs_of()
    data = read(build(family), inputs, batch_size=3)
    for text, length in enumerate(inputs.lengths):
        visible = (
            np.arange(1, length + 1) if family in CAUSAL else np.full(length, length)
        )
        np.testing.assert_allclose(
            data.uniform[text], np.log(visible).mean(), atol=1e-10
        )


def test_uniform_of_a_sliding_window_counts_the_window():
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    model = MistralForCausalLM(
        MistralConfig(
            vocab_size=64,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=32,
            sliding_window=4,
            pad_token_id=0,
        )
    )
    data = read(model, inputs_of(lengths=(9, 2)))
    visible = np.minimum(np.arange(1, 10), 4)
    np.testing.assert_allclose(
        data.uniform, [np.log(visible).mean(), np.log(2) / 2], atol=1e-10
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_kernel_is_restored_also_after_an_error(family):
    model, inputs = build(family), inputs_of()
    assert model.config._attn_implementation == "sdpa"
    capture.attention_entropy(model, inputs)
    assert model.config._attn_implementation == "sdpa"
    with pytest.raises(LayerMatchError, match="returned attention weights"):
        capture.attention_entropy(model, inputs, first_norm(model))
    assert model.config._attn_implementation == "sdpa"


def first_norm(model):
    return next(
        path
        for path, module in model.named_modules()
        if "Norm" in type(module).__name__
    )


def test_a_parent_that_hands_its_childs_map_on_counts_once():
    layers = capture.attention_entropy(build("bert"), inputs_of()).layer.values.tolist()
    assert layers == [f"bert.encoder.layer.{i}.attention.self" for i in range(3)]
    chosen = capture.attention_entropy(build("bert"), inputs_of(), "layer.*.attention")
    assert chosen.layer.values.tolist() == [
        f"bert.encoder.layer.{i}.attention" for i in range(3)
    ]


def test_later_layers_are_not_run_once_the_maps_are_known():
    model, inputs = OwnModel(layers=4), inputs_of()
    for _ in range(2):  # the first time, a model of one's own is looked at
        model.calls = [0] * 4
        capture.attention_entropy(model, inputs, "blocks[:2].attention", batch_size=2)
    assert model.calls == [4, 4, 1, 1]


def test_layers_may_differ_in_heads():
    model = OwnModel()
    model.blocks[1].attention.heads = 4
    entropy = capture.attention_entropy(model, inputs_of())
    assert entropy.shape == (3, 4)
    assert np.isnan(entropy.values).sum(axis=1).tolist() == [2, 0, 2]


def test_fast_kernels_of_ones_own_are_an_error_not_silence():
    class Fast(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(64, 8)

        def forward(self, ids):
            x = self.embed(ids)
            return nn.functional.scaled_dot_product_attention(x, x, x)

    with pytest.raises(
        LayerMatchError, match="none of the 1 matching modules returned attention"
    ):
        capture.attention_entropy(Fast(), inputs_of())


def test_maps_that_are_not_finite_are_refused():
    model = OwnModel()
    with torch.no_grad():
        model.blocks[1].attention.qkv.weight[0, 0] = torch.nan
    with pytest.raises(
        NonFiniteError, match=r"'blocks.1.attention' are not finite in 8 texts"
    ):
        capture.attention_entropy(model, inputs_of())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_maps_give_the_entropy_of_uniform_attention(dtype):
    data = read(OwnModel(causal=False, uniform=True).to(dtype), inputs_of())
    np.testing.assert_allclose(
        data.entropy, np.broadcast_to(data.uniform, data.entropy.shape), atol=2e-3
    )


def test_only_normalised_maps_count_as_attention():
    queries = torch.tensor([[True, True, False]])
    good = torch.full((1, 2, 3, 3), 1 / 3)
    assert attention_map((None, good), queries) is good
    assert attention_map(good, queries) is None
    assert attention_map((good * 2,), queries) is None
    assert attention_map((good[:, :, :2],), queries) is None
    assert attention_map((torch.ones(1, 2, 3, 3, dtype=torch.int64),), queries) is None
    signed = torch.tensor([2.0, -1.0, 0.0]).expand(1, 2, 3, 3)
    assert attention_map((signed,), queries) is None
    off_at_padding = good.clone()
    off_at_padding[:, :, 2] = 0
    assert attention_map((off_at_padding,), queries) is off_at_padding
