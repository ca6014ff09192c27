"""Losses at single places against a bare computation, and what is claimed of them."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.claims import Certainty, Claim, Kind, Reason, Subject, from_dataset
from ontogeny.claims.places import answered, learned_places
from ontogeny.features.predictions.place_losses import PlaceLosses

P = 7
STEPS = (0, 10, 20, 40)


class Answers(nn.Module):
    """Answers the last of *a, b, (a + b) mod p*, the others worse and worse, with its scale."""

    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, ids):
        first, place = ids[:, :1], torch.arange(ids.shape[1])[None, :, None]
        answer = nn.functional.one_hot((first + ids) % P, P).float()
        wrong = nn.functional.one_hot((ids * 3) % P, P).float()
        return self.scale * torch.where(place == 1, answer, wrong)


def sums():
    pairs = np.stack(np.divmod(np.arange(P**2), P), axis=1)
    return np.column_stack([pairs, pairs.sum(axis=1) % P])


def run():
    return og.Trajectory.from_models({step: Answers(step / 4) for step in STEPS})


def studied(inputs, tmp_path, trajectory=None, **options):
    observables = [og.observables.Loss(objective="causal")]
    observables.append(PlaceLosses(objective="causal", **options))
    study = og.Study(trajectory or run(), inputs, observables, device="cpu")
    return study.run(tmp_path / "s", progress=False)


def claims_of(result):
    return from_dataset(result.tree.to_dataset())


@pytest.mark.parametrize("every", [False, True])
def test_losses_at_places_are_those_of_a_bare_computation(tmp_path, every):
    inputs = og.Inputs.from_tokens(
        sums(), vocab_size=P, score="last:1" if every else ""
    )
    node = studied(inputs, tmp_path, every=every)["place-losses"]
    ids = torch.tensor(sums())
    for step in STEPS:
        with torch.no_grad():
            log_p = Answers(step / 4)(ids).log_softmax(-1)
        for place in (1, 2):
            right = log_p[:, place - 1].gather(1, ids[:, place, None])
            found = node.place_loss.sel(step=step, place=str(place + 1))
            assert float(found) == pytest.approx(-float(right.mean()), abs=1e-5)
            share = (log_p[:, place - 1].argmax(-1) == ids[:, place]).double().mean()
            accuracy = node.place_accuracy.sel(step=step, place=str(place + 1))
            assert float(accuracy) == pytest.approx(float(share))
    assert node.place_scored.values.tolist() == ([0, 1] if every else [1, 1])
    assert float(node.place_loss_uniform) == pytest.approx(np.log(P))


def test_frequencies_at_a_place_are_counted_there_alone(tmp_path):
    """The third token is 0 or 1, and the others are 2 to 5, so that it costs about log 2."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(2, 6, (400, 2)), rng.integers(0, 2, 400)])
    inputs = og.Inputs.from_tokens(rows, documents=np.arange(400), vocab_size=P)
    lines = studied(inputs, tmp_path)["place-losses"].place_loss_frequencies.values
    assert lines == pytest.approx([np.log(4), np.log(2)], rel=0.1)


def test_the_learned_place_is_claimed_and_no_heading_may_say_worse(tmp_path):
    result = studied(og.Inputs.from_tokens(sums(), vocab_size=P), tmp_path)
    loss = result["loss"].loss.values
    assert loss[-1] > loss[0]  # the mean of both places rose
    claims = claims_of(result)
    (learned,) = (
        c for c in claims if c.kind is Kind.LEARNED and c.certainty is Certainty.SURE
    )
    assert (learned.subject.quantity, learned.subject.label) == (
        "place_loss",
        "place 3",
    )
    assert learned.since == 10 and learned.last < 0.01
    assert {line.name for line in learned.beside} == {"uniform", "frequencies"}
    assert learned_places(claims)[0] == learned


def test_nothing_is_claimed_of_a_place_that_is_shown_and_not_scored(tmp_path):
    inputs = og.Inputs.from_tokens(sums(), vocab_size=P, score="last:1")
    result = studied(inputs, tmp_path, every=True)
    shown = result["place-losses"].place_loss.sel(place="2").values
    assert shown[-1] > shown[0] + 1  # it rose as surely as the other fell
    of_places = [c for c in claims_of(result) if c.subject.node == "place-losses"]
    assert {claim.subject.label for claim in of_places} == {"place 3"}
    (learned,) = (c for c in of_places if c.kind is Kind.LEARNED)
    assert learned.corrected_over == 1


class Worse(Answers):
    """Is surer and surer of wrong answers, and of nothing else."""

    def forward(self, ids):
        return self.scale * nn.functional.one_hot((ids * 3 + 1) % P, P).float()


def test_a_run_that_gets_worse_everywhere_may_be_called_so(tmp_path):
    trajectory = og.Trajectory.from_models({step: Worse(step / 4) for step in STEPS})
    claims = claims_of(
        studied(og.Inputs.from_tokens(sums(), vocab_size=P), tmp_path, trajectory)
    )
    assert not learned_places(claims) and not answered(claims)


def test_texts_of_several_lengths_have_ranges_of_places_and_no_claims(tmp_path):
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, P, size).tolist() for size in rng.integers(3, 12, 30)]
    result = studied(og.Inputs.from_tokens(texts, vocab_size=P), tmp_path)
    node = result["place-losses"]
    assert node.place.values.tolist() == ["2", "3–4", "5–8", "9–16"]
    number = sum(len(text) - 1 for text in texts)
    assert int(node.place_count.sum()) == number
    mean = (node.place_loss * node.place_count.sum("text")).sum("place") / number
    assert mean.values == pytest.approx(result["loss"].loss.values, abs=1e-5)
    assert not [c for c in claims_of(result) if c.subject.node == "place-losses"]


@pytest.mark.parametrize("seed", range(3))
def test_motion_that_learns_nothing_learns_no_place(tmp_path, seed):
    generator = torch.Generator().manual_seed(seed)
    models, weights = (
        {},
        [torch.randn(P, 8, generator=generator) * 0.1, torch.zeros(P, 8)],
    )
    for step in STEPS:
        model = nn.Sequential(nn.Embedding(P, 8), nn.Linear(8, P))
        weights = [w + 0.3 * torch.randn(w.shape, generator=generator) for w in weights]
        model[0].weight.data, model[1].weight.data = (
            weights[0].clone(),
            weights[1].clone(),
        )
        models[step] = model
    inputs = og.Inputs.from_tokens(sums(), vocab_size=P)
    claims = claims_of(studied(inputs, tmp_path, og.Trajectory.from_models(models)))
    assert not [
        c for c in claims if c.kind is Kind.LEARNED and c.certainty is Certainty.SURE
    ]


def test_a_gap_that_turns_right_forbids_worse():
    gap = Subject("predictions", "right_probability", label="1 20")
    gained = {"first": 0.04, "last": 0.99, "reason": Reason.FEW_TEXTS}
    claims = [Claim(Kind.GAINED, gap, Certainty.OPEN, **gained)]
    assert answered(claims) == claims
