"""n-gram models against counts by hand, and divergences against whole distributions."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers.family_models import build
from helpers.said import said_of
from ontogeny.capture.predicted import next_tokens
from ontogeny.errors import ArgumentError
from ontogeny.features.circuits.agreement import closest_steps
from ontogeny.features.circuits.ngrams import NGrams
from ontogeny.observables import NgramAgreement

VOCABULARY = 9


class OfContext(nn.Module):
    """Logits that depend on the token and the one before it."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Parameter(torch.as_tensor(table, dtype=torch.float32))

    def forward(self, input_ids):
        before = torch.cat(
            [torch.zeros_like(input_ids[:, :1]), input_ids[:, :-1]], dim=1
        )
        return self.table[before, input_ids]


def texts(count=14, seed=0, start=True):
    rng = np.random.default_rng(seed)
    rows = [
        [1, *rng.integers(2, VOCABULARY - 1, n)] for n in rng.integers(4, 15, count)
    ]
    return og.Inputs.from_tokens(
        rows, special_ids=[1] if start else [], vocab_size=VOCABULARY
    )


def chained(count, seed):
    """Texts in which most tokens are followed by the next id."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(2, VOCABULARY - 1, (count, 12))
    for place in range(1, 12):
        follows = rng.random(count) < 0.7
        rows[follows, place] = np.minimum(rows[follows, place - 1] + 1, VOCABULARY - 1)
    return og.Inputs.from_tokens(rows, vocab_size=VOCABULARY)


def by_hand(counted, row, place, smoothing, without=None):
    """Return the distributions after what stands before a token, by counting in plain loops."""
    found = [np.ones(VOCABULARY)]
    for n, strength in enumerate(smoothing):
        counts = np.zeros(VOCABULARY)
        for number, (text, mask) in enumerate(
            zip(counted.ids, counted.mask, strict=True)
        ):
            text = text[mask].tolist()
            for at in range(max(n, 0), len(text)):
                same = place >= n and text[at - n : at] == row[place - n : place]
                ordinary = text[at] != 1
                counts[text[at]] += same and ordinary and number != without
        smooth = counts + strength * found[-1]
        found.append(smooth / smooth.sum())
    return found[1:]


@pytest.mark.parametrize("held_out", [True, False])
def test_distributions_equal_counts_by_hand(held_out):
    counted = texts()
    asked = texts(6, seed=5) if held_out else counted
    models = NGrams.of(counted, VOCABULARY, order=3)
    text, column = np.nonzero(next_tokens(asked))
    text, column = text[::5], column[::5]
    found = models.distributions(asked, text, column)
    for at, (t, c) in enumerate(zip(text, column, strict=True)):
        row = asked.ids[t].tolist()
        hand = by_hand(counted, row, c, models.smoothing, None if held_out else t)
        for ours, theirs in zip(found, hand, strict=True):
            np.testing.assert_allclose(ours[at], theirs, atol=1e-12)


def test_the_smoothing_is_what_makes_the_texts_least_surprising():
    counted = texts()
    models = NGrams.of(counted, VOCABULARY, order=2)
    text, column = np.nonzero(next_tokens(counted))

    def cost(alpha):
        changed = NGrams(VOCABULARY, np.array([alpha, 1.0]), models.tables, counted)
        q = changed.distributions(counted, text, column)[0]
        return -np.log(q[np.arange(len(text)), counted.ids[text, column]]).sum()

    best = cost(models.smoothing[0])
    assert best <= min(cost(a) for a in np.geomspace(1e-4, 10, 26)) + 1e-9


def observed(model, inputs, **options):
    observable = NgramAgreement(objective="causal", **options)
    return observable.observe(
        og.capture.read(
            model, observable.needs(), {"text": inputs, "train": texts(40, 7)}
        ),
        None,
    )


@pytest.mark.parametrize("counted", [None, "train"])
def test_divergences_equal_whole_distributions(counted):
    rng = np.random.default_rng(3)
    model, inputs = (
        OfContext(rng.normal(size=(VOCABULARY, VOCABULARY, VOCABULARY))),
        texts(),
    )
    data = observed(model, inputs, counted=counted)
    models = NGrams.of(texts(40, 7) if counted else inputs, VOCABULARY, 3)
    text, column = np.nonzero(next_tokens(inputs))
    with torch.no_grad():
        logits = model(torch.tensor(inputs.ids))
    p = logits.double().softmax(-1).numpy()[text, column - 1]
    for n, q in enumerate(models.distributions(inputs, text, column)):
        apart = (p * np.log(p / q)).sum(axis=1)
        np.testing.assert_allclose(data.divergence[n], apart.mean(), atol=1e-5)
        of_text = [apart[text == t].mean() for t in range(len(inputs))]
        np.testing.assert_allclose(data.divergence_of_text[n], of_text, atol=1e-5)
        reverse = (q * np.log(q / p)).sum(axis=1).mean()
        np.testing.assert_allclose(data.reverse_divergence[n], reverse, atol=1e-5)
        uniform = -np.log(q * VOCABULARY).mean()
        np.testing.assert_allclose(data.divergence_uniform[n], uniform, atol=1e-5)
    assert data.ngram.values.tolist() == ["unigrams", "bigrams", "trigrams"]


def bigram_model(inputs):
    """Return a model that predicts the bigrams of texts, and one that predicts the unigrams."""
    models = NGrams.of(inputs, VOCABULARY, order=2)
    pairs = og.Inputs.from_tokens([[a, 0] for a in range(VOCABULARY)])
    unigram, bigram = models.distributions(
        pairs, np.arange(VOCABULARY), np.ones(VOCABULARY, dtype=int)
    )
    return [np.tile(np.log(each), (VOCABULARY, 1, 1)) for each in (unigram, bigram)]


def test_unigrams_come_before_bigrams_and_each_has_its_step(tmp_path):
    inputs, train = chained(30, 0), chained(60, 7)
    unigram, bigram = bigram_model(train)
    models, steps = {}, (0, 1, 2, 4, 8, 16, 32, 64, 128)
    for i, step in enumerate(steps):
        table = min(i / 4, 1.0) * unigram + max(0.0, (i - 4) / 4) * (bigram - unigram)
        models[step] = OfContext(table)
    chosen = NgramAgreement(counted="train", orders=(1, 2), objective="causal")
    study = og.Study(
        og.Trajectory.from_models(models),
        {"text": inputs, "train": train},
        chosen,
        device="cpu",
        noise=0,
    )
    data = study.run(tmp_path)["ngram-agreement"].to_dataset()
    assert data.closest_step.values.tolist() == [8.0, 128.0]
    assert data.divergence.sel(step=8, ngram="unigrams") < 1e-6
    assert data.divergence.sel(step=128, ngram="bigrams") < 1e-6
    assert data.divergence_other.sel(step=128, ngram="bigrams") > 0.05
    said = said_of(chosen, data)[0]
    assert said.startswith("The predictions are closest to unigrams at step 8: ")


def test_the_interval_of_the_closest_step_covers_what_texts_disagree_on():
    import xarray as xr

    values = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])[:, None]  # texts pull both ways
    found = closest_steps(
        xr.DataArray(values, dims=("step", "ngram", "text"), coords={"step": [0, 9]}),
        np.ones(4),
    )
    assert (found["closest_step_low"][0], found["closest_step_high"][0]) == (0, 9)


def test_what_no_n_gram_model_can_be_compared_with_is_refused():
    with pytest.raises(ArgumentError, match="orders must be at most 4"):
        NgramAgreement(orders=(5,))
    with pytest.raises(ArgumentError, match="at least two texts that are independent"):
        NGrams.of(og.Inputs.from_tokens([[2, 3, 4]]), VOCABULARY)
    with pytest.raises(
        ArgumentError, match="vocabulary must be above every token id, 4; got 4"
    ):
        NGrams.of(og.Inputs.from_tokens([[2, 3, 4], [3, 4]]), 4)
    observable = NgramAgreement()
    rows = np.random.default_rng(0).integers(5, 60, (4, 20))
    inputs = og.Inputs.from_tokens(rows, mask_token_id=4)
    values = og.capture.read(build("bert"), observable.needs(), {"text": inputs})
    with pytest.raises(
        ArgumentError, match=r"orders must be \(1,\) for a masked model"
    ):
        observable.observe(values, None)
    data = NgramAgreement(orders=(1,)).observe(values, None)
    assert np.isfinite(data.divergence).all()
