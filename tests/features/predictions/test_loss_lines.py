"""What guesses cost: closed forms, planted chains, and runs that learned nothing."""

import json

import numpy as np
import pytest
import xarray as xr
from torch import nn

import ontogeny as og
from helpers.study_examples import developing, tiny_inputs
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.inputs import Inputs
from ontogeny.observables.crossing import crossing
from ontogeny.observables.word_frequencies import blind_guess, guesses
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

VOCABULARY = 50
STEPS = np.array([0, 10, 20, 40, 80])


def chains(texts=150, length=80, seed=0):
    """Texts of a Markov chain, with the entropy of its words and that of a word after another."""
    rng = np.random.default_rng(seed)
    after = rng.dirichlet(np.full(VOCABULARY, 0.1), VOCABULARY)
    values, vectors = np.linalg.eig(after.T)
    share = np.real(vectors[:, np.argmax(values.real)])
    share /= share.sum()
    ids = np.empty((texts, length), dtype=int)
    ids[:, 0] = rng.choice(VOCABULARY, texts, p=share)
    for place in range(1, length):
        draws = rng.random((texts, 1))
        ids[:, place] = (after[ids[:, place - 1]].cumsum(axis=1) < draws).sum(axis=1)
    words = -(share * np.log(share)).sum()
    return (
        Inputs.from_tokens(ids),
        words,
        -(share[:, None] * after * np.log(after + 1e-300)).sum(),
    )


def predicted(inputs):
    return inputs.ordinary & (np.arange(inputs.ids.shape[1]) > 0)


def test_lines_are_the_entropies_of_a_planted_chain():
    inputs, words, pairs = chains()
    found = guesses(inputs, predicted(inputs), VOCABULARY, pairs=True)
    assert found["unigram"].mean() == pytest.approx(words, abs=0.03)
    # 12,000 tokens for 2,500 pairs.
    assert pairs < found["bigram"].mean() < pairs + 0.12
    assert blind_guess(VOCABULARY) == pytest.approx(np.log(50))


def test_no_line_sees_the_text_that_it_predicts():
    rng = np.random.default_rng(0)
    inputs = Inputs.from_tokens(rng.integers(0, 5000, (60, 50)))
    for costs in guesses(inputs, predicted(inputs), 5000, pairs=True).values():
        assert costs.mean() > np.log(5000) - 0.01


def test_frequencies_are_those_of_the_other_texts_smoothed():
    inputs = Inputs.from_tokens([[1, 1, 2], [1, 2, 3]])
    found = guesses(inputs, inputs.ordinary, 4, pairs=False)["unigram"]

    # The first text from the counts of the second, and the other way round.
    def cost(smoothing):
        one = np.array([1, 1, 1]) + smoothing
        other = np.array([2, 1, 0]) + smoothing
        total = 3 + 4 * smoothing
        return -np.log(one / total).mean(), -np.log(other / total).mean()

    grid = [cost(s) for s in np.geomspace(1e-4, 10.0, 26)]
    assert found.tolist() == pytest.approx(min(grid, key=sum))


def test_masked_and_causal_share_frequencies_and_differ_in_what_is_predicted():
    inputs, words, _ = chains()
    few = predicted(inputs) & (np.random.default_rng(1).random(inputs.ids.shape) < 0.3)
    found = guesses(inputs, few, VOCABULARY, pairs=False)["unigram"]
    assert found.mean() == pytest.approx(words, abs=0.06)


def test_texts_without_a_predicted_token_cost_nothing():
    inputs = Inputs.from_tokens([[1], [1, 2, 1], [2, 1, 2]])
    costs = guesses(inputs, predicted(inputs), 5, pairs=True)
    assert costs["unigram"][0] == costs["bigram"][0] == 0


def curve(levels, texts=40, spread=0.3, seed=0):
    noise = np.random.default_rng(seed).normal(0, spread, texts)
    return np.asarray(levels, dtype=float)[:, None] + noise - noise.mean(), np.ones(
        texts
    )


def test_crossing_is_the_first_step_from_which_on_it_stays_below():
    losses, weights = curve([5, 2, 4, 2, 1])
    found = crossing(STEPS, losses, np.full(40, 3.0), weights)
    assert (found.step, found.low, found.high) == (40, 20, 40) and found.certain


def test_interval_is_over_texts_and_paired_with_the_line():
    losses, weights = curve([5, 3.05, 2.95, 2.0, 1], spread=1.0)
    # What is hard for the model is as hard for the line.
    hard = losses[0] - losses[0].mean()
    paired = crossing(STEPS, losses, 3.0 + hard, weights)
    alone = crossing(STEPS, losses, np.full(40, 3.0), weights)
    assert (paired.low, paired.high) == (10, 20) and alone.high > 20


def test_a_curve_that_ends_above_never_crosses():
    losses, weights = curve([5, 4, 2, 4, 4])
    found = crossing(STEPS, losses, np.full(40, 3.0), weights)
    assert np.isinf(found.step) and not found.certain


def test_a_level_that_texts_cannot_tell_from_the_line_is_not_certain():
    losses, weights = curve([3, 2.99, 2.99, 2.99, 2.99], spread=1.0)
    found = crossing(STEPS, losses, np.full(40, losses[1].mean() + 0.001), weights)
    assert np.isfinite(found.step) and np.isinf(found.high) and not found.certain


def test_missing_steps_and_empty_texts_are_left_out():
    losses, weights = curve([5, 2, 2, 2, 2])
    losses[1], losses[:, 0], weights[0] = np.nan, 99.0, 0.0
    assert crossing(STEPS, losses, np.full(40, 3.0), weights).step == 20


def summarised(levels, uniform=8.3, unigram=6.3, **lines):
    """The summary of cells with losses at given levels and lines at others."""
    of_text, weights = curve(levels)
    shape = of_text.shape
    data = xr.Dataset(
        {
            "loss": ("step", of_text.mean(axis=1)),
            "loss_of_text": (("step", "text"), of_text),
            "loss_weights": (("step", "text"), np.broadcast_to(weights, shape)),
            "loss_uniform": ("step", np.full(len(levels), uniform)),
        },
        coords={"step": STEPS[: len(levels)]},
    )
    noise = of_text[0] - of_text[0].mean()
    for line, level in {"unigram": unigram, **lines}.items():
        level = np.broadcast_to(level, len(levels))
        data[f"loss_{line}"] = ("step", level)
        data[f"loss_{line}_of_text"] = (("step", "text"), level[:, None] + noise)
    return og.observables.Loss().summarise(data, {})


def test_masks_are_claimed_of_masked_models_alone():
    """ "The same masked positions" stood over the loss of a causal model."""
    words = og.observables.Loss.section.definition
    assert "of a masked model the same masks" in words and words.count("mask") == 2


def claims_on(data):
    """What is claimed of a loss, by kind and label."""
    return {
        (c.kind, c.subject.label): c for c in og.observables.Loss().claims("loss", data)
    }


def test_claims_name_step_interval_and_level():
    data = summarised([8.4, 7.0, 6.0, 5.5, 5.0], bigram=5.2)
    found = claims_on(data)
    for label, level, low, high in (
        ("word frequencies", 6.3, 10, 20),
        ("bigrams", 5.2, 40, 80),
    ):
        claim = found[Kind.PASSES, label]
        assert claim.certainty is Certainty.SURE
        assert (claim.since_low, claim.since, claim.since_high) == (low, high, high)
        assert [beside.value for beside in claim.beside] == [pytest.approx(level)]
        words = f"Loss is below that of {label} ({level:.3g}) from step {high} ({low}–{high})."
        assert said([claim], Voice(), Names()).text == words
    assert float(data.loss_below_unigram) == 20 and data.loss_unigram.ndim == 0


def test_a_run_that_learned_nothing_passes_no_line():
    rng = np.random.default_rng(0)
    data = summarised(8.4 + 0.05 * np.abs(rng.normal(size=5)))
    found = claims_on(data)
    for label in ("word frequencies", "uniform guess"):
        claim = found[Kind.PASSES, label]
        assert (claim.certainty, claim.reason) == (Certainty.OPEN, Reason.NOT_REACHED)
    assert np.isnan(data.loss_below_unigram)


def test_luck_against_a_blind_guess_is_dated_only_where_texts_are_sure():
    data = summarised([8.4, 8.29, 8.31, 8.29, 8.31])
    claim = claims_on(data)[Kind.PASSES, "uniform guess"]
    assert claim.certainty is Certainty.OPEN and np.isnan(claim.since)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_cells_hold_the_lines_that_their_objective_has(tmp_path, objective):
    steps, inputs = [0, 1, 2], tiny_inputs()
    size = int(inputs.ids.max()) + 1
    of_pairs = {
        step: nn.Sequential(nn.Embedding(size, 8), nn.Linear(8, size)) for step in steps
    }
    models = of_pairs if objective == "causal" else developing(steps)
    loss = og.observables.Loss(objective=objective)
    trajectory = og.Trajectory.from_models(models)
    tree = og.Study(trajectory, inputs, loss, device="cpu", noise=0).run(tmp_path / "s")
    node = tree["loss"]
    assert node.loss_unigram.ndim == node.loss_uniform.ndim == 0
    labels = [band["label"] for band in json.loads(node.attrs["figures"])[0]["bands"]]
    causal = objective == "causal"
    expected = ["uniform guess", "token frequencies", *["bigrams"] * causal]
    own = ["its own token frequencies", *["its own bigrams"] * causal]
    assert labels == expected + own
    assert node.loss_own_unigram.dims == ("step",)
    assert float(node.loss_unigram) < float(node.loss_uniform) + 0.5
    assert node.loss_unigram.attrs["units"] == "nats per token"


def test_half_of_each_gain_is_where_it_was_planted():
    own = np.array([8.3, 6.5, 6.1, 6.1, 6.1])
    data = summarised([8.3, 6.5, 6.1, 5.4, 5.0], own_unigram=own)
    assert float(data.loss_half_frequencies) == 10  # 1.8 of 2.2 nats
    assert float(data.loss_half_context) == 40  # .7 of 1.1 nats
    assert (float(data.loss_half_context_low), float(data.loss_half_context_high)) == (
        20,
        40,
    )
    assert float(data.loss_below_own_unigram) == 40


def test_halves_that_a_trained_start_had_are_no_gain_of_the_run():
    data = summarised([6.0, 5.9, 5.8, 5.7, 5.6], own_unigram=6.5)
    assert float(data.loss_half_frequencies) == data.step[0]
    assert claims_on(data)[Kind.GAINS_FROM, "frequencies"].since == data.step[0]
    trained = claims_on(data.assign(loss_trained_start=1.0))
    assert (Kind.GAINS_FROM, "frequencies") not in trained and trained


def test_a_model_without_context_gains_by_frequencies_alone():
    levels = np.array([8.3, 6.5, 6.1, 6.0, 6.0])
    data = summarised(levels, unigram=6.3, own_unigram=levels + 2e-7)
    assert float(data.loss_below_unigram) == 20
    assert np.isnan(data.loss_below_own_unigram) and np.isnan(
        data.loss_half_context_high
    )
    assert np.isfinite(data.loss_half_frequencies_high)
