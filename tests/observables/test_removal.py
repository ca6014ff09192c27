"""Parts of a layer's output removed: against plain loops, finite differences and closed forms."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from helpers import family_models
from helpers.capture_models import BLOCKS, CAUSAL, MLPS, OwnModel, build, inputs_of
from ontogeny import Inputs, capture, needs
from ontogeny.capture import ReadingSettings
from ontogeny.capture.gradients import gradients
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.inputs.sampling import TokenSample
from ontogeny.observables.removal import LossAtTokens

FAMILIES = ("gpt2", "llama", "bert", "eurobert")


def reading_of(model, inputs, loss=None, **settings):
    need = needs.Gradients(loss)
    return gradients(model, need, {"text": inputs}, ReadingSettings(**settings))


def at_of(model, inputs, loss=None, objective="auto", max_tokens=30, **settings):
    reading = reading_of(model, inputs, loss, **settings)
    at = LossAtTokens(reading, reading.inputs.sample("all", max_tokens, 1), objective)
    rows = np.flatnonzero(at.unmasked)
    sample = TokenSample(at.sample.text[rows], at.sample.position[rows])
    return LossAtTokens(reading, sample, objective)


def plain(model, inputs, path, at, codes, direction, causal):
    """Loss of every text alone, without padding, its layer's output changed by a plain hook."""
    corrupted, predicted = inputs.corrupt(0.15, 0)
    found = np.zeros(len(inputs))
    for text in np.unique(at.sample.text):
        real = inputs.mask[text]
        ids = torch.tensor(inputs.ids[text][real])
        seen = ids if causal else torch.tensor(corrupted[text][real])
        part = torch.zeros(len(ids), len(direction), dtype=torch.float64)
        for row in np.flatnonzero(at.sample.text == text):
            part[at.sample.position[row]] = torch.tensor(codes[row] * direction)

        def hook(_module, _args, output, part=part):
            first = output[0] if isinstance(output, tuple) else output
            first = first - part
            return (first, *output[1:]) if isinstance(output, tuple) else first

        handle = model.get_submodule(path).register_forward_hook(hook)
        with torch.no_grad():
            logits = model(input_ids=seen[None]).logits[0]
        handle.remove()
        where = (
            np.arange(1, len(ids)) if causal else np.flatnonzero(predicted[text][real])
        )
        if len(where):
            rows = torch.tensor(where - int(causal))
            found[text] = cross_entropy(logits[rows], ids[where], reduction="sum")
    return found


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_removal_is_that_of_a_plain_loop(family, side):
    model, inputs = family_models.build(family).double(), inputs_of(side=side)
    causal = family in CAUSAL
    at = at_of(model, inputs, batch_size=3)
    rng = np.random.default_rng(0)
    for pattern in (BLOCKS[family], MLPS[family]):
        path = capture.match_layers(model, pattern)[0]
        width = 48 if path.endswith("intermediate") else family_models.WIDTH
        codes = rng.exponential(size=len(at.sample)) * (
            rng.random(len(at.sample)) < 0.3
        )
        direction = rng.normal(size=width).astype(np.float32).astype(np.float64)
        codes = codes.astype(np.float32).astype(np.float64)
        found = at.removed(path, codes, direction)
        whole = plain(model, inputs, path, at, 0 * codes, direction, causal)
        without = plain(model, inputs, path, at, codes, direction, causal)
        np.testing.assert_allclose(at.losses, whole, atol=2e-5)
        np.testing.assert_allclose(found, without - whole, atol=2e-5)
        assert np.abs(found).max() > 1e-2


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_finite_differences_of_removal(family):
    model, inputs = family_models.build(family).double(), inputs_of()
    at = at_of(model, inputs)
    paths = [capture.match_layers(model, p)[0] for p in (BLOCKS[family], MLPS[family])]
    found = at.gradients(paths)
    rng = np.random.default_rng(1)
    for path in paths:
        codes = rng.normal(size=len(at.sample))
        direction = rng.normal(size=found[path].shape[1])
        first = codes @ found[path] @ direction
        step = 3e-3  # losses are summed in float32
        ends = [
            at.removed(path, sign * step * codes, direction).sum() for sign in (-1, 1)
        ]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(
            first, rel=0.02, abs=2e-2
        )


def test_the_closed_form_of_a_linear_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 4), nn.Identity(), nn.Linear(4, 9)).double()
    inputs = Inputs.from_tokens([[1, 2, 3, 4], [5, 6], [7]])
    reading = reading_of(model, inputs, "next-token")
    at = LossAtTokens(reading, inputs.sample(), "causal")
    codes, direction = np.arange(7.0), np.array([1.0, -2.0, 0.5, 0.0])
    A = model[0].weight.detach().numpy()[[1, 2, 3, 5]]
    W, b = (p.detach().numpy() for p in model[2].parameters())
    gold = [2, 3, 4, 6]

    def losses(values):
        logits = values @ W.T + b
        return np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(4), gold]

    # Rows of the sample from which a token is predicted.
    predicting = np.array([0, 1, 2, 4])
    part = codes[predicting, None] * direction
    change = losses(A - part) - losses(A)
    expected = [change[:3].sum(), change[3], 0.0]
    np.testing.assert_allclose(at.removed("1", codes, direction), expected, atol=1e-5)
    softmax = np.exp(A @ W.T + b)
    softmax /= softmax.sum(axis=1, keepdims=True)
    softmax[np.arange(4), gold] -= 1
    gradient = np.zeros((7, 4))
    gradient[predicting] = softmax @ W
    np.testing.assert_allclose(at.gradients(["1"])["1"], gradient, atol=1e-6)
    assert at.tokens.tolist() == [3, 1, 0]


def test_texts_without_a_sampled_token_are_left_out():
    model, inputs = build("llama"), inputs_of()
    reading = reading_of(model, inputs)
    at = LossAtTokens(reading, TokenSample(np.array([1, 1]), np.array([0, 4])))
    assert np.flatnonzero(at.tokens).tolist() == [1]
    assert np.flatnonzero(at.losses).tolist() == [1]
    change = at.removed("model.layers.0", np.array([0.0, 1.0]), np.ones(16))
    assert np.flatnonzero(change).tolist() == [1]


def test_nothing_is_removed_behind_the_mask_token():
    model, inputs = build("bert"), inputs_of()
    at = LossAtTokens(reading_of(model, inputs), inputs.sample())
    predicted = inputs.corrupt(0.15, 0)[1]
    sample = inputs.sample()
    np.testing.assert_array_equal(at.unmasked, ~predicted[sample.text, sample.position])
    causal = build("gpt2")
    assert LossAtTokens(reading_of(causal, inputs), sample).unmasked.all()


def test_no_change_is_exactly_zero_and_batches_do_not_matter():
    model, inputs = build("gpt2"), inputs_of()
    codes, direction = np.zeros(30), np.ones(16)
    assert not at_of(model, inputs).removed("transformer.h.0", codes, direction).any()
    codes[::2] = 1.0
    one, many = (
        at_of(model, inputs, batch_size=size).removed(
            "transformer.h.0", codes, direction
        )
        for size in (1, 8)
    )
    np.testing.assert_allclose(one, many, atol=2e-5)


def test_a_model_is_left_as_it_was_also_after_an_error():
    model = OwnModel().train()
    inputs = inputs_of()
    at = at_of(model, inputs, "next-token", "causal")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    codes = np.ones(len(at.sample))
    first = at.removed("blocks.1", codes, np.ones(16))
    # No dropout.
    assert np.array_equal(first, at.removed("blocks.1", codes, np.ones(16)))
    at.gradients(["blocks.1"])
    with pytest.raises(ArgumentError, match=r"'blocks.1' must give .* 5\); got"):
        at.removed("blocks.1", codes, np.ones(5))
    with pytest.raises(ArgumentError, match=r"'blocks.1.attention' must give"):
        at.removed("blocks.1.attention", codes, np.ones(3))
    assert model.training and all(p.requires_grad for p in model.parameters())
    assert all(p.grad is None for p in model.parameters())
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
    assert all(
        torch.equal(before[name], value) for name, value in model.state_dict().items()
    )


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.shared, self.idle = (
            nn.Embedding(64, 4),
            nn.Linear(4, 4),
            nn.Linear(4, 4),
        )
        self.head = nn.Linear(4, 64)

    def forward(self, ids):
        return self.head(self.shared(self.shared(self.embed(ids))))


def test_a_layer_that_is_not_called_once_is_refused():
    at = at_of(Twice(), inputs_of(), "next-token", "causal")
    codes = np.ones(len(at.sample))
    for act in (
        lambda p: at.gradients([p]),
        lambda p: at.removed(p, codes, np.ones(4)),
    ):
        with pytest.raises(ArgumentError, match="'shared' is called more than once"):
            act("shared")
        with pytest.raises(ArgumentError, match="never called idle"):
            act("idle")


def test_a_part_of_a_fused_output_is_refused():
    at = at_of(build("gpt2"), inputs_of())
    with pytest.raises(
        ArgumentError, match=r"part of a fused output.*choose 'transformer"
    ):
        at.gradients(["transformer.h.0.attn.c_attn#q"])


def test_the_input_of_a_module_is_changed_too():
    model, inputs = build("gpt2"), inputs_of()
    at = at_of(model, inputs)
    codes, direction = np.ones(len(at.sample)), np.linspace(-1, 1, 16)
    found = at.removed("transformer.h.1#in", codes, direction)
    np.testing.assert_allclose(
        found, at.removed("transformer.h.0", codes, direction), atol=1e-5
    )


def test_what_is_not_finite_is_named():
    at = at_of(build("llama"), inputs_of())
    with pytest.raises(NonFiniteError):
        at.removed("model.layers.0", np.full(len(at.sample), np.inf), np.ones(16))
