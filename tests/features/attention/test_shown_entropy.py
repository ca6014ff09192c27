"""Attention entropy of single tokens against the maps of each text alone."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.capture_models import MASK, build
from ontogeny.errors import ArgumentError
from ontogeny.inputs import Inputs
from ontogeny.needs import Attention
from ontogeny.observables import AttentionEntropy, TokenLosses

LENGTHS = (9, 14, 3, 12, 14, 6)
STEPS = (0, 1)


def texts(side="left"):
    """Texts that begin and end with special tokens, and no tokenizer."""
    rng = np.random.default_rng(0)
    rows = [[5, *rng.integers(7, 30, length - 2), 6] for length in LENGTHS]
    inputs = Inputs.from_tokens(
        rows, special_ids=[5, 6], mask_token_id=MASK, vocab_size=64
    )
    return inputs.padded(side)


def sharp(family, step):
    """A model whose attention is far from uniform."""
    model = build(family, seed=step)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "emb" not in name and "wte" not in name:
                weight.mul_(20)
    return model


def own_entropies(model, ids):
    """Entropy of every query of one text alone, mean over heads, (layers, tokens)."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(
            input_ids=torch.tensor(ids[None]), output_attentions=True
        ).attentions
    model.set_attn_implementation("sdpa")
    found = []
    for weights in maps:
        p = weights[0].double()
        found.append(-(p * p.clamp_min(1e-300).log()).sum(-1).mean(0).numpy())
    return np.array(found)


@pytest.fixture(scope="module", params=["llama", "bert"])
def result(request, tmp_path_factory):
    models = {step: sharp(request.param, step) for step in STEPS}
    study = og.Study(
        og.Trajectory.from_models(models),
        texts(),
        [TokenLosses(), AttentionEntropy(shown_texts=3)],
        device="cpu",
    )
    tree = study.run(tmp_path_factory.mktemp(request.param) / "study")
    return tree, {step: sharp(request.param, step) for step in STEPS}, request.param


def test_entropies_equal_the_maps_of_each_text_alone(result):
    tree, models, family = result
    data, inputs = tree["attention-entropy"].to_dataset(), texts("right")
    assert data.sizes["shown_text"] == 3
    for step, model in models.items():
        for row, text in enumerate(data.shown_text_number.values):
            ids = inputs.ids[text][inputs.mask[text]]
            at = data.sel(step=step).isel(shown_text=row)
            ordinary = inputs.ordinary[text][: len(ids)]
            own = np.where(ordinary, own_entropies(model, ids), np.nan)
            found = at.shown_entropy.transpose("layer", "shown_place").values
            np.testing.assert_allclose(found[:, : len(ids)], own, rtol=1e-4, atol=1e-5)
            assert np.isnan(found[:, len(ids) :]).all()
            visible = (
                np.arange(1, len(ids) + 1)
                if family == "llama"
                else np.full(len(ids), len(ids))
            )
            equal = np.where(ordinary, np.log(visible), np.nan)
            np.testing.assert_allclose(
                at.shown_entropy_uniform[: len(ids)], equal, atol=1e-6
            )


def test_they_are_of_the_tokens_that_have_losses(result):
    tree, _, _ = result
    losses, entropies = (
        tree[name].to_dataset() for name in ("token-losses", "attention-entropy")
    )
    np.testing.assert_array_equal(losses.text_number, entropies.shown_text_number)
    np.testing.assert_array_equal(losses.token_id, entropies.shown_token_id)
    ids = entropies.shown_token_id.values
    assert entropies.piece.values.tolist() == np.unique(ids[ids >= 0]).tolist()


def test_the_means_over_all_texts_are_the_same_with_and_without_them(result, tmp_path):
    tree, models, _ = result
    study = og.Study(
        og.Trajectory.from_models(models), texts(), [AttentionEntropy()], device="cpu"
    )
    plain = study.run(tmp_path / "study")["attention-entropy"].to_dataset()
    np.testing.assert_array_equal(plain.entropy, tree["attention-entropy"]["entropy"])
    assert not [name for name in plain if str(name).startswith("shown")]


@pytest.mark.parametrize("count", [-1, 1.5])
def test_a_number_of_texts_out_of_range_is_refused(count):
    with pytest.raises(ArgumentError, match="shown_texts"):
        AttentionEntropy(shown_texts=count)


def test_tokens_are_shown_of_all_queries_alone():
    with pytest.raises(ArgumentError, match="shown=2 needs tokens='all'"):
        Attention(tokens="last", shown=2)
