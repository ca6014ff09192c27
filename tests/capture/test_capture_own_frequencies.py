"""What a model's own word frequencies and bigrams cost, against plain loops and closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers import tiny_models as tiny
from helpers.study_examples import tiny_inputs
from ontogeny import Inputs, capture
from ontogeny.capture.loss import OwnFrequencies
from ontogeny.capture.predicted import next_tokens
from ontogeny.errors import ArgumentError
from ontogeny.observables.crossing import crossing
from ontogeny.observables.word_frequencies import guesses

VOCABULARY = 30


class Constant(nn.Module):
    """Predicts the same in every place."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(
            torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(0))
        )

    def forward(self, input_ids, attention_mask=None):
        return self.logits.expand(*input_ids.shape, VOCABULARY)


class Pairs(nn.Module):
    """Predicts by the token before alone."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, VOCABULARY)
        nn.init.normal_(self.table.weight, generator=torch.Generator().manual_seed(0))

    def forward(self, input_ids, attention_mask=None):
        return self.table(input_ids)


def texts(count=9, seed=0):
    rng = np.random.default_rng(seed)
    return Inputs.from_tokens(
        [rng.integers(0, VOCABULARY, n).tolist() for n in rng.integers(2, 14, count)]
    )


def test_a_model_that_predicts_the_same_everywhere_loses_nothing_by_the_mean():
    found = capture.losses(Constant(), texts(), "causal")
    np.testing.assert_allclose(found.own_unigram, found.loss, atol=1e-6)
    np.testing.assert_allclose(found.own_bigram, found.loss, atol=1e-6)


def test_a_model_of_pairs_loses_by_the_mean_and_not_by_that_after_each_token():
    found = capture.losses(Pairs(), texts(60), "causal")
    total = (found * found.tokens).sum("text") / found.tokens.sum()
    np.testing.assert_allclose(found.own_bigram, found.loss, atol=1e-6)
    assert abs(float(total.own_unigram - total.loss)) > 0.05


def by_hand(probability, ids, predicted, groups):
    """The cost of every predicted token under the mean prediction of its group, in float64."""
    where = np.argwhere(predicted)
    own = np.array([groups(t, c) for t, c in where])
    costs = np.zeros(predicted.shape)
    for (t, c), group in zip(where, own, strict=True):
        same = where[own == group]
        costs[t, c] = -np.log(np.mean([probability[a, b, ids[t, c]] for a, b in same]))
    return costs.sum(axis=1) / np.maximum(predicted.sum(axis=1), 1)


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_means_of_a_causal_model_equal_a_plain_loop(batch_size):
    model, inputs = tiny.gpt2().eval(), tiny_inputs()
    found = capture.losses(model, inputs, "causal", batch_size=batch_size)
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor(inputs.ids),
            attention_mask=torch.tensor(inputs.mask).long(),
        ).logits
    probability = logits.double().softmax(-1).numpy()
    # What stands at a place was predicted one before it.
    before = np.roll(probability, 1, axis=1)
    predicted = next_tokens(inputs)
    kept = predicted.any(axis=1)
    everywhere = by_hand(before, inputs.ids, predicted, lambda t, c: 0)
    after = by_hand(before, inputs.ids, predicted, lambda t, c: inputs.ids[t, c - 1])
    np.testing.assert_allclose(found.own_unigram[kept], everywhere[kept], rtol=1e-5)
    np.testing.assert_allclose(found.own_bigram[kept], after[kept], rtol=1e-5)


def test_masked_models_have_no_bigrams_of_their_own():
    found = capture.losses(tiny.bert(), tiny_inputs(), "masked", mask_fraction=0.5)
    assert "own_bigram" not in found and np.isfinite(found.own_unigram).all()


def test_a_model_that_learned_frequencies_from_more_text_uses_no_context():
    """Few texts know frequencies worse than the source does; that is no use of context."""
    rng = np.random.default_rng(0)
    source = 1 / np.arange(1, VOCABULARY * 40 + 1)
    source /= source.sum()
    inputs = Inputs.from_tokens(
        [rng.choice(len(source), 12, p=source).tolist() for _ in range(40)]
    )

    class Source(nn.Module):
        def __init__(self):
            super().__init__()
            self.logits = nn.Parameter(torch.tensor(np.log(source)))

        def forward(self, input_ids, attention_mask=None):
            # A little of the place, as training leaves it.
            place = torch.cos(
                torch.arange(input_ids.shape[1])[:, None] * torch.arange(len(source))
            )
            return (self.logits + 0.02 * place).expand(len(input_ids), -1, -1)

    found = capture.losses(Source(), inputs, "causal")
    line = guesses(inputs, next_tokens(inputs), len(source), pairs=False)["unigram"]
    losses, weights = found.loss.values[None], found.tokens.values
    assert crossing(np.array([0]), losses, line, weights).certain
    assert not crossing(
        np.array([0]), losses, found.own_unigram.values, weights
    ).certain


class Device(torch.Tensor):
    """Stands for a tensor of a device: no float64 there, and no indices of NumPy."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        assert (
            function is not torch.Tensor.double and kwargs.get("dtype") != torch.float64
        )
        if function is torch.Tensor.__getitem__:
            given = args[1] if isinstance(args[1], tuple) else (args[1],)
            assert not any(isinstance(index, np.ndarray) for index in given)
        if function is torch.Tensor.cpu:
            return args[0].as_subclass(torch.Tensor)
        return super().__torch_function__(function, types, args, kwargs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_predictions_on_a_device_and_of_half_precision_are_summed_as_on_the_processor(
    dtype,
):
    inputs = texts(60)
    predicted = next_tokens(inputs)
    text, column = np.nonzero(predicted)
    generator = torch.Generator().manual_seed(0)
    probability = (
        torch.randn(len(text), VOCABULARY, generator=generator).softmax(-1).to(dtype)
    )
    costs = []
    for given in (probability.as_subclass(Device), probability.double()):
        own = OwnFrequencies(inputs, predicted, pairs=True)
        own.add(text, column, given)
        costs.append(own.of_texts())
    for name, cost in costs[0].items():
        np.testing.assert_allclose(cost, costs[1][name], rtol=1e-5)


def test_logits_for_fewer_tokens_than_the_inputs_have_are_refused():
    inputs = Inputs.from_tokens([[1, 2, VOCABULARY + 3], [4, 5]])

    class Few(Constant):
        pass

    with pytest.raises(
        ArgumentError, match="Few gives 30 logits, too few for the token id 33"
    ):
        capture.losses(Few(), inputs, "causal")
