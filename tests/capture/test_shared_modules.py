"""Calls of a module that several layers share are layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AlbertConfig, AlbertForMaskedLM

from ontogeny import capture
from ontogeny.capture import sites
from ontogeny.errors import ArgumentError, LayerMatchError
from ontogeny.inputs import Inputs
from ontogeny.needs import Activations
from ontogeny.report.choosing import layer_paths
from ontogeny.words.labels import layer_groups

BLOCK = "albert.encoder.albert_layer_groups.0.albert_layers.0"
TEXTS = Inputs.from_tokens([[1, 2, 3, 4], [5, 6, 7]], vocab_size=16)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    config = AlbertConfig(**sizes, vocab_size=16, embedding_size=4, num_hidden_layers=3)
    return AlbertForMaskedLM(config).eval()


def hidden(model):
    mask = torch.tensor(TEXTS.mask.astype(int))
    with torch.no_grad():
        states = model(
            torch.tensor(TEXTS.ids), mask, output_hidden_states=True
        ).hidden_states
    return [state[torch.tensor(TEXTS.mask)] for state in states]


def test_each_call_gives_the_hidden_states_of_its_layer(model):
    states = hidden(model)
    outputs = capture.activations(model, TEXTS, f"{BLOCK}@*", batch_size=1)
    assert list(outputs) == [f"{BLOCK}@0", f"{BLOCK}@1", f"{BLOCK}@2"]
    for state, rows in zip(states[1:], outputs.values(), strict=True):
        torch.testing.assert_close(rows, state)
    inputs = capture.activations(model, TEXTS, [f"{BLOCK}@2#in", f"{BLOCK}@0#in"])
    assert list(inputs) == [f"{BLOCK}@0#in", f"{BLOCK}@2#in"]
    torch.testing.assert_close(inputs[f"{BLOCK}@2#in"], states[2])


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [BLOCK, "predictions.dense"],
            "called more than once.*one of its calls, such as '.*@0'",
        ),
        (f"{BLOCK}@3", "never called"),
    ],
)
def test_what_leaves_open_which_call_is_meant_is_refused(model, layers, message):
    with pytest.raises(ArgumentError, match=message):
        capture.activations(model, TEXTS, layers)


def test_a_study_says_so_before_it_computes(model):
    source = capture.ModelSource(model, "text", TEXTS, capture.ReadingSettings())
    several = r"more than once.* 3 times.*from '.*@0' to '.*@2'.* '.*@\*'"
    for layers, message in ((BLOCK, several), (f"{BLOCK}@3", "the last of .*@2'")):
        with pytest.raises(ArgumentError, match=message):
            Activations(layers).tensors(source)
    with pytest.raises(LayerMatchError, match="matches no module"):
        Activations(f"{BLOCK}@first").labels(source)


def test_a_call_reads_the_weights_up_to_it(model):
    source = capture.ModelSource(model, "text", TEXTS, capture.ReadingSettings())
    read = Activations(f"{BLOCK}@0").tensors(source)
    assert f"{BLOCK}.ffn.weight" in read and "predictions.dense.weight" not in read


def test_one_call_is_changed_and_the_others_stay(model):
    states = hidden(model)
    with sites.changed(model, [f"{BLOCK}@1"], lambda _, value: torch.zeros_like(value)):
        changed = hidden(model)
    torch.testing.assert_close(changed[1], states[1])
    # Tokens that are all alike stay alike: no layer knows of places.
    torch.testing.assert_close(changed[3], changed[3][:1].expand_as(changed[3]))
    assert not torch.allclose(states[3], states[3][:1].expand_as(states[3]))


def test_maps_of_a_shared_module_have_a_name_each(model):
    read = capture.attention_entropy(model, TEXTS, batch_size=1)
    assert [label.rpartition("@")[2] for label in read.layer.values] == ["0", "1", "2"]
    eager = AlbertForMaskedLM(model.config)
    eager.set_attn_implementation("eager")
    eager.load_state_dict(model.state_dict())
    with torch.no_grad():
        maps = eager.eval()(
            torch.tensor(TEXTS.ids[:1]), output_attentions=True
        ).attentions
    first = [
        torch.special.entr(weights).sum(-1).mean(-1)[0].numpy() for weights in maps
    ]
    one = capture.attention_entropy(model, TEXTS.subset([0]))
    np.testing.assert_allclose(one.values, np.stack(first), rtol=1e-5)


def test_the_depth_of_a_call_is_its_number():
    labels = [f"{BLOCK}@{call}" for call in range(12)]
    groups = layer_groups(labels)
    assert (
        groups.labels == tuple(map(str, range(12))) and groups.of(f"{BLOCK}@10") == 10
    )
    assert layer_paths(labels, 10) == layer_paths(labels, -2) == [f"{BLOCK}@10"]
