"""Sites of every family against hand-written hooks, hidden states and the stream's own sum."""

import sys

import pytest
import torch

from helpers.family_models import (
    FUSED,
    LAYERS,
    NAMES,
    NORMED_QUERIES,
    WIDTH,
    build,
    inputs_of,
    token_lists,
)
from ontogeny.capture import activations, family_of, list_layers, match_layers
from ontogeny.capture.sites import watched
from ontogeny.errors import LayerMatchError

PLAIN = {  # written by hand from the models' own code
    "attn": {
        "gpt2": "transformer.h.{}.attn",
        "gpt_neox": "gpt_neox.layers.{}.attention",
        "gpt_neox sequential": "gpt_neox.layers.{}.attention",
        "bert": "bert.encoder.layer.{}.attention.output.dense",
        "roberta": "roberta.encoder.layer.{}.attention.output.dense",
        "modernbert": "model.layers.{}.attn",
        "t5": "encoder.block.{}.layer.0.SelfAttention",
    },
    "mlp": {
        "gpt2": "transformer.h.{}.mlp",
        "gpt_neox": "gpt_neox.layers.{}.mlp",
        "gpt_neox sequential": "gpt_neox.layers.{}.mlp",
        "bert": "bert.encoder.layer.{}.output.dense",
        "roberta": "roberta.encoder.layer.{}.output.dense",
        "modernbert": "model.layers.{}.mlp",
        "t5": "encoder.block.{}.layer.1.DenseReluDense",
    },
}
OTHERS = {"attn": "model.layers.{}.self_attn", "mlp": "model.layers.{}.mlp"}


@pytest.fixture(scope="module", params=NAMES)
def family(request):
    return request.param, build(request.param)


def sites(model, pattern):
    return list(activations(model, inputs_of(), pattern, max_tokens=None).values())


def hooked_by_hand(model, paths):
    """Run every text alone; return the outputs of modules, all tokens under each other."""
    kept = {path: [] for path in paths}

    def keeper(path):
        def keep(_module, _args, output):
            kept[path].append(
                (output[0] if isinstance(output, tuple) else output)[0].clone()
            )

        return keep

    handles = [model.get_submodule(p).register_forward_hook(keeper(p)) for p in paths]
    with torch.no_grad():
        for text in token_lists():
            model(torch.tensor([text]))
    for handle in handles:
        handle.remove()
    return {path: torch.cat(rows) for path, rows in kept.items()}


@pytest.mark.parametrize("alias", ["attn", "mlp"])
def test_short_names_give_what_hooks_written_by_hand_give(family, alias):
    name, model = family
    paths = [PLAIN[alias].get(name, OTHERS[alias]).format(i) for i in range(LAYERS)]
    expected = hooked_by_hand(model, paths)
    found = activations(model, inputs_of(), alias, max_tokens=None)
    assert list(found) == paths
    for path in paths:
        torch.testing.assert_close(found[path], expected[path], rtol=1e-4, atol=1e-5)


def test_the_stream_is_the_sum_of_its_parts(family):
    _, model = family
    kind = family_of(model).stream
    before, after = sites(model, "resid_pre"), sites(model, "resid")
    attn, mlp = sites(model, "attn"), sites(model, "mlp")
    middle = sites(model, "resid_mid") if kind != "parallel" else [None] * LAYERS
    with torch.no_grad():
        for i in range(LAYERS):
            if kind == "parallel":
                sums = [(before[i] + attn[i] + mlp[i], after[i])]
            else:
                first, second = norms_after(model, kind, i)
                if kind == "post-norm":
                    sums = [
                        (first(before[i] + attn[i]), middle[i]),
                        (second(middle[i] + mlp[i]), after[i]),
                    ]
                else:
                    sums = [
                        (before[i] + first(attn[i]), middle[i]),
                        (middle[i] + second(mlp[i]), after[i]),
                    ]
            for found, expected in sums:
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(after[i], before[i + 1]) for i in range(LAYERS - 1))


def norms_after(model, kind, index):
    """Return the norms of a block that attention's and MLP's outputs pass (see `Family.stream`)."""
    if kind == "pre-norm":
        return lambda a: a, lambda a: a
    names = {
        "normed": ("post_attention_layernorm", "post_feedforward_layernorm"),
        "post-norm": ("attention.output.LayerNorm", "output.LayerNorm"),
    }[kind]
    block = model.get_submodule(match_layers(model, f"layers[{index}]")[0])
    return [block.get_submodule(name) for name in names]


def test_hidden_states_are_the_stream_and_the_last_is_normed_where_the_table_says(
    family,
):
    _, model = family
    before, after = sites(model, "resid_pre"), sites(model, "resid")
    rows = [[] for _ in range(LAYERS + 1)]
    with torch.no_grad():
        for text in token_lists():
            states = model(
                torch.tensor([text]), output_hidden_states=True
            ).hidden_states
            assert len(states) == LAYERS + 1
            for kept, state in zip(rows, states, strict=True):
                kept.append(state[0])
        *streams, last = [torch.cat(kept) for kept in rows]
        for own, state in zip(before, streams, strict=True):
            torch.testing.assert_close(own, state, rtol=1e-4, atol=1e-4)
        norm = family_of(model).final_norm
        if norm is not None:
            module = model.get_submodule(match_layers(model, norm)[-1])
            assert not torch.allclose(after[-1], last, atol=1e-2)
            after[-1] = module(after[-1])
        torch.testing.assert_close(after[-1], last, rtol=1e-4, atol=1e-4)


def test_queries_keys_and_values_are_those_that_attention_is_given(family, monkeypatch):
    name, model = family
    given, seen = [], {}
    source = sys.modules[type(model).__module__]
    original = source.eager_attention_forward

    def record(module, query, key, value, *args, **kwargs):
        states = (query, key, value)
        given.append([s.transpose(1, 2).flatten(2).clone() for s in states])
        return original(module, query, key, value, *args, **kwargs)

    monkeypatch.setattr(source, "eager_attention_forward", record)
    parts = ["v"] if name in NORMED_QUERIES else ["q", "k", "v"]
    labels = {part: match_layers(model, part) for part in parts}
    ids = torch.tensor(token_lists()[:1])
    # At position 0 rotary embeddings turn nothing, so the projections arrive as they are.
    zeros = {} if name == "t5" else {"position_ids": torch.zeros_like(ids)}
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    every = [label for found in labels.values() for label in found]
    with (
        torch.no_grad(),
        watched(model, every, lambda k, v: seen.setdefault(k, v.clone())),
    ):
        model(ids, **zeros)
    model.set_attn_implementation(before)
    for part in parts:
        for index, label in enumerate(labels[part]):
            expected = given[index]["qkv".index(part)]
            torch.testing.assert_close(seen[label], expected, rtol=1e-5, atol=1e-6)


def test_every_short_name_finds_one_site_per_block(family):
    name, model = family
    known = family_of(model)
    for alias in known.in_block:
        labels = match_layers(model, alias)
        assert len(labels) == LAYERS
        assert match_layers(model, labels) == labels  # labels are patterns too
        assert match_layers(model, f"layers[-1].{alias}") == labels[-1:]
        shapes = [info.shape for info in list_layers(model, alias)]
        assert all(shape[:2] == (1, 4) for shape in shapes)
        if alias in ("attn", "mlp", "resid", "resid_pre", "resid_mid", "o"):
            assert {shape[2] for shape in shapes} == {WIDTH}
    assert "resid_mid" in known.in_block or known.stream == "parallel"
    assert any("#" in label for label in match_layers(model, "q")) == (
        name.split()[0] in FUSED
    )


def test_embedding_and_vocabulary_map(family):
    name, model = family
    embed = match_layers(model, "embed")
    weights = [model.get_submodule(path).weight for path in embed]
    assert len(weights) == 1 and weights[0] is model.get_input_embeddings().weight
    if name == "t5":
        with pytest.raises(LayerMatchError, match="There is no vocabulary map"):
            match_layers(model, "unembed")
    else:
        (path,) = match_layers(model, "unembed")
        assert model.get_submodule(path) is model.get_output_embeddings()
        shape = activations(model, inputs_of(), "unembed", max_tokens=10)[path].shape
        assert shape == (10, model.config.vocab_size)
