"""Runs that begin trained: learned, forgot, or only surer and with other words preferred."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from helpers.claimed import claims
from helpers.concept_trees import tree
from ontogeny.capture.reading import read
from ontogeny.claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ontogeny.features.predictions.loss import Loss
from ontogeny.inputs import Inputs
from ontogeny.report.first_screen.numbers import numbers_of
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.learning import p_lost_by_motion
from ontogeny.trajectory import Trajectory
from ontogeny.words.catalogue.sentences import REASONS
from ontogeny.words.content import read_content

WORDS, TEXTS, LENGTH = 60, 60, 40
LOSS = Loss(objective="causal")
ONLY = (Reason.SURER, Reason.LESS_SURE, Reason.PREFERENCES)


class Table(nn.Module):
    """Predicts each word from the one before it, by a table and a preference of each word."""

    def __init__(self, table, preference):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(table.clone(), freeze=False)
        self.preference = nn.Parameter(preference.clone())

    def forward(self, input_ids, attention_mask=None):
        return self.table(input_ids) + self.preference


class Reading:
    """What one model gives for the needs of the loss."""

    def __init__(self, model, inputs):
        self.values, self.inputs = read(model, LOSS.needs(), {"text": inputs}), inputs

    def __getitem__(self, need):
        return self.values[need]

    def units(self, need):
        return np.asarray(self.inputs.groups)


@cache
def world():
    """What the language is, what the base has of it, and texts."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.randn(WORDS, WORDS, generator=generator)
    frequency = torch.randn(WORDS, generator=generator)
    after = (truth + frequency).softmax(-1)
    ids = torch.randint(0, WORDS, (TEXTS, 1), generator=generator)
    for _ in range(LENGTH):
        ids = torch.cat(
            [ids, torch.multinomial(after[ids[:, -1]], 1, generator=generator)], 1
        )
    return truth, frequency, Inputs.from_tokens(ids.numpy(), vocab_size=WORDS)


def base(share=0.6, scale=1.0, liking=None):
    truth, frequency, _ = world()
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(1))
    preference = frequency if liking is None else frequency + liking
    return Table(scale * (share * truth + 0.4 * noise), scale * preference)


def cells(models, inputs):
    found = [LOSS.observe(Reading(model, inputs), None) for model in models.values()]
    return xr.concat(found, xr.DataArray(list(models), dims="step", name="step"))


def judged(*models, pairs=3):
    """Return the node of the loss of a run as its page has it."""
    inputs = world()[2]
    run = {10 * step: model.eval() for step, model in enumerate(models)}
    beside = {}
    for k in range(2 * pairs):
        control = Trajectory.from_models(run).control("mirrored", random_state=k)
        beside[f"mirrored {k}"] = cells(
            {step: control[step].model() for step in run}, inputs
        )
    data = with_controls(cells(run, inputs), beside, LOSS.quantities, LOSS.compared)
    return with_verdicts({"loss": LOSS.summarise(data, {})})["loss"]


@cache
def forgetful():
    return judged(base(0.75), base(0.55))


def words_of(node, based=False, **further):
    result = tree({"loss": node, **further}, steps=tuple(node.step.values.tolist()))
    asked = {
        name: {"kind": "loss", "on": name.removeprefix("loss-")} for name in further
    }
    result.attrs["settings"] = json.dumps({"observables": asked})
    result.attrs["trajectory"] = json.dumps(
        {"source": "folder"} | ({"base": True} if based else {})
    )
    screen = first_screen(read_content(result))
    return screen.heading, " ".join(f"{s.lead} {s.text}" for s in screen.sentences)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "last"), [(0.5, 1.0), (1.0, 1.6), (1.6, 0.9), (0.4, 0.7)]
)
def test_a_model_whose_scale_alone_changes_learned_and_forgot_nothing(first, last):
    node = judged(base(scale=first), base(scale=last))
    assert node.loss_trained_start == 1 and node.moved.all()
    assert not node.learned.any() and not node.lost.any()
    assert node.loss_p_learned == node.loss_p_lost == 1.0
    assert abs(float(node.loss_matched_gain)) < 1e-4
    reason = Reason.SURER if last > first else Reason.LESS_SURE
    [claim] = claims(node, Kind.LEARNED)
    assert (claim.certainty, claim.reason) == (Certainty.OPEN, reason)
    verb = "fell" if node.loss[1] < node.loss[0] else "rose"
    for based in (False, True):
        heading, text = words_of(node, based)
        assert heading == f"Loss {verb}: {REASONS[reason]}", heading
        assert "context" not in heading
        assert REASONS[reason] not in text and "change of loss" not in text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_model_that_comes_to_prefer_other_words_learned_and_forgot_nothing(seed):
    generator = torch.Generator().manual_seed(seed)
    likings = [0.4 * torch.randn(WORDS, generator=generator) for _ in range(2)]
    node = judged(*(base(liking=liking) for liking in likings))
    assert not node.learned.any() and not node.lost.any()
    assert abs(float(node.loss_matched_gain)) < 1e-4
    if node.moved.all():
        assert [c.reason for c in claims(node, Kind.LEARNED)] == [Reason.PREFERENCES]
        assert "the model only prefers other words" in words_of(node)[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_drift_to_how_often_words_occur_is_called_that(sign):
    likings = [-0.7 * world()[1], torch.zeros(WORDS)]
    node = judged(*(base(liking=liking) for liking in likings[:: int(sign)]))
    assert node.moved.all() and not node.learned.any() and not node.lost.any()
    verb = "fell" if sign > 0 else "rose"
    heading, text = words_of(node)
    assert heading == f"Loss {verb}: the model only prefers other words"
    assert "prefers other words" not in text and "change of loss" not in text


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 0.7, 1.8])
def test_what_it_comes_to_know_of_places_is_learned_however_sure_it_is(scale):
    node = judged(base(0.6), base(0.75, scale))
    assert node.loss_p_learned < 0.01 and node.loss_p_lost == 1.0
    assert node.loss_matched_gain > node.loss_matched_gain_noise
    fell = bool(node.loss[1] < node.loss[0] - node.loss_floor[1])
    assert bool(node.learned.all()) == fell
    if not fell:
        [claim] = claims(node, Kind.LEARNED)
        assert claim.certainty is Certainty.OPEN and claim.reason not in ONLY
        assert not node.not_improved.any()  # "nothing here was learned" would be wrong
        # At its best temperature it is better.
        assert node.loss_gain > node.loss_gain_noise


def test_what_it_knows_no_more_is_forgotten_with_two_checkpoints():
    node = forgetful()
    assert (
        node.lost.all()
        and node.beyond.all()
        and node.changed.all()
        and not node.learned.any()
    )
    assert node.judgeable.all() and node.loss_p_lost < 0.01
    [claim] = claims(node, Kind.FORGOT)
    assert claim.certainty is Certainty.SURE and claim.first < claim.last
    for based in (False, True):
        heading, _ = words_of(node, based)
        assert heading.startswith("Loss got worse beyond controls: from "), heading


def test_what_further_texts_cost_is_told_apart_from_what_those_studied_do():
    """Costs and changes of the texts that a base knows stood among those of the new texts."""
    learned = judged(base(0.6), base(0.75))
    forgotten = forgetful()
    alone, said = words_of(learned, based=True)
    heading, text = words_of(learned, based=True, **{"loss-base": forgotten})
    assert alone.startswith("Loss improved by learning")
    assert (
        heading
        == "Loss improved; loss of the base’s texts got worse, both beyond controls"
    )
    ends = f"from {forgotten.loss[0]:.3g} to {forgotten.loss[1]:.3g}"
    assert f"Loss of the base’s texts got worse beyond controls: {ends}" in text
    assert said.startswith("Control runs changed by")
    assert said[said.index("Half was") : said.index(" 3 control runs")] in text
    page = read_content(tree({"loss": learned, "loss-base": forgotten}, steps=(0, 10)))
    passed = Claim(
        Kind.PASSES,
        Subject("loss", "loss", label="word frequencies"),
        Certainty.SURE,
        first=3.3,
        last=3.2,
        since=5.0,
        since_low=2.0,
        since_high=10.0,
        beside=(Beside("reference", "word frequencies", 3.25),),
    )
    further = replace(passed, subject=replace(passed.subject, node="loss-base"))
    for told, count in (([passed], 1), ([passed, further], 1), ([further], 0)):
        figures = numbers_of(replace(page, claims=told), None, None)
        assert sum("below" in figure.words for figure in figures) == count
    both, _ = words_of(forgotten, based=True, **{"loss-base": forgotten})
    assert both == "Loss and loss of the base’s texts got worse beyond controls"


def test_without_pairs_nothing_is_called_forgotten():
    node = judged(base(0.75), base(0.55), pairs=0)
    assert (
        "loss_p_lost" not in node
        and not node.lost.any()
        and not claims(node, Kind.FORGOT)
    )


def test_a_base_worse_than_a_blind_guess_can_learn():
    first, last = base(0.3, scale=3.5), base(0.6, scale=2.5)
    node = judged(first, last)
    assert (
        node.loss[0] > node.loss_uniform and node.loss_calibrated[0] < node.loss_uniform
    )
    assert node.loss_trained_start == 1 and node.learned.all()
    alone = judged(first, last, pairs=0)
    assert alone.learned.all() and alone.loss_p_learned == 0.001


def test_a_base_worse_than_a_blind_guess_that_only_gets_less_sure_learned_nothing():
    for pairs in (3, 0):
        node = judged(base(0.3, scale=3.5), base(0.3, scale=1.5), pairs=pairs)
        assert node.loss[0] > node.loss_uniform and node.moved.all()
        assert not node.learned.any()


def test_a_rise_counts_as_far_as_it_exceeds_the_harm_of_motion():
    rng = np.random.default_rng(0)
    rises = []
    for _ in range(4000):
        harm, luck = 0.5 + 0.1 * rng.normal(size=4), 0.05 * rng.normal(size=4)
        luck[:3] = np.abs(luck[:3])
        gains = np.stack([-harm[:3] + luck[:3], -harm[:3] - luck[:3]], axis=1).ravel()
        rises.append((harm[3] + luck[3] + 0.05 * rng.normal(), gains))
    p = p_lost_by_motion(
        np.array([r for r, _ in rises]),
        np.full(4000, 0.0025),
        np.array([g for _, g in rises]),
    )
    assert (p <= 0.05).mean() < 0.065 and (p <= 0.05).mean() > 0.02
    sure = p_lost_by_motion(np.array([1.5]), np.array([0.0025]), rises[0][1][None])
    assert sure[0] < 0.01
    assert np.isnan(
        p_lost_by_motion(np.array([1.0]), np.array([0.0]), np.zeros((1, 2)))
    ).all()
