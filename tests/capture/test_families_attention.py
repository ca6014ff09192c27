"""Attention entropy of every family against the maps that transformers itself returns."""

import numpy as np
import pytest
import torch

from helpers.family_models import HEADS, LAYERS, NAMES, build, inputs_of, token_lists
from ontogeny.capture import attention_entropy
from ontogeny.capture.layers import match_attention
from ontogeny.errors import LayerMatchError


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    return build(request.param)


def entropy_by_hand(model):
    """Mean of -sum p log p over all queries of all texts, each text run alone."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    total, queries = np.zeros((LAYERS, HEADS)), 0
    with torch.no_grad():
        for text in token_lists():
            maps = model(torch.tensor([text]), output_attentions=True).attentions
            assert len(maps) == LAYERS
            p = np.stack([m[0].double().numpy() for m in maps])
            total -= np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(
                axis=(-1, -2)
            )
            queries += len(text)
    model.set_attn_implementation(before)
    return total / queries


@pytest.mark.parametrize("layers", ["*", "attn"])
def test_entropy_is_that_of_the_models_own_maps(model, layers):
    kernel = model.config._attn_implementation
    found = attention_entropy(model, inputs_of(), layers, batch_size=3)
    assert model.config._attn_implementation == kernel
    assert found.sizes == {"layer": LAYERS, "head": HEADS}
    np.testing.assert_allclose(
        found.values, entropy_by_hand(model), rtol=1e-4, atol=1e-5
    )
    assert list(found.layer.values) == match_attention(model, "attn")


def test_attention_of_one_block(model):
    found = attention_entropy(model, inputs_of(), "layers[-1]")
    assert list(found.layer.values) == match_attention(model, "layers[-1].attn")
    assert found.sizes["layer"] == 1


def test_the_input_of_a_module_is_no_attention_map():
    with pytest.raises(LayerMatchError, match="No such module has a part 'q'"):
        attention_entropy(build("gpt2"), inputs_of(), "attn#q")
    with pytest.raises(LayerMatchError, match="matches no module"):
        attention_entropy(build("gpt2"), inputs_of(), "attn#in")
