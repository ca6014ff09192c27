"""The cost of telling which word stands where: what moves it, and what does not."""

import numpy as np
import pytest
import torch

from ontogeny.capture.matching import GROUP, MatchedWords, matching_costs
from ontogeny.inputs import Inputs

WORDS, TEXTS, LENGTH = 50, 20, 32


def world(strength, seed=0):
    """Logits that depend on places, and texts that were drawn by them."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.randn(TEXTS * LENGTH, 6, generator=generator)
    words = torch.randn(WORDS, 6, generator=generator)
    logits = strength * places @ words.T + torch.randn(WORDS, generator=generator)
    ids = torch.multinomial(logits.softmax(-1), 1, generator=generator).view(
        TEXTS, LENGTH
    )
    return logits, Inputs.from_tokens(ids.numpy(), vocab_size=WORDS)


def cost_of(logits, inputs, batches=1):
    predicted = inputs.ordinary
    text, column = np.nonzero(predicted)
    matched = MatchedWords(inputs, predicted)
    for rows in np.array_split(np.arange(len(text)), batches):
        matched.add(text[rows], column[rows], logits[rows].log_softmax(-1))
    of_text, tokens, blind = matched.of_texts()
    return float(np.average(of_text, weights=tokens)), blind, of_text


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("preferred", [0.0, 0.5, 2.0])
def test_neither_temperature_nor_preference_of_words_changes_it(scale, preferred):
    logits, inputs = world(1.0)
    liking = torch.randn(WORDS, generator=torch.Generator().manual_seed(1)) * preferred
    moved = cost_of(scale * logits + liking, inputs)
    plain = cost_of(logits, inputs)
    assert moved[0] == pytest.approx(plain[0], abs=3e-5)
    np.testing.assert_allclose(moved[2], plain[2], atol=2e-3)


def test_what_places_tell_lowers_it_and_noise_raises_it():
    costs = [
        cost_of(world(strength)[0], world(strength)[1])[0]
        for strength in (0.0, 0.5, 1.5)
    ]
    assert costs[0] > costs[1] + 0.1 > costs[2] + 0.5
    logits, inputs = world(1.0)
    noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
    assert cost_of(logits + 0.5 * noise, inputs)[0] > cost_of(logits, inputs)[0] + 0.02


def test_a_model_that_looks_at_no_place_pays_the_blind_cost():
    logits, inputs = world(1.0)
    cost, blind, _ = cost_of(logits[:1].expand(len(logits), -1), inputs)
    assert cost == pytest.approx(blind, abs=1e-5)


def test_of_two_places_it_is_the_odds_ratio():
    # Preferences that balance two columns make the scores symmetric: b times a quarter of the
    # log odds ratio on each side, so that at the largest b nothing is left to tell.
    scores = torch.tensor([[[2.0, 1.0], [0.0, 0.5]]] * 3 + [[[0.0, 1.0], [1.0, 0.0]]])
    ratio = torch.tensor([1.5, 1.5, 1.5, -2.0])

    def bare(b):
        return torch.nn.functional.softplus(-b * ratio / 2)

    grid = torch.linspace(0.1, 10, 4000)
    best = min(float(bare(b).mean()) for b in grid)
    assert float(matching_costs(scores).mean()) == pytest.approx(best, abs=1e-5)


def test_batches_and_left_over_tokens_change_nothing_and_memory_is_bounded():
    logits, inputs = world(1.0)
    whole, parts = (cost_of(logits, inputs, batches=n) for n in (1, 7))
    np.testing.assert_array_equal(whole[2], parts[2])
    many = Inputs.from_tokens(np.random.default_rng(0).integers(0, 900, (300, 100)))
    matched = MatchedWords(many, many.ordinary)
    assert matched._scores.numel() == 2**14 * GROUP
    assert matched.of_texts()[1].min() > 20  # evenly over the texts


def test_few_tokens_make_one_group():
    inputs = Inputs.from_tokens([[1, 2, 3], [3, 1, 2]], vocab_size=5)
    matched = MatchedWords(inputs, inputs.ordinary)
    matched.add(*np.nonzero(inputs.ordinary), torch.zeros(6, 5))
    of_text, tokens, blind = matched.of_texts()
    assert tokens.tolist() == [3, 3] and blind == pytest.approx(np.log(3))
    np.testing.assert_allclose(of_text, np.log(3), atol=1e-5)
    empty = MatchedWords(inputs, np.zeros((2, 3), dtype=bool)).of_texts()
    assert empty[1].tolist() == [0, 0] and np.isnan(empty[2])


def test_words_that_are_likely_nowhere_and_ruled_out_leave_it_finite():
    logits, inputs = world(1.0)
    unlikely = torch.zeros(WORDS)
    unlikely[:5] = -60.0
    plain, moved = cost_of(logits, inputs), cost_of(4 * logits + unlikely, inputs)
    assert moved[0] == pytest.approx(plain[0], abs=3e-5)
    far = logits.clone()
    far[::7, 10] = -torch.inf  # but where it stands
    ids = torch.tensor(inputs.ids).flatten()
    far[torch.arange(len(ids)), ids] = logits[torch.arange(len(ids)), ids]
    assert np.isfinite(cost_of(far, inputs)[2]).all()
