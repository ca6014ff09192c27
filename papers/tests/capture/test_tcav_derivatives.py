"""Directional derivatives against finite differences, plain autograd and closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers.capture_models import (
    BLOCKS,
    CAUSAL,
    FAMILIES,
    LENGTHS,
    MASK,
    MLPS,
    VOCABULARY,
    OwnModel,
    build,
    inputs_of,
)
from ontogeny import Inputs, capture
from ontogeny.capture import ReadingSettings, Target, directional_derivatives
from ontogeny.errors import ArgumentError, LayerMatchError, NonFiniteError
from ontogeny_papers.capture.targets import QUANTITIES

WIDTH = 16


def directions(count=3, seed=0, width=WIDTH):
    return np.random.default_rng(seed).normal(size=(width, count))


def shifted(model, path, step, moved):
    """Hook that really adds `step` to a module's output at `moved` positions."""

    def hook(_module, _args, output):
        hidden = output[0] if isinstance(output, tuple) else output
        hidden = hidden + torch.as_tensor(moved)[..., None] * torch.as_tensor(step)
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    return model.get_submodule(path).register_forward_hook(hook)


def score(model, inputs, corrupted, positions, shift, log):
    """Mean over a text's targets of the gold logit, text by text, without padding."""
    values = []
    for text in range(len(inputs)):
        real = inputs.mask[text]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(corrupted[text][real][None])).logits[
                0
            ]
        logits = logits.log_softmax(-1) if log else logits
        where = np.flatnonzero(positions[text][real])
        gold = inputs.ids[text][real][where]
        values.append(
            float(logits[where - shift, gold].mean()) if len(where) else np.nan
        )
    return np.array(values)


def finite_differences(model, inputs, path, v, target, shift, step):
    if shift:
        corrupted, positions = (
            inputs.ids,
            inputs.ordinary & (np.arange(inputs.ids.shape[1]) > 0),
        )
    else:
        corrupted, positions = inputs.corrupt(target.mask_fraction, target.random_state)
    log, ends = target.quantity == "log-probability", []
    for sign in (1, -1):
        rows = []
        for text in range(len(inputs)):
            one = inputs.subset([text])
            width = one.ids.shape[1]
            handle = shifted(model, path, sign * step * v, one.ordinary)
            args = (
                corrupted[text : text + 1, :width],
                positions[text : text + 1, :width],
            )
            rows.append(score(model, one, *args, shift, log)[0])
            handle.remove()
        ends.append(np.array(rows))
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_are_those_of_finite_differences(family, quantity):
    model, inputs = build(family, layers=2).double(), inputs_of()
    shift = int(family in CAUSAL)
    # transformers' RMS norms compute in float32 whatever the model's dtype: a wider step for them
    step, rtol = (1e-4, 3e-4) if family in ("llama", "eurobert") else (1e-5, 1e-5)
    target = Target(quantity=quantity, mask_fraction=0.4)
    data = directional_derivatives(
        model,
        inputs,
        BLOCKS[family],
        directions(2),
        target,
        settings=ReadingSettings(3),
    )
    assert data.sizes == {"layer": 2, "direction": 2, "example": len(data.text)}
    for path in data.layer.values:
        for k in range(2):
            v = directions(2)[:, k]
            slow = finite_differences(model, inputs, path, v, target, shift, step)
            known = np.isfinite(slow)
            assert data.text.values.tolist() == np.flatnonzero(known).tolist()
            found = data.derivative.sel(layer=path, direction=k).values
            np.testing.assert_allclose(found, slow[known], rtol=rtol, atol=rtol / 10)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_all_layers_at_once_equal_each_alone_and_batches_do_not_matter(family):
    model, inputs = build(family), inputs_of()
    layers = [MLPS[family], BLOCKS[family]]
    vectors = {
        path: directions(seed=i, width=32 if "intermediate" in path else WIDTH)
        for i, path in enumerate(capture.match_layers(model, layers))
    }
    together = directional_derivatives(model, inputs, layers, vectors)
    alone = directional_derivatives(
        model, inputs, layers, vectors, settings=ReadingSettings(batch_size=1)
    )
    scale = abs(together.derivative).max()
    np.testing.assert_allclose(
        together.derivative, alone.derivative, atol=2e-5 * float(scale)
    )
    for path, v in vectors.items():
        one = directional_derivatives(model, inputs, path, v)
        np.testing.assert_allclose(
            one.derivative[0],
            together.derivative.sel(layer=path),
            atol=1e-6 * float(scale),
        )


def test_one_backward_pass_serves_all_layers_and_directions(monkeypatch):
    calls, original = [], torch.autograd.grad

    def counted(*args, **options):
        calls.append(1)
        return original(*args, **options)

    monkeypatch.setattr(torch.autograd, "grad", counted)
    model, inputs = build("llama"), inputs_of()
    directional_derivatives(
        model, inputs, "layers.*.mlp", directions(40), settings=ReadingSettings(4)
    )
    assert len(calls) == 2  # seven texts with a next token, in batches of four


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_on_the_left_gives_the_same(family):
    model, v = build(family), directions()
    right = directional_derivatives(model, inputs_of(), BLOCKS[family], v)
    left = directional_derivatives(model, inputs_of(side="left"), BLOCKS[family], v)
    np.testing.assert_allclose(left.derivative, right.derivative, atol=1e-7)
    assert left.text.values.tolist() == right.text.values.tolist()


def test_values_per_target_average_to_those_per_text():
    model, inputs = build("bert").double(), inputs_of()
    target = Target(per="target", mask_fraction=0.4)
    each = directional_derivatives(
        model, inputs, "encoder.layer.*", directions(), target
    )
    whole = directional_derivatives(
        model, inputs, "encoder.layer.*", directions(), Target(mask_fraction=0.4)
    )
    _, positions = inputs.corrupt(0.4, 0)
    assert each.sizes["example"] == positions.sum()
    assert (positions[each.text.values, each.position.values]).all()
    mean = each.derivative.groupby(each.text).mean()
    np.testing.assert_allclose(
        mean.transpose("layer", "direction", "text"), whole.derivative, atol=1e-10
    )


def test_chosen_positions_are_masked_and_predicted():
    model, inputs = build("bert").double(), inputs_of()
    _, drawn = inputs.corrupt(0.15, 0)
    chosen = directional_derivatives(
        model, inputs, "encoder.layer.0", directions(), at=drawn
    )
    by_seed = directional_derivatives(model, inputs, "encoder.layer.0", directions())
    np.testing.assert_array_equal(chosen.derivative, by_seed.derivative)
    only = np.zeros_like(drawn)
    only[1, 4] = True
    one = directional_derivatives(
        model, inputs, "encoder.layer.0", directions(), at=only
    )
    assert one.text.values.tolist() == [1]


@pytest.mark.parametrize("along", ["last", "cls"])
def test_only_the_chosen_token_is_moved(along):
    model, inputs = OwnModel().eval(), inputs_of()
    column = 0 if along == "cls" else None
    found = directional_derivatives(
        model, inputs, "blocks.1", np.eye(WIDTH), Target("masked"), along=along
    )
    for text in range(len(inputs)):
        real = inputs.mask[text]
        ids, positions = inputs.corrupt(0.15, 0)
        kept = {}
        handle = model.blocks[1].register_forward_hook(
            lambda m, a, out, kept=kept: kept.setdefault("h", out.requires_grad_())
        )
        logits = model(torch.tensor(ids[text][real][None]))[0]
        handle.remove()
        where = np.flatnonzero(positions[text][real])
        logits[where, inputs.ids[text][real][where]].mean().backward(inputs=[kept["h"]])
        wanted = kept["h"].grad[0, 0 if column == 0 else real.sum() - 1]
        np.testing.assert_allclose(found.derivative[0, :, text], wanted, atol=1e-6)


def test_the_last_layer_has_the_heads_rows_as_derivative():
    """The vocabulary map is linear: along the target's own position the derivative is its row."""
    model, inputs = OwnModel().double(), inputs_of()
    target = Target("causal", per="target")
    data = directional_derivatives(
        model, inputs, "blocks.2", np.eye(WIDTH), target, along="target"
    )
    gold = inputs.ids[data.text.values, data.position.values]
    np.testing.assert_allclose(
        data.derivative[0].T, model.head.weight.detach()[gold], atol=1e-12
    )


def test_log_probability_and_logit_can_differ_in_sign():
    model, inputs = OwnModel().double(), inputs_of()
    both = [
        directional_derivatives(
            model, inputs, "blocks.2", directions(20), Target("causal", q)
        )
        for q in QUANTITIES
    ]
    disagree = (np.sign(both[0].derivative) != np.sign(both[1].derivative)).mean()
    assert 0 < float(disagree) < 0.5


def test_a_classifier_is_differentiated_at_its_class():
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        num_labels=3,
    )
    model = BertForSequenceClassification(config).eval().double()
    rows = [row[row > 0] for row in inputs_of().ids]
    inputs = Inputs.from_tokens(rows, labels=np.arange(len(rows)) % 3)
    own = directional_derivatives(model, inputs, "encoder.layer.*", directions())
    fixed = [
        directional_derivatives(
            model, inputs, "encoder.layer.*", directions(), Target("class", label=c)
        )
        for c in range(3)
    ]
    for text in range(len(inputs)):
        np.testing.assert_allclose(
            own.derivative[..., text], fixed[text % 3].derivative[..., text], atol=1e-14
        )
    step = 1e-5 * directions()[:, 0]
    ends = []
    for sign in (1, -1):
        handle = shifted(model, "bert.encoder.layer.0", sign * step, inputs.ordinary)
        ids, mask = torch.tensor(inputs.ids), torch.tensor(inputs.mask.astype(int))
        with torch.no_grad():
            ends.append(model(input_ids=ids, attention_mask=mask).logits[:, 1].numpy())
        handle.remove()
    slow = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(fixed[1].derivative[0, 0], slow, rtol=1e-5, atol=1e-9)
    with pytest.raises(ArgumentError, match="the model has 3 classes"):
        directional_derivatives(
            model, inputs, "encoder.layer.0", directions(), Target("class", label=3)
        )


def test_inputs_of_modules_are_sites_too():
    model, inputs = build("llama").double(), inputs_of()
    pre = directional_derivatives(model, inputs, "layers.1#in", directions())
    before = directional_derivatives(model, inputs, "layers.0", directions())
    np.testing.assert_allclose(pre.derivative, before.derivative, atol=1e-12)


def test_the_model_is_left_as_it_was():
    model, inputs = build("gpt2").train(), inputs_of()
    model.transformer.wte.weight.requires_grad_(False)
    before = {
        name: (p.clone(), p.requires_grad) for name, p in model.named_parameters()
    }
    directional_derivatives(model, inputs, "h.*", directions())
    with pytest.raises(ArgumentError):
        directional_derivatives(model, inputs, "h.*", directions(width=7))
    assert model.training and all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name][0]) and p.requires_grad == before[name][1]


def test_a_layer_after_the_output_has_derivative_zero():
    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 9)
            self.aside = nn.Linear(4, 4)

        def forward(self, ids):
            hidden = self.embed(ids)
            self.aside(hidden)
            return self.head(hidden)

    data = directional_derivatives(
        Aside(), {"input_ids": [[1, 2, 3]]}, ["embed", "aside"], np.eye(4), "causal"
    )
    assert (data.derivative.sel(layer="aside") == 0).all()
    assert (data.derivative.sel(layer="embed") != 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"directions": np.ones((7, 2))}, "have 7 features, so it must give"),
        (
            {"directions": {"blocks.0": np.ones(16)}},
            "directions has none for blocks.1, blocks.2",
        ),
        ({"directions": np.ones((2, 2, 2))}, r"must be \(m,\) or \(m, K\)"),
        ({"target": "auto"}, "give objective='masked', 'causal' or 'class'"),
        ({"target": "next"}, "objective must be one of"),
        ({"along": "mean"}, "along must be one of 'all'"),
        ({"at": np.ones((2, 2), dtype=bool)}, "at must be a bool array of shape"),
        (
            {"at": np.ones((len(LENGTHS), 23), dtype=bool)},
            "positions that cannot be predicted",
        ),
    ],
)
def test_bad_arguments_are_refused(options, words):
    given = {
        "layers": "blocks.*",
        "directions": np.ones(16),
        "target": "causal",
        **options,
    }
    with pytest.raises(ArgumentError, match=words):
        directional_derivatives(OwnModel(), inputs_of(), **given)


def test_layers_that_do_not_exist_are_named():
    with pytest.raises(LayerMatchError, match="matches no module"):
        directional_derivatives(
            OwnModel(), inputs_of(), "block.9.fc", np.ones(16), "causal"
        )


def test_directions_that_are_not_finite_are_refused():
    with pytest.raises(NonFiniteError, match="holds 16 NaN or infinite"):
        directional_derivatives(
            OwnModel(), inputs_of(), "blocks.0", np.full(16, np.nan), "causal"
        )


def test_a_model_that_gives_nan_is_refused():
    model = OwnModel()
    with torch.no_grad():
        model.head.weight[5:] = torch.nan
    with pytest.raises(NonFiniteError, match=r"NaN or infinite in blocks\.0"):
        directional_derivatives(model, inputs_of(), "blocks.0", np.ones(16), "causal")


def test_inputs_without_a_mask_token_cannot_be_masked():
    inputs = Inputs.from_tokens([[5, 6, 7]], vocab_size=VOCABULARY)
    with pytest.raises(ArgumentError, match="no mask token"):
        directional_derivatives(OwnModel(), inputs, "blocks.0", np.ones(16), "masked")
    at = np.array([[True, False, False]])
    with pytest.raises(ArgumentError, match="no mask token"):
        directional_derivatives(
            OwnModel(), inputs, "blocks.0", np.ones(16), "masked", at=at
        )
    assert MASK < VOCABULARY
