"""Which places a study proposes to score: both errors, with the choice of places inside."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.start.places import is_confirmed, learned_end, proposed_places

BLIND = float(np.log(23))
VOCAB = 12


def proposals(make, repeats=300):
    """Return the numbers of last places that are proposed for drawn losses (3, texts, places)."""
    found = []
    for seed in range(repeats):
        costs = make(np.random.default_rng(seed))
        half = costs.shape[1] // 2
        guesses = np.full_like(costs[:, half:], BLIND)
        chosen = learned_end(costs[:, :half], guesses)
        is_told = chosen.learned and is_confirmed(costs[:, half:], guesses, chosen)
        found.append(chosen.learned if is_told else 0)
    return np.array(found)


def nothing_learned(rng, texts=60, places=2):
    luck = rng.normal(0, 0.05, (3, 1, places))
    return BLIND + luck + rng.normal(0, 0.3, (3, texts, places))


def all_learned(rng, texts=60, places=20):
    fall = np.linspace(0.1, 0.5, places) * BLIND
    return (
        BLIND
        + rng.normal(0, 0.5, (3, texts, places))
        - np.outer([0, 0.7, 1], fall)[:, None]
    )


def early_in_training(rng, texts=60, places=20):
    fall = np.linspace(0.0, 0.08, places) * BLIND
    return (
        BLIND
        + rng.normal(0, 0.3, (3, texts, places))
        - np.outer([0, 0.5, 1], fall)[:, None]
    )


def last_learned(rng, texts=60):
    costs = BLIND + rng.normal(0, 0.3, (3, texts, 3))
    costs[:, :, 0] += np.array([0, 1, 4])[:, None]
    costs[:, :, 1] += np.array([0, 0.2, 0.5])[:, None]
    costs[2, :, 2] = abs(rng.normal(0, 0.3, texts))
    return costs


@pytest.mark.parametrize("make", [nothing_learned, all_learned, early_in_training])
def test_places_are_hardly_ever_proposed_where_none_stands_out(make):
    assert np.mean(proposals(make) > 0) <= 0.02


def test_what_only_the_last_place_learns_is_found():
    found = proposals(last_learned)
    assert np.mean(found == 1) >= 0.98


class Answers(nn.Module):
    """Predicts the answer of rows *a, b, (a + b) mod p* as sharply as its scale; the rest worse."""

    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, ids):
        first, place = ids[:, :1], torch.arange(ids.shape[1])[None, :, None]
        answer = nn.functional.one_hot((first + ids) % VOCAB, VOCAB).float()
        wrong = nn.functional.one_hot((ids * 5) % VOCAB, VOCAB).float()
        return self.scale * torch.where(place == 1, answer, wrong)


def sums(count=100, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.divmod(rng.permutation(VOCAB**2)[:count], VOCAB), axis=1)
    return np.column_stack([pairs, pairs.sum(axis=1) % VOCAB])


def trained():
    return og.Trajectory.from_models(
        {step: Answers(step / 10) for step in (0, 20, 50, 100)}
    )


def test_modular_addition_is_scored_at_its_answer():
    places = proposed_places(trained(), og.Inputs.from_tokens(sums()))
    assert places.table == {"score": "last:1"}
    assert places.line == (
        "the first 2 of 3 tokens cannot be predicted; the loss is of the last: --score last:1"
    )


class Characters(nn.Module):
    """Reads sums such as 23+45=068 as characters; answers right, and knows the rest by its kind."""

    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, ids):
        digits = (torch.arange(60) < 10).float()
        place = torch.arange(ids.shape[1])
        said = digits.repeat(*ids.shape, 1)
        said[:, place == 1] = nn.functional.one_hot(torch.tensor(10), 60).float()
        said[:, place == 4] = nn.functional.one_hot(torch.tensor(11), 60).float()
        tens = (10 * ids[:, [0, 3]] + ids[:, [1, 4]]).sum(dim=1)
        answer = torch.stack([tens // 100, tens // 10 % 10, tens % 10], dim=1)
        for at in range(5, ids.shape[1]):
            said[:, at] = nn.functional.one_hot(answer[:, min(at - 5, 2)], 60).float()
        return self.scale * said


def test_digits_among_many_characters_are_not_learned_by_being_digits():
    """Who knows that a digit follows is far below a uniform guess among 60 characters."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(10, 100, (2, 80))
    total = first + second
    parts = [first // 10, first % 10, np.full(80, 10), second // 10, second % 10]
    parts += [np.full(80, 11), total // 100, total // 10 % 10, total % 10]
    run = og.Trajectory.from_models(
        {step: Characters(step / 5) for step in (0, 25, 50)}
    )
    places = proposed_places(
        run, og.Inputs.from_tokens(np.column_stack(parts), vocab_size=60)
    )
    assert places.table == {"score": "last:3"}


def test_a_run_that_learns_nothing_has_no_proposal():
    run = og.Trajectory.from_models({step: Answers(0) for step in (0, 20, 50, 100)})
    assert proposed_places(run, og.Inputs.from_tokens(sums())) is None


class AfterSeparator(Answers):
    """Answers the first token after the separator, the last id; before it worse and worse."""

    def forward(self, ids):
        after = ((ids == VOCAB - 1).cumsum(dim=1) > 0)[:, :, None]
        answer = nn.functional.one_hot(ids[:, :1], VOCAB).float()
        wrong = nn.functional.one_hot((ids * 5) % VOCAB, VOCAB).float()
        return self.scale * torch.where(after, answer, wrong)


def test_texts_of_other_lengths_are_scored_after_their_separator():
    rng = np.random.default_rng(1)
    asked = [rng.integers(4, VOCAB - 1, rng.integers(4, 8)).tolist() for _ in range(60)]
    texts = [[*of, VOCAB - 1, of[0]] for of in asked]
    run = og.Trajectory.from_models(
        {step: AfterSeparator(step / 10) for step in (0, 20, 50, 100)}
    )
    places = proposed_places(run, og.Inputs.from_tokens(texts))
    assert places.table == {"answer_after": VOCAB - 1}
