"""The logit lens against the model's own logits, in every family with a known way to them."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import NAMES, build, inputs_of
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.circuits.lens_reading import LayerPredictions, way_to_logits

WITH_HEAD = [name for name in NAMES if name != "t5"]


def read(model, inputs, **options):
    need = LayerPredictions(**options)
    return og.capture.read(model, [need], {"text": inputs})[need]


@pytest.mark.parametrize("name", WITH_HEAD)
def test_the_last_layer_predicts_what_the_model_does(name):
    model, inputs = build(name), inputs_of(pad_token_id=1 if name == "roberta" else 0)
    found = read(model, inputs, max_tokens=None)
    loss, apart, _ = list(found.layers.values())[-1]
    whole = og.capture.losses(model, inputs)
    assert np.abs(apart).max() < 1e-5
    mean = float((whole.loss * whole.tokens).sum() / whole.tokens.sum())
    assert loss.mean() == pytest.approx(mean, abs=1e-5)
    first, before, _ = next(iter(found.layers.values()))
    assert before.mean() > 1e-4 and not np.allclose(first, loss)


def test_a_layer_equals_its_hidden_state_through_the_norm_and_the_map():
    model, inputs = build("gpt2"), inputs_of(lengths=(9, 5))
    found = read(model, inputs, max_tokens=None)
    for text in range(2):
        ids = torch.tensor(inputs.ids[text][inputs.mask[text]])[None]
        with torch.no_grad():
            states = model(ids, output_hidden_states=True).hidden_states
            log_p = model.lm_head(model.transformer.ln_f(states[1])).log_softmax(-1)
        own = -log_p[0, :-1].gather(1, ids[0, 1:, None])[:, 0].numpy()
        ours = found.layers["transformer.h.0"][0][found.unit == text]
        np.testing.assert_allclose(np.sort(ours), np.sort(own), atol=1e-5)


def test_some_tokens_are_the_same_at_every_checkpoint():
    inputs = inputs_of()
    one, two = (read(build("gpt2", seed), inputs, max_tokens=20) for seed in (0, 1))
    assert len(one.unit) == 20 and (one.unit == two.unit).all()


def test_a_model_whose_way_to_its_logits_is_not_known_is_refused():
    with pytest.raises(ArgumentError, match="no linear map to a vocabulary"):
        way_to_logits(build("t5"))
    model = build("gpt2")
    plain = model.forward

    class Scaled(type(model)):
        def forward(self, *args, **options):
            found = plain(*args, **options)
            found.logits = 3 * found.logits
            return found

    model.__class__ = Scaled
    with pytest.raises(
        ArgumentError, match="between its last block and its logits is not known"
    ):
        read(model, inputs_of())


def test_nan_is_refused():
    model = build("gpt2")
    with torch.no_grad():
        model.transformer.h[0].mlp.c_proj.weight[0, 0] = torch.nan
    with pytest.raises(NonFiniteError, match="predicts is not finite"):
        read(model, inputs_of())


def test_the_node_has_a_line_for_each_layer_and_the_null_of_other_tokens(tmp_path):
    run = og.Trajectory.from_models(
        {step: build("llama", seed=step) for step in (0, 1, 2)}
    )
    study = og.Study(
        run, inputs_of(), og.observables.LogitLens(), device="cpu", noise=0
    )
    data = study.run(tmp_path)["logit-lens"].to_dataset()
    assert set(data.lens_loss.sizes.items()) == {("step", 3), ("layer", 2)}
    assert (
        np.isfinite(data.lens_loss_elsewhere).all()
        and np.isfinite(data.lens_loss_floor).all()
    )
