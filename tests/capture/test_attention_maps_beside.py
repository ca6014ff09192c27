"""Attention maps that are computed beside the kernel, in the pass that other needs read too."""

import sys
import types
from collections import Counter

import numpy as np
import pytest
import torch
import transformers as t

from helpers.family_models import NAMES, build, inputs_of
from ontogeny import capture
from ontogeny.capture import forward, implementations
from ontogeny.needs import Activations, Attention, Losses

# Eager by default; no loss.
BESIDE = [name for name in NAMES if name not in ("gemma2", "t5")]


def read(model, needs, batch_size=3, side="right"):
    settings = capture.ReadingSettings(batch_size)
    return capture.read(model, needs, {"texts": inputs_of(side=side)}, settings)


@pytest.fixture
def passes(monkeypatch):
    """How many batches ran, by implementation."""
    counts, called = Counter(), forward._called

    def calling(model, ids, inputs):
        counts[model.config._attn_implementation] += 1
        return called(model, ids, inputs)

    monkeypatch.setattr(forward, "_called", calling)
    return counts


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", BESIDE)
def test_what_shares_the_pass_is_the_same_to_the_last_bit(name, side, passes):
    model = build(name)
    others = [Losses(), Activations("layers.*", tokens="all")]
    alone = read(model, others, side=side)
    passes.clear()
    together = read(model, [*others, Attention()], side=side)
    # Losses of masked models are read of other texts.
    causal = name not in ("eurobert", "bert", "roberta", "modernbert")
    batches = -(-len(inputs_of()) // 3)
    assert passes == {"sdpa_with_maps": batches} | ({} if causal else {"sdpa": batches})
    for need in others:
        for label in alone[need]:
            a, b = np.asarray(alone[need][label]), np.asarray(together[need][label])
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", BESIDE)
def test_maps_are_those_of_the_eager_implementation(name, side, monkeypatch, passes):
    model, need = build(name), Attention(top=(1, 2))
    with torch.no_grad():  # far from uniform attention
        for label, parameter in model.named_parameters():
            if parameter.ndim == 2 and "emb" not in label and "wte" not in label:
                parameter.mul_(8)
    beside = read(model, [need], side=side)[need]
    assert set(passes) == {"sdpa_with_maps"}
    monkeypatch.setattr(implementations, "_gives_maps_beside_sdpa", lambda model: False)
    eager = read(model, [need], side=side)[need]
    assert set(passes) == {"sdpa_with_maps", "eager"}
    for variable in ("entropy", "uniform", "top_mass"):
        np.testing.assert_allclose(
            beside[variable], eager[variable], rtol=1e-4, atol=1e-5
        )
    assert model.config._attn_implementation == "sdpa"


def test_a_model_whose_maps_cannot_be_had_beside_runs_once_more(monkeypatch, passes):
    model, loss = build("llama"), Losses()
    alone = read(model, [loss])[loss]
    monkeypatch.setattr(implementations, "_gives_maps_beside_sdpa", lambda model: False)
    passes.clear()
    both = read(model, [loss, Attention()])[loss]
    assert passes["eager"] == passes["sdpa"] > 0
    np.testing.assert_array_equal(alone.loss, both.loss)


@pytest.mark.parametrize("name", ["gemma2", "llama"])
def test_a_model_that_runs_eager_anyway_runs_once(name, passes):
    model = build(name)
    model.set_attn_implementation("eager")
    read(model, [Losses()])  # the first reading looks at the model too
    passes.clear()
    read(model, [Losses(), Attention()])
    assert set(passes) == {"eager"} and passes["eager"] == -(-len(inputs_of()) // 3)


class Derived(t.LlamaForCausalLM):
    """A class of a file that knows nothing of attention."""


def test_classes_made_from_those_of_transformers_are_recognised():
    config = build("llama").config
    config._attn_implementation = "sdpa"
    assert implementations.gives_maps_beside(Derived(config))


def test_code_that_cannot_be_read_gets_a_pass_of_its_own(monkeypatch, passes):
    from transformers.models.llama import modeling_llama as llama

    session = types.ModuleType("session")  # as a notebook is: it has no file
    session.ALL_ATTENTION_FUNCTIONS = llama.ALL_ATTENTION_FUNCTIONS
    session.eager_attention_forward = llama.eager_attention_forward
    monkeypatch.setitem(sys.modules, "session", session)
    model = build("llama")
    own = type("OwnAttention", (llama.LlamaAttention,), {"__module__": "session"})
    for index, layer in enumerate(model.model.layers):
        layer.self_attn = own(model.config, index).eval()
    for _ in range(2):  # the first time, a model with a class of one's own is looked at
        passes.clear()
        assert Attention() in read(model, [Attention()])
    assert set(passes) == {"eager"}


def test_code_that_asks_for_the_kernel_by_its_name_is_left_alone(tmp_path, monkeypatch):
    code = (
        "from transformers.models.llama import modeling_llama as llama\n"
        "from transformers.models.llama.modeling_llama import *\n"
        "ALL_ATTENTION_FUNCTIONS = llama.ALL_ATTENTION_FUNCTIONS\n"
        "eager_attention_forward = llama.eager_attention_forward\n"
        "class OwnAttention(llama.LlamaAttention):\n"
        "    def forward(self, *args, **options):\n"
        "        if self.config._attn_implementation == 'sdpa':\n"
        "            self.asked = True\n"
        "        return super().forward(*args, **options)\n"
    )
    (tmp_path / "asking_model.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    from asking_model import OwnAttention

    model = build("llama")
    assert implementations.gives_maps_beside(model)
    for index, layer in enumerate(model.model.layers):
        layer.self_attn = OwnAttention(model.config, index).eval()
    assert not implementations.gives_maps_beside(model)
    assert Attention() in read(model, [Attention()])
