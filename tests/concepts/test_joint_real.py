"""Joint dictionaries of a small model that learned: what is shown stays under rounding."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from ontogeny import capture
from ontogeny.concepts import JointDictionary
from ontogeny.concepts.joint.presence import found_again
from ontogeny.inputs import Inputs
from ontogeny.tasks import bundled_texts, train_tokenizer

SAVED = (0, 10, 20, 40, 80, 120, 160, 200)


@pytest.fixture(scope="module")
def learned():
    """Return activations (8, n, 48) while a layer learns bundled English, and the texts."""
    torch.manual_seed(0)
    texts = bundled_texts()
    tokenizer = train_tokenizer(texts, vocab_size=500)
    inputs = Inputs.from_texts(texts, tokenizer, max_length=48)
    config = LlamaConfig(
        vocab_size=500,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    ids, mask = torch.tensor(inputs.ids.tolist()), torch.tensor(inputs.mask.tolist())
    labels, found, losses = ids.masked_fill(~mask, -100), [], []
    for step in range(SAVED[-1] + 1):
        if step in SAVED:
            read = capture.activations(
                model.eval(), inputs, layers="model.layers.0.mlp"
            )
            found.append(next(iter(read.values())).numpy())
        rows = torch.randperm(len(ids), generator=torch.Generator().manual_seed(step))[
            :16
        ]
        loss = model.train()(
            ids[rows], attention_mask=mask[rows], labels=labels[rows]
        ).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.7 * losses[0]  # something was learned
    sample = inputs.sample()
    return np.stack(found), inputs.groups[sample.text]


def fitted(activations, texts):
    return JointDictionary(40, fit_steps=8, n_draws=30, random_state=0).fit(
        activations, groups=texts
    )


@pytest.fixture(scope="module")
def whole(learned):
    return fitted(*learned)


def changed(activations, texts, how):
    """Return activations with noise or in another order, and the order of their rows."""
    rng = np.random.default_rng(1)
    if how == "noise":
        noise = 1e-6 * rng.standard_normal(activations.shape)
        return activations * (1 + noise), texts, np.arange(len(texts))
    order = rng.permutation(len(texts))
    return activations[:, order], texts[order], order


@pytest.mark.slow
@pytest.mark.parametrize("how", ["noise", "order"])
def test_rounding_and_order_change_no_concept_that_is_shown(learned, whole, how):
    *given, order = changed(*learned, how)
    other = fitted(*given)
    shown = np.flatnonzero(whole.is_concept_ & whole.replicates_)
    assert len(shown) >= 5
    correlation, match = found_again(whole.codes_[order], other.codes_)
    assert (correlation[shown] > 0.9).mean() >= 0.95
    assert other.replicates_[match[shown]].mean() >= 0.95
    same = other.lives_.born[match[shown]] == whole.lives_.born[shown]
    assert same.mean() >= 0.9
