"""Losses of large vocabularies: the logits of a batch are never held together."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import tiny_inputs, tiny_model
from ontogeny.capture import logits as module
from ontogeny.capture import read
from ontogeny.capture.answers import _likeliest
from ontogeny.needs import Losses


def losses(model, inputs):
    need = Losses(objective="causal")
    return read(model, [need], {"text": inputs})[need]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_parts_give_the_same_losses_and_are_small(family, monkeypatch):
    from helpers import tiny_models

    model = getattr(tiny_models, family)().eval()
    size = model.config.vocab_size
    ids = np.random.default_rng(0).integers(5, size, (20, 10))
    inputs = og.Inputs.from_tokens(ids.tolist())
    whole = losses(model, inputs)
    largest = []
    head = model.get_output_embeddings()
    head.register_forward_hook(lambda _m, _a, out: largest.append(out.numel()))
    monkeypatch.setattr(module, "_CHUNK", 7 * size)
    monkeypatch.setattr(module, "AT_ONCE", 14 * size)
    parts = losses(model, inputs)
    for name in ("loss", "own_unigram", "own_bigram"):
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-6, atol=1e-6)
    assert parts.attrs == whole.attrs
    assert max(largest) <= 10 * size  # of the one text that shows how the model uses its map
    assert sum(n > 3 * size for n in largest) == 1  # copies of a part are held beside it


def test_a_model_that_changes_its_logits_is_given_all_of_them(monkeypatch):
    model, inputs = tiny_model(), tiny_inputs()
    head = model.get_output_embeddings()
    if head is None:
        pytest.skip("this model names no map to the vocabulary")
    model.register_forward_hook(lambda _m, _a, out: setattr(out, "logits", out.logits * 0.5))
    need = Losses()
    whole = read(model, [need], {"text": inputs})[need]
    monkeypatch.setattr(module, "_CHUNK", 40)
    monkeypatch.setattr(module, "AT_ONCE", 80)
    parts = read(model, [need], {"text": inputs})[need]
    np.testing.assert_allclose(parts["loss"], whole["loss"], rtol=1e-6, atol=1e-6)


def test_the_likeliest_are_those_of_a_stable_sort():
    generator = torch.Generator().manual_seed(0)
    for values in (torch.randn(50, 30, generator=generator), torch.randint(0, 4, (50, 30)).float()):
        for top in (1, 3, 30):
            largest, places = torch.sort(values, dim=1, descending=True, stable=True)
            got, ids = _likeliest(values, top)
            assert torch.equal(got, largest[:, :top]) and torch.equal(ids, places[:, :top])
