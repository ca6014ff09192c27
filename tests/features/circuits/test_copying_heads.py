"""Copying scores against the whole map from tokens to logits, in every family that has one."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import NAMES, build, inputs_of
from ontogeny.capture.layer_readout import readouts as capture_readouts
from ontogeny.capture.layers import match_layers
from ontogeny.capture.ov_circuit import (
    CopyingScores,
    check_has_ov_circuit,
    copying_score,
    head_weights,
)
from ontogeny.capture.sites import watched
from ontogeny.errors import ArgumentError, NonFiniteError

REFUSED = {
    "bert": "normed after every layer",
    "roberta": "normed after every layer",
    "modernbert": "nonlinear function",
    "t5": "no linear map to a vocabulary",
}
KNOWN = [name for name in NAMES if name not in REFUSED]


def read(model, **options):
    need = CopyingScores(**options)
    return og.capture.read(model, [need], {"text": inputs_of()})[need]


def test_the_score_is_that_of_the_whole_map_from_tokens_to_logits():
    rng = np.random.default_rng(0)
    embed, unembed = rng.normal(size=(2, 30, 8))
    value, output = rng.normal(size=(3, 8, 4)), rng.normal(size=(3, 4, 8))
    found = copying_score(*map(torch.tensor, (unembed.T @ embed, value, output)))
    for head in range(3):
        values = np.linalg.eigvals(embed @ value[head] @ output[head] @ unembed.T)
        expected = values.sum().real / np.abs(values).sum()
        assert found[head] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_weights_of_heads_give_what_attention_to_a_single_token_writes(name):
    model = build(name)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if path.endswith("bias"):
                parameter.zero_()
    layers = match_layers(model, "attn")
    states, written = {}, {}
    sites = dict(zip(match_layers(model, "resid_pre"), layers, strict=True))
    with (
        watched(model, sites, lambda at, x: states.update({sites[at]: x})),
        watched(model, layers, lambda at, x: written.update({at: x})),
        torch.no_grad(),
    ):
        model(torch.tensor([[7]]))
    readouts = capture_readouts(model, layers)
    for layer, heads in head_weights(model, layers):
        x, out = states[layer][0], written[layer]
        out = (out[0] if isinstance(out, tuple) else out)[0]
        for part in readouts[layer].parts:
            out = part(out)
        ours = sum(x @ v @ o for v, o in zip(heads.value, heads.output, strict=True))
        cosine = torch.nn.functional.cosine_similarity(ours, out, dim=1)
        assert cosine.item() == pytest.approx(1.0, abs=2e-5), layer


@pytest.mark.parametrize("name", REFUSED)
def test_models_without_a_linear_path_are_refused_with_the_reason(name):
    with pytest.raises(ArgumentError, match=REFUSED[name]):
        check_has_ov_circuit(build(name))


def test_a_model_of_no_known_family_and_nan_are_refused():
    with pytest.raises(ArgumentError, match="Linear are unknown: so is its family"):
        check_has_ov_circuit(torch.nn.Linear(2, 2))
    model = build("gpt2")
    with torch.no_grad():
        model.transformer.h[0].attn.c_proj.weight[0, 0] = torch.nan
    with pytest.raises(NonFiniteError, match="copying scores are not finite"):
        read(model)
    with torch.no_grad():
        model.transformer.ln_f.weight[0] = torch.nan
    check_has_ov_circuit(model)  # what is no number now may be one at another step


def test_a_head_made_to_copy_scores_one_and_permuted_embeddings_do_not():
    model = build("gpt2")
    block = model.transformer.h[1]
    size, width = 8, 32
    with torch.no_grad():
        block.ln_1.weight.fill_(1.0)
        model.transformer.ln_f.weight.fill_(1.0)
        value = block.attn.c_attn.weight[:, 2 * width : 2 * width + size]
        value.copy_(torch.linalg.qr(torch.randn(width, size))[0])
        block.attn.c_proj.weight[:size] = value.T
        block.attn.c_proj.weight[size : 2 * size] = -block.attn.c_attn.weight[
            :, 2 * width + size : 2 * width + 2 * size
        ].T
    scores = read(model, n_draws=5)["transformer.h.1.attn"]
    assert scores.shape == (6, 4)
    assert scores[0, 0] > 0.999 and scores[0, 1] < -0.999
    assert np.abs(scores[1:, :2]).max() < 0.9


def test_the_node_says_when_a_head_comes_to_copy(tmp_path):
    first, models = build("llama"), {}
    for i, step in enumerate((0, 1, 2, 4, 8, 16, 32, 64)):
        model = build("llama")
        share = 1 / (1 + np.exp(4.0 - i) ** 2)
        attention = model.model.layers[0].self_attn
        with torch.no_grad():
            out, value = attention.o_proj.weight, attention.v_proj.weight[8:16]
            ours = first.model.layers[0].self_attn.o_proj.weight
            out[:, 24:] = (1 - share) * ours[
                :, 24:
            ] + share * value.T  # head 3 reads group 1
            model.model.layers[0].input_layernorm.weight.fill_(1.0)
            model.model.norm.weight.fill_(1.0)
            model.lm_head.weight.copy_(model.model.embed_tokens.weight)
        models[step] = model
    run = og.Trajectory.from_models(models)
    study = og.Study(
        run, inputs_of(), og.observables.CopyingHeads(), device="cpu", noise=0
    )
    data = study.run(tmp_path)["copying-heads"].to_dataset()
    last = data.isel(step=-1).sel(layer="model.layers.0.self_attn")
    assert last.copying.values[3] > 0.99 and last.copying.values[:3].max() < 0.9
    row = data.row.values.tolist().index("model.layers.0.self_attn · copying head")
    assert bool(data.moved[row]) and 1 <= float(data.half_step[row]) <= 32
