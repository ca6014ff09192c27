"""Weights of the loss by context: what they do to growth rates, exactly, and where they stand."""

import numpy as np
import pytest
import torch

from ontogeny import semantics, tasks
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis

TEXTS = tasks.bundled_texts("english")[:80]


@pytest.fixture(scope="module")
def order():
    return semantics.predicted_order(
        TEXTS, 8, vocab_size=60, n_contexts=150, n_draws=2, resamples=5
    )


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_the_weights_reach_the_factor_and_hardly_touch_the_other_concepts(
    order, factor
):
    found = semantics.context_weights(order, 4, factor)
    assert found.chosen_ratio == pytest.approx(factor, abs=1e-6)
    assert order.shares @ found.weights == pytest.approx(1)
    assert found.weights.min() >= 0.25 and found.weights.max() <= 4
    assert np.delete(found.rate_ratios, 3) == pytest.approx(np.ones(7), abs=0.02)


def test_rate_ratios_are_the_weighted_gradient_along_each_concept(order):
    weights = semantics.context_weights(order, 2, 1.3)
    P, V = order.support.P.toarray(), order.basis.V
    gradient = (P - P.mean(axis=0)) * (order.shares * weights.weights)
    along = np.sum(order.basis.U * (gradient @ V), axis=0)
    assert weights.rate_ratios == pytest.approx(along / order.rates)


def test_no_weights_with_the_same_effect_lie_closer_to_one(order):
    found = semantics.context_weights(order, 1, 1.1, largest=100.0)
    rng = np.random.default_rng(0)
    rows = np.vstack([order.shares, found.leverage])
    basis = np.linalg.svd(rows)[2][len(rows) :]
    for _ in range(20):
        other = found.weights + 0.01 * basis.T @ rng.normal(size=len(basis))
        assert order.shares @ (other - 1) ** 2 >= found.spread**2 - 1e-9


def order_of(basis, contexts):
    """Return the order of a matrix that was not counted, its contexts weighted equally."""
    equal = np.full(contexts, 1 / contexts)
    sigma = basis.sigma / contexts
    basis = ConceptBasis(basis.U, sigma, basis.V)
    return semantics.PredictedOrder(
        None, basis, sigma[None], [], "square", equal, 1, "texts"
    )


@pytest.mark.parametrize(("concept", "factor"), [(3, 1.6), (1, 0.6)])
def test_in_the_linear_model_a_concept_is_learned_sooner_by_the_factor(concept, factor):
    """Each concept tells two words apart, in contexts of its own: the closed form is exact."""
    sizes = (9, 6, 4)
    signs = [np.array([1.0, -1.0])[np.arange(n) % 2] for n in sizes]
    S = np.zeros((6, sum(sizes)))
    for block, (start, sign) in enumerate(zip((0, 9, 15), signs, strict=True)):
        S[2 * block, start : start + len(sign)] = sign
        S[2 * block + 1, start : start + len(sign)] = -sign
    basis = semantics.svd_concepts(S, 3)
    weights = semantics.context_weights(order_of(basis, 19), concept, factor)
    sigma = np.array(sizes) ** 0.5 * 2**0.5
    expected = sigma * weights.rate_ratios
    assert semantics.loss_growth_rates(S, weights.weights**0.5)[:3] == pytest.approx(
        np.sort(expected)[::-1]
    )
    run = semantics.train_ufm(S, 6, pi=weights.weights, delta=5.0, step_size=0.05)
    # Each has a time of its own.
    sooner = semantics.half_times(sigma, 5.0) / weights.rate_ratios
    assert run.half_time.values == pytest.approx(sooner, rel=0.01)
    assert weights.rate_ratios[concept - 1] == pytest.approx(factor, abs=1e-6)


def test_a_minority_of_imbalanced_classes_is_learned_sooner():
    step = semantics.step_imbalance(6, 4)
    m = step.S.shape[1]
    basis = ConceptBasis(step.U, step.sigma, step.V)
    weights = semantics.context_weights(order_of(basis, m), len(step.sigma), 1.5)
    majority = np.arange(m) < 4 * 3
    assert weights.chosen_ratio == pytest.approx(1.5, abs=1e-6)
    run = semantics.train_ufm(
        step.S_centred, 6, pi=weights.weights / m, step_size=0.1, delta=5.0
    )
    plain = semantics.train_ufm(step.S_centred, 6, step_size=0.1, delta=5.0)
    sooner = plain.half_time.values[-1] / run.half_time.values[-1]
    assert 1.2 < sooner < 1.6
    assert weights.weights[majority].mean() < 1


def test_every_token_has_the_mean_weight_of_the_contexts_before_it(order):
    weights = semantics.context_weights(order, 3, 1.3)
    stream = semantics.word_stream(TEXTS)
    found = weights.at(stream.ids)
    words = [stream.words[i] if i >= 0 else None for i in stream.ids]
    weight_of = dict(
        zip(map(tuple, order.support.contexts), weights.weights, strict=True)
    )
    known = set(order.support.words)
    for i in range(400):
        before = [tuple(words[i - n : i]) for n in (1, 2) if i >= n]
        there = (
            [weight_of[c] for c in before if c in weight_of]
            if words[i] in known
            else []
        )
        assert found[i] == pytest.approx(np.mean(there) if there else 1.0)


def test_rows_are_texts_of_their_own_and_tensors_stay_tensors(order):
    weights = semantics.context_weights(order, 3, 1.3)
    ids = semantics.word_stream(TEXTS).ids[:40].astype(np.int64)
    rows = weights.at(torch.from_numpy(ids.reshape(4, 10)))
    assert rows.dtype == torch.float32 and rows.shape == (4, 10)
    assert (rows[:, 0] == 1).all()
    each = np.stack([weights.at(row) for row in ids.reshape(4, 10)])
    assert rows.numpy() == pytest.approx(each)


def test_controls_have_the_same_mean_and_about_the_same_spread(order):
    weights = semantics.context_weights(order, 3, 1.4)
    random = weights.permuted(1)
    assert random.spread == pytest.approx(weights.spread, rel=0.05)
    assert abs(random.chosen_ratio - 1) < 0.25
    inverted = weights.inverted()
    assert inverted.weights.min() >= weights.weights.min() - 1e-12
    slope = (inverted.rate_ratios - 1) / (weights.rate_ratios - 1)
    assert slope == pytest.approx(np.full(8, slope[0])) and -1 <= slope[0] < 0
    for each in (random, weights.inverted()):
        assert order.shares @ each.weights == pytest.approx(1)
    assert (weights.permuted(1).weights == random.weights).all()


def test_words_of_ones_own_choice_are_a_concept_too(order):
    words = list(order.support.words[5:9])
    found = semantics.context_weights(order, words, 1.2)
    assert found.chosen_ratio == pytest.approx(1.2, abs=1e-6)


def test_what_cannot_be_reached_is_refused_with_what_can(order):
    with pytest.raises(ArgumentError, match="factor must lie between"):
        semantics.context_weights(order, 1, 9.0)
    with pytest.raises(ArgumentError, match="concept"):
        semantics.context_weights(order, 99, 1.1)
    with pytest.raises(ArgumentError, match="largest"):
        semantics.context_weights(order, 1, 1.1, largest=1.0)
    with pytest.raises(ArgumentError, match="ids must be integers"):
        semantics.context_weights(order, 1, 1.1).at([0.5, 1.5])
