"""Predictions at tokens against the models' own logits."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers.capture_models import CAUSAL, MASK, VOCABULARY, OwnModel, build, inputs_of
from ontogeny import Inputs, capture, needs
from ontogeny.capture import ReadingSettings
from ontogeny.capture.predictor import Predictor
from ontogeny.capture.trial.causality import check_causal
from ontogeny.errors import ArgumentError, NonFiniteError


def tokens(inputs, first):
    """All ordinary tokens that can be predicted, as text and position."""
    text, column = np.nonzero(inputs.ordinary)
    position = column - inputs.mask.argmax(axis=1)[text]
    kept = position >= first
    return text[kept], position[kept]


def own_log_probabilities(model, ids, position, masked, width=1):
    """The model's own logits of one text alone, with a softmax in float64."""
    ids = ids.copy()
    if masked:
        ids[position : position + width] = MASK
    with torch.no_grad():
        logits = model(input_ids=torch.tensor(ids[None])).logits[0].double()
    return torch.log_softmax(
        logits[position if masked else position - 1], dim=-1
    ).numpy()


@pytest.mark.parametrize("batch_size", [1, 3, 64])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "eurobert"])
def test_predictions_equal_the_models_own_logits(family, side, batch_size):
    model, inputs = build(family), inputs_of(side=side)
    masked = family not in CAUSAL
    text, position = tokens(inputs, first=0 if masked else 1)
    # Any order, and not every token.
    order = np.random.default_rng(0).permutation(len(text))
    text, position = text[order[:40]], position[order[:40]]
    found = Predictor(model, settings=ReadingSettings(batch_size)).at(
        inputs, text, position, top=5
    )
    for i, (row, place) in enumerate(zip(text, position, strict=True)):
        ids = inputs.ids[row][inputs.mask[row]]
        own = own_log_probabilities(model, ids, place, masked)
        assert int(found.right_id[i]) == ids[place]
        assert float(found.right_log_probability[i]) == pytest.approx(
            own[ids[place]], abs=2e-5
        )
        np.testing.assert_allclose(
            found.answer_log_probability[i], -np.sort(-own)[:5], atol=2e-5
        )
        np.testing.assert_allclose(
            own[found.answer_id[i]], -np.sort(-own)[:5], atol=2e-5
        )
        ahead = own > own[ids[place]] + 2e-5
        level = np.abs(own - own[ids[place]]) <= 2e-5
        assert ahead.sum() < int(found.right_rank[i]) <= ahead.sum() + level.sum()
    assert found.attrs["vocabulary"] == VOCABULARY


class Headless(torch.nn.Module):
    """Names no map to the vocabulary."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


@pytest.mark.parametrize("named", [True, False])
def test_the_vocabulary_is_known_of_a_model_that_is_not_finite(named):
    model = build("bert")
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(float("nan"))
    predictor = Predictor(model if named else Headless(model), "masked")
    assert predictor.vocabulary(inputs_of()) == VOCABULARY


def test_a_gap_of_several_tokens_hides_them_all():
    model, inputs = build("bert"), inputs_of()
    found = Predictor(model).at(inputs, [1, 1], [4, 4], width=[3, 1], top=1)
    for i, width in enumerate((3, 1)):
        own = own_log_probabilities(model, inputs.ids[1], 4, True, width)
        own_of_right = own[inputs.ids[1, 4]]
        assert float(found.right_log_probability[i]) == pytest.approx(
            own_of_right, abs=2e-5
        )


def test_all_tokens_together_give_the_loss_of_a_text():
    model, inputs = build("gpt2"), inputs_of()
    text, position = tokens(inputs, first=1)
    found = Predictor(model).at(inputs, text, position)
    means = np.bincount(text, -found.right_log_probability.values) / np.maximum(
        np.bincount(text), 1
    )
    loss = capture.losses(model, inputs).loss
    known = np.isfinite(loss.values)
    np.testing.assert_allclose(means[known], loss.values[known], rtol=1e-5)


def test_equally_likely_tokens_are_ranked_by_id():
    model = nn.Sequential(nn.Embedding(6, 2), nn.Linear(2, 6))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.copy_(torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]))
    found = Predictor(model, "causal").at(
        Inputs.from_tokens([[1, 5, 2]]), [0, 0], [1, 2], top=4
    )
    assert found.answer_id.values.tolist() == [[1, 3, 5, 0]] * 2
    assert found.right_rank.values.tolist() == [3, 5]


def test_logits_are_computed_for_the_chosen_tokens_alone():
    model, inputs = build("llama"), inputs_of()
    check_causal(model, inputs)
    rows = []
    model.get_output_embeddings().register_forward_hook(
        lambda module, args, output: rows.append(output.shape[:-1].numel())
    )
    Predictor(model, settings=ReadingSettings(2)).at(inputs, [1, 3, 4, 5], [5, 6, 3, 2])
    witnesses = 3  # of the first batch, which shows whether that is safe
    assert sum(rows[1:]) == witnesses + 2


def test_a_model_is_asked_through_its_need():
    model, inputs = build("eurobert"), inputs_of()
    need = needs.Predictor()
    asked = capture.read(model, [need], {"text": inputs})[need]
    assert asked.masked
    assert asked.at(inputs, 1, 4).sizes == {"target": 1, "answer": 0}
    read = capture.modules_read(model, [need], {"text": inputs})[need]
    assert "lm_head.weight" in read


@pytest.mark.parametrize(
    ("family", "text", "position", "options", "words"),
    [
        ("gpt2", [0], [0], {}, "position must lie in 1 to 4 for text 0; got 0"),
        ("bert", [0], [5], {}, "position must lie in 0 to 4 for text 0; got 5"),
        ("bert", [0], [3], {"width": 3}, "got 3 with a width of 3"),
        ("bert", [9], [3], {}, "text must lie in 0 to 7; got \\[9\\]"),
        ("bert", [0, 1], [3], {}, "the same number of tokens"),
        ("bert", [0], [3], {"top": 65}, "top must be at most 64"),
        ("bert", [0], [3], {"top": -1}, "top must be a whole number"),
    ],
)
def test_impossible_tokens_are_refused(family, text, position, options, words):
    with pytest.raises(ArgumentError, match=words):
        Predictor(build(family)).at(inputs_of(), text, position, **options)


def test_a_masked_model_needs_a_mask_token():
    inputs = Inputs.from_tokens([[5, 6, 7]])
    with pytest.raises(ArgumentError, match="no mask token"):
        Predictor(build("bert")).at(inputs, [0], [1])
    with pytest.raises(ArgumentError, match="no mask token"):
        capture.read(build("bert"), [needs.Predictor()], {"text": inputs})


def test_a_model_of_unknown_objective_is_refused():
    with pytest.raises(ArgumentError, match="does not show what the model predicts"):
        Predictor(OwnModel())


def test_logits_that_are_not_finite_are_refused():
    model = build("gpt2")
    with torch.no_grad():
        model.transformer.wte.weight[7] = torch.nan
    with pytest.raises(NonFiniteError, match="logits of GPT2LMHeadModel"):
        Predictor(model).at(inputs_of(), [0], [2])
