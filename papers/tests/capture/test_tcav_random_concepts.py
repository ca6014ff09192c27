"""TCAV against random concepts of other texts, as its authors prescribe."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers.study_examples import developing, tiny_inputs
from ontogeny.capture import tcav_against_random
from ontogeny.concepts import CAV
from ontogeny.errors import ArgumentError, LayerMatchError
from ontogeny.inputs import stratified_split
from ontogeny_papers.capture.random_concepts import (
    RandomConcepts,
    _tested,
    random_draws,
)

LAYERS = "model.layers.*.mlp"


def mean_differences(A, pool, draws):
    concept = A.mean(0) - pool[draws[:, 1]].mean(1)
    random = pool[draws[:, 0]].mean(1) - pool[draws[:, 1]].mean(1)
    both = np.concatenate([concept, random])
    return (both / np.linalg.norm(both, axis=1, keepdims=True)).T


def simulated(rng, effect, along, common=0.0, width=16, texts=40, runs=39):
    """Return the tests where the concept moves feature 0, and so may the gradients."""
    A = rng.normal(size=(texts, width))
    A[:, 0] += effect
    pool = rng.normal(size=(3 * texts, width))
    gradients = rng.normal(size=(60, width)) + common * rng.normal(size=width)
    gradients[:, 0] += along
    draws = random_draws(len(pool), texts, runs, int(rng.integers(1 << 30)))
    directions = mean_differences(A, pool, draws)
    return _tested((gradients @ directions).T[None], ["a"])


def test_texts_like_the_others_are_significant_in_at_most_six_percent():
    """The t-tests take runs that share the concept's texts for independent draws."""
    rng = np.random.default_rng(0)
    found = [simulated(rng, 0, 0, common=1.0) for _ in range(400)]
    assert np.mean([float(f.p_value[0]) <= 0.05 for f in found]) <= 0.06
    assert np.mean([float(f.t_random[0]) <= 0.05 for f in found]) > 0.3


def test_a_planted_concept_is_found_even_where_scores_saturate():
    rng = np.random.default_rng(0)
    found = [simulated(rng, 3, 2, common=0.2) for _ in range(20)]
    assert np.mean([float(f.p_value[0]) <= 0.05 for f in found]) >= 0.9
    assert np.mean([float(f.score.mean()) for f in found]) > 0.9


def test_directions_part_each_draw_from_its_own_others():
    rng = np.random.default_rng(0)
    A, pool = rng.normal(size=(8, 4)) + 1, rng.normal(size=(20, 4))
    drawn, cav = RandomConcepts.of(8, 20, n_runs=3), CAV(solver="mean-difference")
    expected = mean_differences(A, pool, drawn.draws).T
    np.testing.assert_allclose(drawn.directions(A, pool, cav, 3), expected, atol=1e-12)
    np.testing.assert_allclose(
        drawn.directions(A, pool, cav), expected[[0, 3, 4, 5]], atol=1e-12
    )


@pytest.mark.parametrize(("texts", "pool", "size"), [(8, 40, 8), (30, 21, 10)])
def test_the_concept_and_random_concepts_rest_on_equally_many_texts(texts, pool, size):
    """A concept with more texts than a draw would be split into unequal classes."""
    drawn = RandomConcepts.of(texts, pool, n_runs=5)
    assert drawn.own.shape == (size,) and drawn.draws.shape == (5, 2, size)
    assert len(set(drawn.own)) == size and drawn.own.max() < texts


def test_a_concept_larger_than_the_pool_keeps_the_level():
    """Unequal classes turn directions without an intercept towards the mean of all texts."""
    rng = np.random.default_rng(0)
    mean = np.array([3.0, 0, 0, 0])
    gradients, found = rng.normal(size=(30, 4)) + mean, []
    for repeat in range(25):
        A, pool = (rng.normal(size=(count, 4)) + mean for count in (40, 20))
        drawn = RandomConcepts.of(40, 20, n_runs=19, random_state=repeat)
        directions = drawn.directions(A, pool, CAV(), 19)
        found.append(float(_tested((directions @ gradients.T)[None], ["a"]).p_value[0]))
    assert np.mean(np.array(found) <= 0.05) <= 0.2


class HalfSquare(nn.Module):
    """Its gradient at x is x: what a text's activations share with its gradient is everything."""

    def forward(self, x):
        return x**2 / 2


def squares(seed, texts=30, pool=60, width=24):
    """Return a model, and texts of a concept that are like all others."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Embedding(50, width), nn.Identity(), HalfSquare(), nn.Linear(width, 50)
    )
    with torch.no_grad():
        model[0].weight -= model[0].weight.mean(0)
        model[3].weight.fill_(1.0)
    ids = np.random.default_rng(seed).integers(0, 50, (texts + pool, 3))
    return model, og.Inputs.from_tokens(ids[:texts]), og.Inputs.from_tokens(ids[texts:])


def test_texts_that_found_the_direction_are_scored_only_if_asked_for():
    """Scored on their own texts, most concepts that are like all others would be significant."""
    cav, held, own = CAV(solver="mean-difference"), [], []
    for seed in range(20):
        model, concept, pool = squares(seed)
        for p, examples in ((held, None), (own, concept)):
            data = tcav_against_random(
                model,
                concept,
                pool,
                "1",
                cav,
                target="causal",
                n_runs=19,
                examples=examples,
            )
            p.append(float(data.p_value[0]))
    # 1 expected; 5 or more have probability 0.3 %.
    assert np.sum(np.array(held) <= 0.05) <= 4
    assert np.sum(np.array(own) <= 0.05) >= 10


def test_by_default_two_thirds_find_the_directions_and_the_others_are_scored():
    model, concept, pool = squares(0)
    found_on, held_out = stratified_split(np.zeros(30, int), random_state=3)
    assert (len(found_on), len(held_out)) == (20, 10)
    options = {"target": "causal", "n_runs": 5, "random_state": 3}
    expected = tcav_against_random(
        model,
        concept.subset(found_on),
        pool,
        "1",
        examples=concept.subset(held_out),
        **options,
    )
    assert tcav_against_random(model, concept, pool, "1", **options).identical(expected)


def test_draws_are_disjoint_seeded_and_not_all_the_same():
    draws = random_draws(20, 7, 5, random_state=3)
    assert all(len(set(run.ravel())) == 14 for run in draws)
    np.testing.assert_array_equal(draws, random_draws(20, 7, 5, random_state=3))
    assert (draws[0] != draws[1]).any()


def test_texts_of_any_length_in_a_language_model():
    model = developing((0, 1))[0]
    before = {name: p.clone() for name, p in model.state_dict().items()}
    data = tcav_against_random(
        model,
        tiny_inputs(10, 0),
        tiny_inputs(30, 1),
        LAYERS,
        target="masked",
        n_runs=5,
        cav=CAV(intercept=True),
        examples=tiny_inputs(12, 2),
    )
    assert dict(data.score.sizes) == {"layer": 2, "run": 5}
    assert (data.p_corrected >= data.p_value).all()
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())


def test_bad_arguments_are_refused():
    model, few = developing((0, 1))[0], tiny_inputs(6, 0)
    with pytest.raises(
        ArgumentError, match="two disjoint draws of size=4 texts; it has 6"
    ):
        tcav_against_random(model, few, few, LAYERS, size=4)
    with pytest.raises(
        ArgumentError, match="n_runs must be a whole number of at least 2; got 1"
    ):
        tcav_against_random(model, few, few, LAYERS, n_runs=1)
    with pytest.raises(ArgumentError, match="size must be a positive whole number"):
        tcav_against_random(model, few, og.Inputs.from_tokens([[4, 5]]), LAYERS)
    with pytest.raises(ArgumentError, match="concept must hold at least two texts"):
        tcav_against_random(model, og.Inputs.from_tokens([[4, 5]]), few, LAYERS)
    with pytest.raises(
        ArgumentError, match=r"train_fraction must be .* below 1; got 1"
    ):
        tcav_against_random(model, few, few, LAYERS, train_fraction=1)
    with pytest.raises(LayerMatchError):
        tcav_against_random(model, few, few, "nothing.*")
