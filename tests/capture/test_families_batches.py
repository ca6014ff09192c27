"""What a text is batched and padded with changes nothing, in any family."""

import numpy as np
import pytest
import torch
import transformers

from helpers.family_models import NAMES, WIDTH, build, inputs_of
from ontogeny.capture import (
    ReadingSettings,
    activations,
    attention_entropy,
    check_batch_invariance,
    read,
)
from ontogeny.capture.trial import invariance
from ontogeny.errors import ArgumentError
from ontogeny.needs import Activations

SITES = ("resid_pre", "resid", "attn", "mlp", "q")
# How left padding is coped with: positions that are relative, or counted by the model from ids,
# need no help; learned ones are told from the mask; RoBERTa counts from its own padding id, and
# padded with another id it is read with padding on the right.
LEFT = dict.fromkeys(NAMES, "model") | {
    "gpt2": "mask",
    "bert": "mask",
    "roberta": "right",
}


@pytest.fixture(scope="module", params=NAMES)
def family(request):
    return request.param, build(request.param)


@pytest.fixture(scope="module")
def alone(family):
    """Every text by itself: no padding, no neighbours."""
    _, model = family
    inputs = inputs_of()
    texts = [inputs.subset([i]) for i in range(len(inputs))]
    read = [
        activations(model, text, SITES, max_tokens=None, batch_size=1) for text in texts
    ]
    return {label: torch.cat([each[label] for each in read]) for label in read[0]}


def check(found, alone):
    assert list(found) == list(alone)
    for label, expected in alone.items():
        error = (found[label] - expected).norm() / expected.norm()
        assert error < 1e-5, label


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_padding_and_batch_size_change_nothing(family, alone, side, batch_size):
    _, model = family
    inputs = inputs_of(side=side)
    check(
        activations(model, inputs, SITES, max_tokens=None, batch_size=batch_size), alone
    )


def test_left_padding_is_coped_with_as_the_check_says(family, alone):
    name, model = family
    inputs = inputs_of(side="left")
    found = check_batch_invariance(model, inputs, SITES)
    assert found.positions == LEFT[name]
    assert found.padding_side == ("right" if found.positions == "right" else "left")
    need = Activations(SITES, max_tokens=None)
    settings = ReadingSettings(8, positions=found.positions)
    check(read(model, [need], {"a": inputs}, settings)[need], alone)


def test_roberta_copes_with_left_padding_by_its_own_padding_id():
    model = build("roberta")
    inputs = inputs_of(side="left", pad_token_id=model.config.pad_token_id)
    assert check_batch_invariance(model, inputs, SITES).positions == "model"


def test_positions_told_wrongly_are_seen():
    model, inputs = build("gpt2"), inputs_of(side="left")
    need = Activations("resid", max_tokens=None)
    right, wrong = (
        read(model, [need], {"a": inputs}, ReadingSettings(8, positions=p))[need]
        for p in ("mask", "model")
    )
    assert all((right[label] - wrong[label]).norm() > 1e-2 for label in right)


def test_roberta_takes_no_more_tokens_than_its_positions_leave():
    model = build("roberta")  # 40 positions, counted from the padding id 1 on
    rows = np.full((1, 38), 7)
    assert activations(model, {"input_ids": rows}, "resid", max_tokens=None)
    with pytest.raises(
        ArgumentError, match="39 tokens, but RobertaForMaskedLM takes at most 38"
    ):
        activations(model, {"input_ids": np.full((1, 39), 7)}, "resid")


@pytest.fixture(scope="module")
def whole_t5():
    encoder = build("t5")
    whole = transformers.T5ForConditionalGeneration(encoder.config).eval()
    whole.encoder.load_state_dict(encoder.encoder.state_dict())
    whole.shared.weight.data.copy_(encoder.shared.weight)
    return encoder, whole


def test_the_encoder_of_a_whole_t5_is_read_without_running_its_decoder(whole_t5):
    encoder, whole = whole_t5
    expected = activations(encoder, inputs_of(), SITES, max_tokens=None)
    check(activations(whole, inputs_of(), SITES, max_tokens=None), expected)


def test_a_pass_that_needs_a_decoder_input_says_so(whole_t5):
    _, whole = whole_t5
    with pytest.raises(ArgumentError, match="load its encoder alone"):
        attention_entropy(whole, inputs_of())


@pytest.mark.parametrize("name", NAMES)
def test_before_a_large_vocabulary_the_last_module_of_tokens_is_compared(
    name, monkeypatch
):
    # Rotary embeddings are listed last, and give rows of positions for no text in particular.
    monkeypatch.setattr(invariance, "_WIDE", WIDTH + 16)
    found = check_batch_invariance(build(name), inputs_of())
    assert found.difference < 1e-5 < found.tolerance
