"""Losses of large vocabularies: the logits of a batch are never held together."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import tiny_inputs, tiny_model
from ontogeny.capture import logits as module
from ontogeny.capture import read
from ontogeny.capture.answers import _likeliest
from ontogeny.capture.predictor import Predictor
from ontogeny.capture.trial.causality import check_causal
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
    check_causal(model, inputs)  # once for a module
    largest.clear()
    monkeypatch.setattr(module, "_CHUNK", 7 * size)
    monkeypatch.setattr(module, "AT_ONCE", 14 * size)
    parts = losses(model, inputs)
    for name in ("loss", "own_unigram", "own_bigram"):
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-6, atol=1e-6)
    assert parts.attrs == whole.attrs
    # Of the one text that shows how the model uses its map.
    assert max(largest) <= 10 * size
    # Copies of a part are held beside it.
    assert sum(n > 3 * size for n in largest) == 1


def test_a_model_that_changes_its_logits_is_given_all_of_them(monkeypatch):
    model, inputs = tiny_model(), tiny_inputs()
    head = model.get_output_embeddings()
    if head is None:
        pytest.skip("this model names no map to the vocabulary")
    model.register_forward_hook(
        lambda _m, _a, out: setattr(out, "logits", out.logits * 0.5)
    )
    need = Losses()
    whole = read(model, [need], {"text": inputs})[need]
    monkeypatch.setattr(module, "_CHUNK", 40)
    monkeypatch.setattr(module, "AT_ONCE", 80)
    parts = read(model, [need], {"text": inputs})[need]
    np.testing.assert_allclose(parts["loss"], whole["loss"], rtol=1e-6, atol=1e-6)


def _in_place(logits):
    return logits.mul_(3.0)


def _masked_rows(logits):
    logits[..., 20:] = -1e9
    return logits


def _of_places(logits):
    return logits.mul_(torch.linspace(1, 2, logits.shape[1])[:, None])


def _over_places(logits):
    return logits.sub_(logits.mean(dim=1, keepdim=True).cumsum(2))


def _through_data(logits):
    logits.data.add_(torch.arange(logits.shape[-1]))
    return logits


def _turned(logits):
    return logits.copy_(logits.flip(-1))


@pytest.mark.parametrize("size", [80, 1 << 40])
@pytest.mark.parametrize(
    "change", [_in_place, _masked_rows, _of_places, _through_data, _turned, lambda x: x]
)
def test_logits_that_are_changed_in_place_are_the_models_own(change, size, monkeypatch):
    from transformers.modeling_outputs import CausalLMOutputWithPast

    from helpers import tiny_models

    model = tiny_models.llama().eval()

    class Changing(type(model)):
        def forward(self, input_ids=None, attention_mask=None, **_):
            hidden = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
            return CausalLMOutputWithPast(logits=change(self.lm_head(hidden)))

    model.__class__ = Changing
    ids = np.random.default_rng(0).integers(5, 20, (20, 10))
    inputs = og.Inputs.from_tokens(ids.tolist())
    with torch.no_grad():
        logits = model(torch.tensor(ids)).logits[:, :-1].flatten(0, 1)
    truth = torch.nn.functional.cross_entropy(
        logits, torch.tensor(ids[:, 1:]).flatten()
    )
    monkeypatch.setattr(module, "_CHUNK", size // 2)
    monkeypatch.setattr(module, "AT_ONCE", size)
    got = og.capture.losses(model, inputs, objective="causal", batch_size=4)
    assert float(got.loss.mean()) == pytest.approx(float(truth), rel=1e-5)
    asked = (
        Predictor(model, "causal")
        .at(inputs, [0, 1, 7], [3, 4, 9])
        .right_log_probability
    )
    rows = logits.reshape(20, 9, -1).log_softmax(-1)
    expected = [float(rows[t, p - 1, ids[t, p]]) for t, p in ((0, 3), (1, 4), (7, 9))]
    np.testing.assert_allclose(asked, expected, rtol=1e-4, atol=1e-5)


def test_a_model_that_changes_some_texts_only_is_refused():
    from helpers import tiny_models

    model, calls = tiny_models.llama().eval(), []
    ids = np.random.default_rng(0).integers(5, 20, (8, 6))
    check_causal(model, og.Inputs.from_tokens(ids.tolist()))

    def change(_module, _args, output):
        calls.append(1)
        if len(calls) > 2:
            output.logits.mul_(2.0)

    model.register_forward_hook(change)
    need, settings = (
        Losses(objective="causal"),
        og.capture.ReadingSettings(batch_size=1),
    )
    with pytest.raises(
        og.errors.ArgumentError, match="as it is for some texts and changes it"
    ):
        read(model, [need], {"text": og.Inputs.from_tokens(ids.tolist())}, settings)


def test_the_number_of_words_is_that_of_the_logits():
    from helpers import tiny_models

    model = tiny_models.llama().eval()
    inputs = og.Inputs.from_tokens([[5, 6, 7]])
    whole = Predictor(model, "causal").vocabulary(inputs)
    model.register_forward_hook(
        lambda _m, _a, out: setattr(out, "logits", out.logits[..., :9])
    )
    assert (whole, Predictor(model, "causal").vocabulary(inputs)) == (
        model.config.vocab_size,
        9,
    )


def test_the_likeliest_are_those_of_a_stable_sort():
    generator = torch.Generator().manual_seed(0)
    for values in (
        torch.randn(50, 30, generator=generator),
        torch.randint(0, 4, (50, 30)).float(),
    ):
        for top in (1, 3, 30):
            largest, places = torch.sort(values, dim=1, descending=True, stable=True)
            got, ids = _likeliest(values, top)
            assert torch.equal(got, largest[:, :top]) and torch.equal(
                ids, places[:, :top]
            )
