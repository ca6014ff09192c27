"""A model that sees the tokens it predicts must not be measured as a causal one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

from ontogeny import capture
from ontogeny.capture.objectives import make_loss
from ontogeny.capture.predictor import Predictor
from ontogeny.capture.trial.causality import check_causal
from ontogeny.capture.trial.first_look import changed_after
from ontogeny.errors import ArgumentError
from ontogeny.inputs import Inputs
from ontogeny.needs import Gradients

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return Inputs.from_tokens(np.random.default_rng(0).integers(5, 60, size=(4, 12)))


def bert(is_decoder: bool) -> nn.Module:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64, intermediate_size=64, is_decoder=is_decoder, **SMALL
    )
    return BertLMHeadModel(config).eval()


def bart() -> nn.Module:
    sizes = {
        f"{side}_{what}": n
        for side in ("encoder", "decoder")
        for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 64))
    }
    return BartForConditionalGeneration(
        BartConfig(vocab_size=64, d_model=32, **sizes)
    ).eval()


def t5() -> nn.Module:
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(vocab_size=64, **sizes)).eval()


def test_a_bidirectional_model_with_a_causal_name_is_refused(inputs):
    for objective in ("auto", "causal"):
        with pytest.raises(
            ArgumentError, match=r"BertLMHeadModel is not causal: .*is_decoder"
        ):
            capture.losses(bert(False), inputs, objective=objective)
    assert np.isfinite(capture.losses(bert(True), inputs).loss.values).all()


def test_every_reader_of_next_tokens_refuses_it(inputs):
    model = bert(False)
    with pytest.raises(ArgumentError, match="is not causal"):
        Predictor(model, "causal").at(inputs, [0], [3])
    with pytest.raises(ArgumentError, match="is not causal"):
        Predictor(model, "causal").reduced(
            inputs, lambda text, column, token, log_p: {}
        )
    with pytest.raises(ArgumentError, match="is not causal"):
        make_loss(model, inputs, Gradients("next-token"))


def test_a_leak_of_a_thousandth_of_the_next_token_is_not_rounding(inputs):
    class Leaks(nn.Module):
        def __init__(self, share: float) -> None:
            super().__init__()
            self.embed, self.share = nn.Embedding(64, 64).double(), share

        def forward(self, ids):
            found = self.embed(ids)
            return found + self.share * found.roll(-1, dims=1)

    check_causal(Leaks(0.0), inputs)
    for share in (1e-3, 1.0):
        with pytest.raises(ArgumentError, match="is not causal"):
            check_causal(Leaks(share), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_causal_models_pass_in_every_precision(inputs, dtype, kernel):
    config = GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64, n_positions=32)
    model = GPT2LMHeadModel(config).to(dtype).eval()
    model.set_attn_implementation(kernel)
    check_causal(model, inputs)


def test_weights_that_are_not_finite_are_left_to_whoever_reads_them(inputs):
    model = nn.Sequential(nn.Embedding(64, 4), nn.Linear(4, 64))
    model[1].weight.data[3] = np.nan
    check_causal(model, inputs)


def test_a_module_of_a_library_is_read_in_one_pass_once(inputs, monkeypatch):
    model, calls = bert(True), []
    forward = BertLMHeadModel.forward
    monkeypatch.setattr(
        BertLMHeadModel, "forward", lambda *a, **k: calls.append(1) or forward(*a, **k)
    )
    for _ in range(3):
        check_causal(model, inputs)
    assert len(calls) == 1


def test_a_module_of_ones_own_is_looked_at_once_and_in_few_calls(inputs):
    model = nn.Sequential(nn.Embedding(64, 4), nn.Linear(4, 64))
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    check_causal(model, inputs)
    once = len(calls)
    check_causal(model, inputs)
    assert len(calls) == once <= 12


def test_statistics_of_a_batch_are_no_cause_of_what_is_before(inputs):
    class Transposed(nn.Module):
        def forward(self, x):
            return x.transpose(1, 2)

    norm = nn.BatchNorm1d(8, track_running_stats=False)
    model = nn.Sequential(
        nn.Embedding(64, 8), Transposed(), norm, Transposed(), nn.Linear(8, 64)
    )
    with pytest.raises(ArgumentError, match="is not causal"):
        check_causal(model, inputs)
    norm.track_running_stats, norm.running_mean = True, torch.zeros(8)
    norm.running_var = torch.ones(8)
    check_causal(model, inputs)


def test_the_second_half_is_another_everywhere():
    ids = np.random.default_rng(1).integers(0, 9, size=(3, 7))
    other, half = changed_after(ids)
    assert half == 4 and (other[:, :half] == ids[:, :half]).all()
    assert (
        (other[:, half:] != ids[:, half:]).all()
        and other.min() >= 0
        and other.max() < 9
    )


@pytest.mark.parametrize("make", [bart, t5])
def test_a_decoder_with_an_input_of_its_own_is_refused_and_its_encoder_read(
    inputs, make
):
    model = make()
    with pytest.raises(
        ArgumentError, match="has a decoder, which needs an input of its own"
    ):
        capture.losses(model, inputs, objective="causal")
    ends = ("decoder.layers.0", "decoder.block.0")
    decoder = next(name for name, _ in model.named_modules() if name.endswith(ends))
    with pytest.raises(ArgumentError, match="load its encoder alone"):
        capture.activations(model, inputs, decoder)
    encoder = decoder.replace("decoder", "encoder")
    whole = capture.activations(model, inputs, encoder)[encoder]
    alone = capture.activations(
        model.get_encoder(), inputs, encoder.split("encoder.")[1]
    )
    torch.testing.assert_close(whole, next(iter(alone.values())))
