"""Short names beside plain paths: what wins, what own modules keep, what an error says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.family_models import build, inputs_of
from ontogeny import Inputs
from ontogeny.capture import (
    activations,
    attention_entropy,
    list_layers,
    match_layers,
    modules_read,
)
from ontogeny.capture.families import ALIASES, FAMILIES
from ontogeny.errors import ArgumentError, LayerMatchError
from ontogeny.needs import Activations


class Own(nn.Module):
    """Nobody's family; a component is called like a short name."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.layers = nn.ModuleList(
            [nn.ModuleDict({"attn": nn.Linear(4, 4)}) for _ in range(12)]
        )
        self.fc1, self.fc2 = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer["attn"](x)
        return self.fc2(input=self.fc1(x))


def test_own_modules_are_found_by_the_same_patterns():
    model = Own()
    assert match_layers(model, "attn") == [f"layers.{i}.attn" for i in range(12)]
    assert match_layers(model, "embed") == ["embed"]
    assert match_layers(model, "layers[0:12:3].attn") == [
        f"layers.{i}.attn" for i in (0, 3, 6, 9)
    ]
    assert match_layers(model, "layers[-1].attn") == ["layers.11.attn"]
    assert match_layers(model, "layers[1].attn") == ["layers.1.attn"]
    assert match_layers(model, "fc[12]") == ["fc1", "fc2"]  # as in file names
    assert match_layers(model, "fc[2]") == ["fc2"]


def test_inputs_of_own_modules():
    model, inputs = Own(), {"input_ids": [[1, 2, 3]]}
    found = activations(model, inputs, ["layers[0].attn#in", "embed", "fc1", "fc2#in"])
    assert list(found) == ["embed", "layers.0.attn#in", "fc1", "fc2#in"]
    assert torch.equal(found["layers.0.attn#in"], found["embed"])
    assert torch.equal(found["fc2#in"], found["fc1"])  # given by keyword


def test_a_module_called_without_a_tensor_has_no_input():
    class Constant(nn.Module):
        def forward(self, size=4):
            return torch.ones(1, 2, size)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.constant = Constant()

        def forward(self, ids):
            return self.constant()

    with pytest.raises(ArgumentError, match="called without any tensor"):
        activations(Model(), {"input_ids": [[1, 2]]}, "constant#in")


def test_a_known_family_keeps_plain_paths_and_own_modules():
    model = build("olmo2")
    assert match_layers(model, "model.layers.1.mlp") == ["model.layers.1.mlp"]
    assert match_layers(model, "layers.*.mlp") == match_layers(model, "mlp")
    assert match_layers(model, "layers.0") == ["model.layers.0"]
    model.probe = nn.ModuleDict({"resid": nn.Linear(2, 2)})
    assert match_layers(model, "probe.resid") == ["probe.resid"]
    model.embed = nn.Linear(2, 2)  # a full path of a module wins over a short name
    assert match_layers(model, "embed") == ["embed"]


def test_a_module_that_only_claims_a_family_keeps_its_patterns():
    model = Own()
    model.config = build("gpt2").config
    assert match_layers(model, "attn") == [f"layers.{i}.attn" for i in range(12)]


def test_exclusions_take_short_names():
    model = build("llama")
    assert match_layers(model, ["attn", "!layers[0].attn"]) == [
        "model.layers.1.self_attn"
    ]
    rest = match_layers(
        model, ["layers[0].resid", "layers[0].resid_pre", "!layers[0].resid"]
    )
    assert rest == ["model.layers.0#in"]


@given(
    st.none() | st.integers(-4, 4),
    st.none() | st.integers(-4, 4),
    st.sampled_from([1, 2, 3]),
)
def test_slices_are_those_of_python(start, stop, step):
    expected = [f"transformer.h.{i}.mlp" for i in range(2)][start:stop:step]
    text = f"layers[{'' if start is None else start}:{'' if stop is None else stop}:{step}].mlp"
    if expected:
        assert match_layers(GPT2, text) == expected
    else:
        with pytest.raises(LayerMatchError):
            match_layers(GPT2, text)


GPT2 = build("gpt2")


def test_errors_name_the_short_names_of_the_family():
    with pytest.raises(LayerMatchError) as error:
        match_layers(build("gpt_neox"), "atention")
    assert "'gpt_neox.layers.*.attention'" in str(error.value)
    assert "Short names known for GPT-NeoX: attn, mlp, resid, resid_pre, q, k" in str(
        error.value
    )
    with pytest.raises(LayerMatchError, match="has a part 'q'"):
        match_layers(GPT2, "mlp#q")
    with pytest.raises(
        LayerMatchError, match=r"known for gpt2, .*; this is none of them"
    ):
        match_layers(Own(), "resid")
    with pytest.raises(LayerMatchError) as error:
        match_layers(Own(), "nonsense")
    assert "hort names" not in str(error.value)
    with pytest.raises(LayerMatchError, match="resid_mid"):  # a parallel block has none
        match_layers(build("gpt_neox"), "resid_mid")


def test_names_of_the_table_are_the_documented_ones():
    for family in FAMILIES.values():
        assert {*family.in_block, "embed", "unembed"} <= set(ALIASES)


def test_the_input_of_a_block_does_not_depend_on_its_weights():
    inputs = {"a": Inputs.from_tokens([[5, 6, 7]])}
    before, after = (
        Activations(f"layers[1].{name}") for name in ("resid_pre", "resid")
    )
    read = modules_read(GPT2, [before, after], inputs)
    assert not any(".h.1." in name for name in read[before])
    assert any(".h.0.mlp." in name for name in read[before])
    assert any(".h.1.mlp." in name for name in read[after])


def test_sites_are_listed_with_their_shapes():
    (query,) = list_layers(GPT2, "layers[1].q")
    assert query == ("transformer.h.1.attn.c_attn#q", "Conv1D", (1, 4, 32))


def test_reading_a_site_leaves_no_hook_behind():
    activations(GPT2, inputs_of(), ["resid_pre", "q", "resid"])
    attention_entropy(GPT2, inputs_of())
    for module in GPT2.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
