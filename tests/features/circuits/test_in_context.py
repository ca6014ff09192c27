"""The in-context-learning score of models whose losses are known in every place."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers.family_models import build
from ontogeny.errors import ArgumentError
from ontogeny.features.circuits.in_context import Windows
from ontogeny.observables import InContextLearning

VOCABULARY = 20


class Remembers(nn.Module):
    """Gives a token that it has seen in the text `gain` more in the logits, and others nothing."""

    def __init__(self, gain):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(float(gain)))

    def forward(self, input_ids):
        seen = nn.functional.one_hot(input_ids, VOCABULARY).cumsum(dim=1) > 0
        return self.gain * seen.float()


def texts(count=12, length=40, start=True):
    rng = np.random.default_rng(0)
    rows = rng.permuted(np.tile(np.arange(2, 12), (count, 4)), axis=1)[:, :length]
    if start:
        rows[:, 0] = 1
    return og.Inputs.from_tokens(rows, special_ids=[1], vocab_size=VOCABULARY)


def observed(model, inputs, **options):
    observable = InContextLearning(objective="causal", **options)
    return observable, og.capture.read(model, observable.needs(), {"text": inputs})


def loss_at(ids, place, gain, begin=0):
    seen = set(ids[begin:place].tolist()) | ({int(ids[0])} if begin else set())
    total = len(seen) * np.exp(gain) + VOCABULARY - len(seen)
    return np.log(total) - gain * (int(ids[place]) in seen)


def test_score_and_null_equal_a_loop_over_the_tokens():
    gain, inputs = 2.0, texts()
    observable, values = observed(Remembers(gain), inputs, early=6, late=38, window=3)
    data = observable.observe(values, None)
    ids = inputs.ids
    early = np.array([[loss_at(row, p, gain) for p in (5, 6, 7)] for row in ids])
    late = np.array([[loss_at(row, p, gain) for p in (35, 36, 37)] for row in ids])
    # The short texts begin with the start token, and with the four tokens before the late ones.
    short = np.array(
        [[loss_at(row, p, gain, begin=31) for p in (35, 36, 37)] for row in ids]
    )
    np.testing.assert_allclose(data.score, late.mean() - early.mean(), atol=1e-5)
    np.testing.assert_allclose(
        data.score_of_text, late.mean(1) - early.mean(1), atol=1e-5
    )
    np.testing.assert_allclose(data.score_short, short.mean() - early.mean(), atol=1e-5)
    expected = [early.mean(), late.mean(), short.mean()]
    np.testing.assert_allclose(data.place_loss, expected, atol=1e-5)
    assert data.score < data.score_short - 0.3


def test_a_model_without_context_has_no_score_beyond_the_null():
    observable, values = observed(Remembers(0.0), texts(), early=6, late=38, window=3)
    data = observable.observe(values, None)
    assert float(data.score) == pytest.approx(0.0, abs=1e-6) == float(data.score_short)


def test_special_tokens_and_short_texts_are_left_out():
    rows = [[1, *range(2, 11), 1], [1, *range(3, 13)], [1, 4, 5]]
    inputs = og.Inputs.from_tokens(rows, special_ids=[1])
    windows = Windows.of(inputs, 2, 11, 1)
    assert windows.texts.ids.tolist() == [rows[1]], (
        "the first text ends with a special token"
    )
    with pytest.raises(
        ArgumentError,
        match="early and late must be places at which some text has scored tokens",
    ):
        Windows.of(inputs, 2, 12, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"early": 1}, "early must be a whole number of at least 2"),
        ({"window": 0}, "window must be a whole number of at least 1"),
        ({"objective": "masked"}, "objective"),
    ],
)
def test_arguments_out_of_range_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        InContextLearning(**options)


def test_overlapping_windows_are_refused():
    with pytest.raises(
        ArgumentError, match="early=6 and late=8 with a window of 2 tokens overlap"
    ):
        Windows.of(texts(), 6, 8, 2)


def test_a_masked_model_is_refused_with_the_reason():
    observable = InContextLearning()
    rows = np.random.default_rng(0).integers(5, 60, (4, 20))
    inputs = og.Inputs.from_tokens(rows, mask_token_id=4)
    values = og.capture.read(build("bert"), observable.needs(), {"text": inputs})
    with pytest.raises(ArgumentError, match="a masked model sees what follows as well"):
        observable.observe(values, None)


def test_the_step_at_which_context_is_used_is_dated(tmp_path):
    models = {
        s: Remembers(3 / (1 + np.exp(6 - i)))
        for i, s in enumerate((0, *2 ** np.arange(11)))
    }
    study = og.Study(
        og.Trajectory.from_models(models),
        texts(24),
        InContextLearning(objective="causal"),
        device="cpu",
        noise=0,
    )
    data = study.run(tmp_path)["in-context-learning"].to_dataset()
    assert data.row.values.tolist() == ["in-context learning"]
    assert bool(data.changed[0]) and 8 < float(data.half_step[0]) < 128
    assert float(data.last_value[0]) < float(data.score_short[-1]) - 0.2
