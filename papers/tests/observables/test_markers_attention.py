"""Attention at the read-out against the model's own maps, and attention cut to its strongest."""

import copy

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import tiny_inputs, tiny_model
from ontogeny import capture, needs
from ontogeny.errors import ArgumentError
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import MarkerRun


def read(model, inputs, **options):
    need = needs.Attention(**options)
    return capture.read(model, [need], {"text": og.Inputs.coerce(inputs)})[need]


def maps(model, inputs):
    """The last token's attention by transformers' own output: one (texts, heads, keys) a layer."""
    model = copy.deepcopy(model)
    model.set_attn_implementation("eager")
    mask = torch.from_numpy(inputs.mask.astype(np.int64).copy())
    ids = torch.from_numpy(inputs.ids.copy())
    with torch.no_grad():
        found = model(ids, attention_mask=mask, output_attentions=True).attentions
    last = torch.from_numpy(inputs.lengths.copy()) - 1
    return [m[torch.arange(len(last)), :, last].double().numpy() for m in found]


def test_entropy_and_mass_of_the_last_token_are_those_of_its_map():
    model, inputs = tiny_model(), tiny_inputs()
    data = read(model, inputs, tokens="last", top=(1, 3, 50))
    assert data.top_mass.dims == ("k", "layer", "head", "text")
    for layer, each in enumerate(maps(model, inputs)):
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.nansum(each * np.log(each), axis=-1)
        np.testing.assert_allclose(data.entropy.values[layer], entropy.T, atol=1e-5)
        ordered = -np.sort(-each, axis=-1)
        np.testing.assert_allclose(
            data.top_mass.values[0, layer], ordered[..., 0].T, atol=1e-5
        )
        np.testing.assert_allclose(
            data.top_mass.values[1, layer], ordered[..., :3].sum(-1).T, atol=1e-5
        )
    np.testing.assert_allclose(data.top_mass.values[2], 1, atol=1e-5)
    np.testing.assert_allclose(data.uniform, np.log(inputs.lengths), atol=1e-6)
    assert (data.tokens == 1).all()


def test_padding_on_either_side_gives_the_same_last_token():
    model, inputs = tiny_model(), tiny_inputs()
    right = read(model, inputs, tokens="last", top=(2,))
    left = read(model, inputs.padded("left"), tokens="last", top=(2,))
    for name in ("entropy", "top_mass", "uniform"):
        np.testing.assert_allclose(left[name], right[name], atol=1e-5)


def test_other_queries_and_masses_leave_the_old_numbers_alone():
    model, inputs = tiny_model(), tiny_inputs()
    alone = read(model, inputs)
    both = [needs.Attention(), needs.Attention(tokens="last", top=(1,))]
    found = capture.read(model, both, {"text": inputs})[both[0]]
    assert found.identical(alone) and "top_mass" not in found


def test_readout_transformers_are_read_too():
    run = MarkerRun.demo()
    torch.manual_seed(0)
    inputs = MarkerTask(markers=(1, 2)).inputs(20)
    data = read(run.model(), inputs, tokens="last", top=(1,))
    assert data.entropy.shape == (2, 4, 20)
    np.testing.assert_allclose(data.uniform, np.log(16), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tokens": "first"}, "tokens must be one of"),
        ({"top": (0,)}, "each at least 1"),
    ],
)
def test_wrong_settings_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        needs.Attention(**options)


@pytest.mark.parametrize(
    "build",
    [
        tiny_model,
        *(
            lambda n=n: family(n)
            for n in ("gpt2", "gpt_neox", "bert", "llama", "gemma2")
        ),
    ],
)
def test_cut_attention_is_that_of_maps_cut_by_hand(build):
    model = build().eval()
    before = model.config._attn_implementation
    ids = torch.arange(4, 16).reshape(2, 6)
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    with torch.no_grad():
        model.set_attn_implementation("eager")
        whole = model(ids, attention_mask=mask, output_attentions=True)
        model.set_attn_implementation(before)
        with capture.cut_attention(model, 6):
            same = model(ids, attention_mask=mask).logits
        with capture.cut_attention(model, 2):
            cut = model(ids, attention_mask=mask, output_attentions=True)
    assert model.config._attn_implementation == before
    seen = mask.bool()
    torch.testing.assert_close(same[seen], whole.logits[seen], rtol=1e-4, atol=1e-5)
    # the first layer sees the same states: its map must be the whole one, cut and scaled
    expected = whole.attentions[0].clone()
    smallest = expected.topk(2, dim=-1).values[..., -1:]
    expected = torch.where(expected >= smallest, expected, 0)
    expected = expected / expected.sum(-1, keepdim=True)
    rows = seen[:, None, :].expand(expected.shape[:3])
    torch.testing.assert_close(
        cut.attentions[0][rows], expected[rows], rtol=1e-4, atol=1e-5
    )
    assert not torch.allclose(cut.logits[seen], whole.logits[seen], atol=1e-4)


def family(name):
    from helpers.family_models import build

    return build(name)


def test_relative_positions_stay_in_attention_that_is_cut():
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=30, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4
    )
    model, ids = T5EncoderModel(config).eval(), torch.arange(3, 15)[None]
    with torch.no_grad():
        whole = model(input_ids=ids)[0]
        with capture.cut_attention(model, 12):
            same = model(input_ids=ids)[0]
    torch.testing.assert_close(same, whole, atol=1e-5, rtol=1e-5)


def test_attention_sinks_are_refused_rather_than_forgotten():
    from transformers import GptOssConfig, GptOssForCausalLM

    config = GptOssConfig(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_local_experts=2,
        num_experts_per_tok=1,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
    )
    model = GptOssForCausalLM(config).eval()
    before = model.config._attn_implementation
    with (
        torch.no_grad(),
        pytest.raises(ArgumentError, match="s_aux"),
        capture.cut_attention(model, 2),
    ):
        model(input_ids=torch.arange(3, 9)[None])
    assert model.config._attn_implementation == before


def test_attention_that_cannot_be_cut_is_said():
    with (
        pytest.raises(ArgumentError, match="only be cut in models of transformers"),
        capture.cut_attention(torch.nn.Linear(2, 2), 1),
    ):
        pass
    with (
        pytest.raises(ArgumentError, match="at least 1; got 0"),
        capture.cut_attention(tiny_model(), 0),
    ):
        pass
    with (
        pytest.raises(ArgumentError, match="was not cut"),
        capture.cut_attention(tiny_model(), 1),
    ):
        pass
