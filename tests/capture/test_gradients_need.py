"""The need for gradients: a model comes with a loss, and goes back untouched."""

import copy
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from helpers.study_examples import LAYERS, developing, record, tiny_inputs, tiny_model
from ontogeny import capture, needs
from ontogeny.capture import objectives
from ontogeny.capture.gradients import gradients, untouched
from ontogeny.capture.objectives import loss_names
from ontogeny.errors import ArgumentError
from ontogeny.observables import Observable

STEPS = (0, 1, 2, 4)


@dataclass(frozen=True)
class GradientNorm(Observable):
    """The norm of a loss's gradient; on the way it does everything to the model that it can."""

    loss: str | None = None
    breaks: bool = False
    label: str | None = None
    kind: ClassVar[str] = "gradient-norm"

    def needs(self):
        return [needs.Gradients(self.loss)]

    def observe(self, reading, state):
        given = reading[self.needs()[0]]
        batch = given.batch(range(8))
        loss = given.loss(given.model, batch)
        gradient = torch.autograd.grad(loss, list(given.model.parameters()))
        norm = torch.cat([g.flatten() for g in gradient]).norm()
        spoil(given.model)
        if self.breaks:
            raise ValueError("on purpose")
        return xr.Dataset({"loss": float(loss.detach()), "norm": float(norm)})


def spoil(model):
    model.train()
    model.register_forward_hook(lambda *_: 1 / 0)
    model.double()
    model.extra = nn.Linear(2, 2)
    for parameter in model.parameters():
        parameter.requires_grad_(False).fill_(float("nan"))
    torch.manual_seed(99)


def state(model):
    return {
        name: (t.dtype, t.requires_grad, t.detach().clone().numpy().tobytes())
        for name, t in [*model.named_parameters(), *model.named_buffers()]
    }


@pytest.mark.parametrize("fails", [False, True])
def test_a_lent_model_comes_back_bit_for_bit(fails):
    model = nn.Sequential(tiny_model(), nn.BatchNorm1d(3)).train()
    model[0].eval()
    model[1].weight.requires_grad_(False)
    with torch.no_grad():
        model[1].bias[0] = float("nan")
        model[1].bias[1] = -0.0
    before, modes = state(model), [m.training for m in model.modules()]
    random = torch.get_rng_state()
    try:
        with untouched(model):
            spoil(model)
            del model[0].lm_head
            model[1].weight = nn.Parameter(torch.zeros(3))
            if fails:
                raise KeyError("on purpose")
    except KeyError:
        assert fails
    assert state(model) == before
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert not model._forward_hooks
    assert model[0](torch.tensor([[5, 6]])).logits.shape == (1, 2, 40)


def test_gradients_are_enabled_only_while_the_model_is_lent():
    with torch.no_grad():
        with untouched(nn.Linear(2, 2)):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()


def study(tmp_path, *observables, inputs=None):
    models = developing(STEPS)
    record(models, tmp_path / "run")
    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    return og.Study(
        trajectory, inputs or tiny_inputs(), observables, device="cpu"
    ), models


def test_a_study_measures_gradients_and_other_observables_never_notice(tmp_path):
    alone, models = study(
        tmp_path, og.observables.ActivationDecay(LAYERS), og.observables.Loss()
    )
    expected = alone.run(tmp_path / "alone")
    trajectory = alone.trajectory
    both = og.Study(
        trajectory,
        tiny_inputs(),
        [
            GradientNorm(),
            GradientNorm(breaks=True, label="raises"),
            og.observables.ActivationDecay(LAYERS),
            og.observables.Loss(),
            GradientNorm(label="again"),
        ],
        device="cpu",
    )
    result = both.run(tmp_path / "both")
    for name in ("activation-decay", "loss"):
        xr.testing.assert_identical(
            expected[name].to_dataset(), result[name].to_dataset()
        )
    first, again = (result[name].to_dataset() for name in ("gradient-norm", "again"))
    np.testing.assert_array_equal(first.norm, again.norm)
    status = [str(s) for s in result["raises"].to_dataset().status.values]
    assert all(s.startswith("failed: ValueError: on purpose (test_") for s in status)
    for step, norm, loss in zip(
        STEPS, first.norm.values, first.loss.values, strict=True
    ):
        want_loss, want_norm = by_hand(models[step])
        assert loss == pytest.approx(want_loss, rel=1e-5)
        assert norm == pytest.approx(want_norm, rel=1e-5)


def by_hand(model):
    """Loss and gradient norm of the first eight texts, masked as the library masks them."""
    model, inputs = copy.deepcopy(model), tiny_inputs()
    ids, masked = inputs.corrupt(0.15, 0)
    logits = model(
        torch.from_numpy(ids[:8]),
        attention_mask=torch.from_numpy(inputs.mask[:8].astype(int)),
    ).logits
    where = torch.from_numpy(masked[:8])
    loss = nn.functional.cross_entropy(
        logits[where], torch.tensor(inputs.ids[:8])[where]
    )
    loss.backward()
    return float(loss.detach()), float(
        torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    )


def test_a_study_resumes_and_recomputes_when_the_loss_changes(tmp_path):
    first, _ = study(tmp_path, GradientNorm("masked"))
    first.run(tmp_path / "s")
    assert first.plan(tmp_path / "s").to_do == 0
    other = og.Study(first.trajectory, tiny_inputs(), [GradientNorm()], device="cpu")
    assert other.plan(tmp_path / "s").to_do == len(STEPS)
    changed = og.Study(first.trajectory, tiny_inputs(seed=3), [GradientNorm("masked")])
    assert changed.plan(tmp_path / "s").to_do == len(STEPS)


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        ("mean-squared", "must be one of 'next-token', 'masked'"),
        ("classification", "labels="),
    ],
)
def test_a_loss_that_cannot_be_had_is_refused_before_the_study_starts(
    tmp_path, loss, says
):
    refused, _ = study(tmp_path, GradientNorm(loss))
    with pytest.raises(ArgumentError, match=says):
        refused.plan()


def test_a_model_that_does_not_tell_needs_a_named_loss():
    model, inputs = nn.Embedding(9, 9), {"text": tiny_inputs(vocabulary=9)}
    with pytest.raises(ArgumentError, match="give loss="):
        gradients(model, needs.Gradients(), inputs)
    assert gradients(model, needs.Gradients("next-token"), inputs).model is model


class Reader(nn.Module):
    """Logits at every position, a function of that position's token alone."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 5)

    def forward(self, input_ids):
        return self.table(input_ids)


@pytest.mark.parametrize("side", ["left", "right"])
def test_classification_reads_out_at_the_last_token(side):
    torch.manual_seed(0)
    texts = [[5, 6, 7], [8, 9], [10]]
    inputs = og.Inputs.from_tokens(texts, labels=[3, 1, 0]).padded(side)
    model = Reader()
    need = needs.Gradients("classification")
    given = gradients(model, need, {"text": inputs})
    expected = nn.functional.cross_entropy(
        model.table.weight[[7, 9, 10]], torch.tensor([3, 1, 0])
    )
    assert given.loss(model, given.batch([0, 1, 2])).item() == pytest.approx(
        expected.item()
    )
    swapped = given.loss(model, given.batch([2, 0, 1]))  # labels go with their texts
    assert swapped.item() == pytest.approx(expected.item())


def test_next_token_loss_is_that_of_the_loss_observable():
    model, inputs = Reader(), og.Inputs.from_tokens([[5, 6, 7], [8, 9]], vocab_size=40)
    model.table = nn.Embedding(40, 40)
    given = gradients(model, needs.Gradients("next-token"), {"text": inputs})
    measured = capture.losses(model, inputs, objective="causal")
    total = float((measured.loss * measured.tokens).sum() / measured.tokens.sum())
    assert given.loss(model, given.batch([0, 1])).item() == pytest.approx(
        total, rel=1e-6
    )


def first_logit(inputs, need):
    """A loss as an installed package brings it."""
    return lambda model, batch: model(torch.tensor(batch.ids)).sum()


def test_losses_of_other_packages_are_found_by_name(monkeypatch):
    entries = EntryPoints(
        [EntryPoint("first-logit", f"{__name__}:first_logit", objectives.GROUP)]
    )
    monkeypatch.setattr(
        objectives, "entry_points", lambda group: entries.select(group=group)
    )
    need = needs.Gradients("first-logit")
    given = gradients(Reader(), need, {"text": tiny_inputs()})
    assert given.loss(given.model, given.batch([0])).ndim == 0
    assert "first-logit" in loss_names()


def test_batches_are_drawn_without_a_text_twice():
    given = gradients(
        Reader(), needs.Gradients("next-token"), {"text": tiny_inputs(24)}
    )
    batches = given.draw(6, size=4, random_state=1)
    rows = np.concatenate([b.rows for b in batches])
    assert sorted(rows.tolist()) == list(range(24))
    again = given.draw(6, size=4, random_state=1)
    assert all(
        np.array_equal(a.ids, b.ids) for a, b in zip(batches, again, strict=True)
    )
    assert len(given.draw(20, size=4)) == 20
    # 24 texts are three batches: the third is left out.
    pairs = given.draw(20, size=8, together=2)
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        assert not set(first.rows) & set(second.rows)
    with pytest.raises(ArgumentError, match="to the 24 texts"):
        given.draw(2, size=13, together=2)
    with pytest.raises(ArgumentError, match="from 1 to the 24 texts"):
        given.draw(1, size=25)
