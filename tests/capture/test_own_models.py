"""Models that people bring give what they give by hand, or are refused in one line."""

import random

import numpy as np
import pytest
import torch

from helpers import odd_models
from ontogeny import capture
from ontogeny.capture.objectives import make_loss
from ontogeny.capture.predictor import Predictor
from ontogeny.capture.trial.causality import check_logits
from ontogeny.capture.trial.invariance import shortened
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.inputs import Inputs
from ontogeny.needs import Gradients

ODD = (
    "Plain",
    "LogProbabilities",
    "Flattening",
    "Overwriting",
    "SpectralNorm",
    "WeightNorm",
    "Hooked",
    "Double",
    "Table",
    "Cached",
    "Centred",
    "LogitsFirst",
    "TargetsTemper",
    "DrawsInVain",
    "HookOfPlaces",
)


def build(name):
    torch.manual_seed(3)
    return getattr(odd_models, name)()


def losses(model, inputs):
    return capture.losses(model, inputs, objective="causal").loss.values


@pytest.mark.parametrize("name", ODD)
def test_odd_models_give_what_they_give_by_hand(name):
    inputs = odd_models.texts_of()
    np.testing.assert_allclose(
        losses(build(name), inputs), odd_models.nats(build(name), inputs), atol=1e-5
    )


@pytest.mark.parametrize(("name", "length"), [("FixedLength", 4), ("UnreadAnswer", 5)])
def test_models_of_one_length_give_what_they_give_by_hand(name, length):
    inputs = odd_models.texts_of((length,) * 6)
    np.testing.assert_allclose(
        losses(build(name), inputs), odd_models.nats(build(name), inputs), atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [("PadsRight", "pads every text at its end"), ("Prefixed", "puts 3 tokens")],
)
@pytest.mark.parametrize("lengths", [(12,) * 4, (13, 5, 9), (8, 7), (3, 2)])
def test_the_side_of_what_a_model_adds_is_seen(name, said, lengths):
    capture.forward._say_added.cache_clear()
    inputs = odd_models.texts_of(lengths)
    with pytest.warns(StudyWarning, match=said):
        got = losses(build(name), inputs)
    np.testing.assert_allclose(got, odd_models.nats(build(name), inputs), atol=1e-5)


@pytest.mark.parametrize("name", ["PadsRight", "Prefixed"])
def test_layers_and_gradients_leave_out_what_a_model_adds(name):
    inputs, model = odd_models.texts_of((11, 11)), build(name)
    width = inputs.ids.shape[1]
    rows = capture.activations(model, inputs, "embed")["embed"]
    whole = []
    handle = model.embed.register_forward_hook(
        lambda _m, _a, output: whole.append(output)
    )
    with torch.no_grad():
        model(torch.tensor(inputs.ids))
    handle.remove()
    part = whole[0][:, :width] if name == "PadsRight" else whole[0][:, -width:]
    torch.testing.assert_close(rows, part.flatten(0, 1))
    loss = make_loss(model, inputs, Gradients("next-token"))(
        model, inputs.batches(2)[0]
    )
    assert float(loss.detach()) == pytest.approx(
        np.mean(odd_models.nats(model, inputs)), abs=1e-5
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Probabilities", "returns probabilities: .* Let it return logits"),
        ("Surprises", "returns negative log-probabilities"),
        ("Dropping", "is random in evaluation mode: .* training=self.training"),
        ("Remembering", "keeps something between its calls"),
        ("PadsBothSides", "does not show which rows are the text's"),
        ("LastOnly", "must return logits of shape"),
        ("TokensFirst", "must return logits of shape"),
        ("Bits", "log-probabilities in bits"),
        ("Digits", "log-probabilities to the base 10"),
        ("Percent", "sum to 100"),
        ("ShiftsInside", "shifts its input itself"),
        ("Teacher", "shifts its input itself"),
        (
            "HiddenFirst",
            "34 and 30 wide, and the first is not as wide as its vocabulary",
        ),
        ("Named", "got a dict of features, output"),
        ("TimeFirst", "reads across texts"),
        ("MaskReversed", "other outputs with an attention_mask of ones than without"),
        ("TargetsLeak", "uses its targets for its logits"),
        ("DropsLayers", "is random in evaluation mode"),
        ("DropsWords", "is random in evaluation mode"),
        ("NoisyRouter", "is random in evaluation mode"),
        ("LargestSoFar", "keeps something between its calls"),
        ("KeptByShape", "keeps something between its calls"),
        ("Alternating", "keeps something between its calls"),
    ],
)
def test_what_gives_no_right_number_is_refused(name, said):
    with pytest.raises(ArgumentError, match=said) as caught:
        losses(build(name), odd_models.texts_of())
    assert "\n" not in str(caught.value)


def test_scores_that_are_all_above_zero_are_said_to_be_read_as_logits():
    inputs = odd_models.texts_of()
    with pytest.warns(StudyWarning, match=r"all 30 scores that Odds returns .* above"):
        check_logits(build("Odds"), inputs)


def test_every_reader_refuses_probabilities_and_what_is_random():
    inputs = odd_models.texts_of()
    for name in ("Probabilities", "Dropping"):
        with pytest.raises(ArgumentError, match=r"returns probabilities|is random"):
            Predictor(build(name), "causal").at(inputs, [0], [3])
        with pytest.raises(ArgumentError, match=r"returns probabilities|is random"):
            make_loss(build(name), inputs, Gradients("next-token"))
    with pytest.raises(ArgumentError, match=r"is random"):
        capture.activations(build("Dropping"), inputs, "head")
    with pytest.raises(ArgumentError, match=r"is random"):
        capture.check_batch_invariance(build("Dropping"), inputs)


def test_masked_models_may_not_return_probabilities_either():
    inputs = Inputs.from_tokens([[5, 6, 7, 8]] * 2, mask_token_id=1, vocab_size=30)
    with pytest.raises(ArgumentError, match="returns probabilities"):
        capture.losses(build("Probabilities"), inputs, objective="masked")


@pytest.mark.parametrize("rows", [torch.zeros(2, 3, 4), torch.full((2, 3, 4), 0.3)])
def test_equal_logits_are_no_probabilities(rows):
    class Constant(torch.nn.Module):
        def forward(self, ids):
            return rows[:1, :1].expand(*ids.shape, -1)

    check_logits(Constant(), Inputs.from_tokens([[1, 2, 3]]))


@pytest.mark.parametrize("name", ["Crowded", "CountsFromTheEnd", "Full"])
def test_texts_that_change_each_other_are_read_alone_and_it_is_said(name):
    inputs = odd_models.texts_of((20, 12, 5, 9, 12, 7))
    with pytest.warns(StudyWarning, match=f"texts are read one by one: {name}"):
        got = losses(build(name), inputs)
    np.testing.assert_allclose(got, odd_models.nats(build(name), inputs), atol=1e-5)


def test_the_whole_of_the_longest_text_shows_whether_a_model_is_causal():
    assert losses(build("LooksAheadInLongTexts"), odd_models.texts_of()).all()
    with pytest.raises(ArgumentError, match="is not causal"):
        losses(build("LooksAheadInLongTexts"), odd_models.texts_of((20, 12, 5, 9)))


def test_random_states_are_as_before_a_look():
    inputs = odd_models.texts_of()
    models = [build(name) for name in ("DropsLayers", "NoisyRouter", "DropsWords")]
    states = random.getstate(), torch.random.get_rng_state().tolist()
    for model in models:
        with pytest.raises(ArgumentError, match="is random"):
            losses(model, inputs)
    assert (random.getstate(), torch.random.get_rng_state().tolist()) == states


def test_shortened_texts_keep_the_share_of_their_lengths():
    texts = shortened(odd_models.texts_of((20, 10, 40, 30)), 8)
    assert texts.lengths.tolist() == [2, 8, 4]
    assert (texts.ids[1] == odd_models.texts_of((20, 10, 40, 30)).ids[2, :8]).all()
    assert len(shortened(odd_models.texts_of((5,)), 3)) == 1
