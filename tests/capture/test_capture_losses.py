"""Losses against the models' own and against direct evaluation."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers.capture_models import (
    CAUSAL,
    FAMILIES,
    MASK,
    VOCABULARY,
    OwnModel,
    build,
    inputs_of,
)
from ontogeny import Inputs, capture
from ontogeny.errors import ArgumentError, NonFiniteError

MASKED = [family for family in FAMILIES if family not in CAUSAL]


def own_loss(model, ids, labels):
    with torch.no_grad():
        return float(
            model(input_ids=torch.tensor(ids), labels=torch.tensor(labels)).loss
        )


@pytest.mark.parametrize("batch_size", [1, 3, 8])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", CAUSAL)
def test_causal_losses_equal_the_models_own(family, side, batch_size):
    model, inputs = build(family), inputs_of(side=side)
    data = capture.losses(model, inputs, batch_size=batch_size)
    for text in range(len(inputs)):
        ids = inputs.ids[text][inputs.mask[text]][None]
        assert int(data.tokens[text]) == ids.shape[1] - 1
        if ids.shape[1] > 1:
            assert float(data.loss[text]) == pytest.approx(
                own_loss(model, ids, ids), rel=1e-5
            )
        else:
            assert np.isnan(data.loss[text])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", MASKED)
def test_masked_losses_equal_the_models_own(family, side):
    model, inputs = build(family), inputs_of(side=side)
    data = capture.losses(
        model, inputs, mask_fraction=0.4, random_state=3, batch_size=3
    )
    ids, positions = inputs.corrupt(0.4, 3)
    labels = np.where(positions, inputs.ids, -100)
    for text in range(len(inputs)):
        real = inputs.mask[text]
        expected = own_loss(model, ids[text][real][None], labels[text][real][None])
        assert float(data.loss[text]) == pytest.approx(expected, rel=1e-5)
    assert data.tokens.values.tolist() == positions.sum(axis=1).tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_skipping_unneeded_positions_in_the_head_changes_nothing(family, monkeypatch):
    model, inputs = build(family), inputs_of()
    # Which checks once that the model is what it is read as.
    capture.losses(model, inputs)
    rows = []
    model.get_output_embeddings().register_forward_hook(
        lambda module, args, output: rows.append(output.shape[:-1].numel())
    )
    short = capture.losses(model, inputs, batch_size=2)
    monkeypatch.setattr("ontogeny.capture.logits.head_path", lambda model: None)
    seen, rows[:] = list(rows), []
    whole = capture.losses(model, inputs, batch_size=2)
    np.testing.assert_allclose(short.loss, whole.loss, rtol=1e-6)
    assert seen[0] == rows[0] and sum(seen[1:]) < sum(rows[1:])


def test_an_output_that_is_more_than_the_heads_is_left_alone():
    model, inputs = build("llama"), inputs_of()
    plain = capture.losses(model, inputs, batch_size=2)

    class Softened(type(model)):
        def forward(self, input_ids, **options):
            output = super().forward(input_ids, **options)
            output.logits = output.logits.view(*input_ids.shape, -1) * 1.0
            return output

    model.__class__ = Softened
    again = capture.losses(model, inputs, batch_size=2)
    np.testing.assert_allclose(again.loss, plain.loss, rtol=1e-6)


def test_special_tokens_are_never_predicted():
    model = build("llama")
    inputs = Inputs.from_tokens([[1, 5, 6, 2]], special_ids=[1, 2])
    data = capture.losses(model, inputs)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[1, 5, 6, 2]])).logits[0, :2]
    expected = nn.functional.cross_entropy(logits, torch.tensor([5, 6]))
    assert int(data.tokens[0]) == 2
    assert float(data.loss[0]) == pytest.approx(float(expected), rel=1e-6)


def test_uniform_predictions_lose_the_log_of_the_vocabulary():
    model = OwnModel()
    nn.init.zeros_(model.head.weight), nn.init.zeros_(model.head.bias)
    data = capture.losses(model, inputs_of(), "causal")
    assert data.loss.max() == pytest.approx(np.log(VOCABULARY), rel=1e-6)
    assert data.loss.min() == pytest.approx(np.log(VOCABULARY), rel=1e-6)
    assert data.loss.attrs["units"] == "nats per token"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_losses_are_computed_in_float32(dtype):
    inputs, model = inputs_of(lengths=(30,) * 4), build("llama").to(dtype)
    data = capture.losses(model, inputs)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor(inputs.ids)).logits.double()
    for text in range(4):
        expected = nn.functional.cross_entropy(
            logits[text, :-1], torch.tensor(inputs.ids[text, 1:])
        )
        assert float(data.loss[text]) == pytest.approx(float(expected), abs=2e-3)


def test_own_models_may_return_a_tuple_or_a_dict():
    class Wrapped(nn.Module):
        def __init__(self, pack):
            super().__init__()
            self.model, self.pack = OwnModel(), pack

        def forward(self, idx, attention_mask=None):
            return self.pack(self.model(idx, attention_mask))

    plain = capture.losses(OwnModel(), inputs_of(), "causal").loss
    for pack in (lambda x: (x, None), lambda x: {"logits": x}, lambda x: [x]):
        np.testing.assert_array_equal(
            capture.losses(Wrapped(pack), inputs_of(), "causal").loss, plain
        )


@pytest.mark.parametrize(
    ("family", "objective"), [("gpt2", "causal"), ("eurobert", "masked")]
)
def test_auto_reads_the_objective_off_the_class(family, objective):
    class FineTuned(type(build(family))):
        pass

    model = build(family)
    expected = capture.losses(model, inputs_of(), objective)
    model.__class__ = FineTuned
    np.testing.assert_array_equal(
        capture.losses(model, inputs_of()).loss, expected.loss
    )


def test_auto_asks_where_the_class_does_not_tell():
    with pytest.raises(
        ArgumentError, match=r"OwnModel does not show.*objective='causal'"
    ):
        capture.losses(OwnModel(), inputs_of())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "next"}, "objective must be one of"),
        ({"mask_fraction": 0.0}, "mask_fraction must be a finite number above 0"),
        ({"inputs": {"input_ids": [[5, 6]]}}, "have no mask token"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        capture.losses(build("bert"), **({"inputs": inputs_of()} | arguments))


def test_an_output_without_logits_is_refused_with_its_shape():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = OwnModel()

        def forward(self, idx):
            return self.model(idx)[:, -1:]

    with pytest.raises(
        ArgumentError, match=r"Last must return logits.*\(8, 23, v\).*\(8, 1, 64\)"
    ):
        capture.losses(Last(), inputs_of(), "causal")


def test_a_loss_that_is_not_finite_names_its_text():
    model = OwnModel()
    with torch.no_grad():
        model.embed.weight[7] = torch.nan
    inputs = Inputs.from_tokens([[5, 6], [5, 7, 6], [7, 5]], mask_token_id=MASK)
    with pytest.raises(
        NonFiniteError, match="not finite in 2 of 3 texts; the first is text 1"
    ):
        capture.losses(model, inputs, "causal")
