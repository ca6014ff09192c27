"""Figures 1, 2 and 10 of the token-semantics paper on planted embeddings and without a truth."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from ontogeny import semantics
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny_papers.reproduce import tasks, training
from ontogeny_papers.reproduce.semantics.organism_embeddings import (
    contrast,
    embeddings_view,
    judge_embeddings,
    measure_embeddings,
)
from ontogeny_papers.reproduce.semantics.organism_geometry import (
    Distinction,
    Geometry,
    count_concepts,
    judge_concepts,
)

DRAWS = 59


@pytest.fixture(scope="module")
def geometry():
    world = tasks.organism_world()
    return Geometry(world, semantics.svd_concepts(world.S, 6), DRAWS)


def run_of(W, H, seed=0):
    """Return the embeddings of a network whose training ended in W and H."""
    rng = np.random.default_rng(seed)
    both = [
        xr.Dataset({"W": (("subject", "width"), w), "H": (("width", "attribute"), h)})
        for w, h in ((rng.normal(size=W.shape), rng.normal(size=H.shape)), (W, H))
    ]
    return xr.concat(both, dim="state").assign_coords(state=["untrained", "trained"])


def theory(basis, width=20, seed=0):
    """Return W = U Σ^½ Rᵀ and H = R Σ^½ Vᵀ."""
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, basis.k)))[0]
    roots = np.sqrt(basis.sigma)
    return basis.U * roots @ R.T, R * roots @ basis.V.T


def test_the_organisms_concepts_are_those_of_the_paper(geometry):
    assert [v.holds for v in judge_concepts(count_concepts(geometry))] == [
        True,
        True,
        True,
    ]


def test_concepts_of_other_words_distinguish_nothing(geometry):
    basis = geometry.basis
    turned = ConceptBasis(np.roll(basis.U, 1, axis=0), basis.sigma, basis.V)
    found = judge_concepts(count_concepts(replace(geometry, basis=turned)))
    assert [v.holds for v in found] == [False, False, False]


def test_embeddings_of_the_theory_show_what_the_figures_show(geometry):
    runs = [run_of(*theory(geometry.basis, seed=seed)) for seed in (0, 1)]
    found = measure_embeddings(geometry, {"Adam": runs}, ["Adam"])
    *clusters, ordered, _, same = judge_embeddings(found, ["Adam"])
    assert same.of_paper and not judge_embeddings(found, [])[-1].of_paper
    assert all(v.holds for v in (*clusters, ordered, same))
    assert "concept 1: 1.00, 1.00, concept 2: 1.00, 1.00" in same.measured


def test_embeddings_that_know_nothing_show_nothing_of_it(geometry):
    rng = np.random.default_rng(5)
    runs = [
        run_of(rng.normal(size=(12, 20)), rng.normal(size=(20, 13)), seed)
        for seed in (0, 1)
    ]
    assert not any(
        v.holds
        for v in judge_embeddings(
            measure_embeddings(geometry, {"Adam": runs}, ["Adam"]), ["Adam"]
        )
    )


def test_embeddings_of_a_shuffled_world_are_not_those_of_the_organisms(geometry):
    shuffled = geometry.shuffled()[:2]
    runs = [run_of(*theory(basis)) for basis in shuffled]
    *clusters, ordered, _, _ = judge_embeddings(
        measure_embeddings(geometry, {"Adam": runs}, ["Adam"]), ["Adam"]
    )
    assert not any(v.holds for v in (*clusters, ordered))


def test_distinctions_hold_the_contexts_of_one_class_only(geometry):
    S = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1.0]])
    found = Distinction.between(
        S, np.array([True, True, False]), np.array([False, False, True])
    )
    assert found.contexts.tolist() == [1, -1, 0]
    assert found.separation(np.array([3.0, 2, 1]), np.array([1.0, 0, 9])) == 1.0
    assert found.separation(np.zeros(3), np.zeros(3)) == 0.5
    assert found.right_signs(np.array([-1, -1, 1.0]), np.array([-1, 1, 1.0])) == 5
    assert [np.count_nonzero(d.contexts) for d in geometry.distinctions] == [13, 6]


def test_contrast_ignores_a_vectors_product_with_itself():
    assert contrast(np.array([[2.0], [1.0], [1.0]]), np.array([0, 0, 1])) == 2.0 - 1.5


def test_the_view_shows_words_contexts_and_both_ends_of_each_concept(geometry):
    view = embeddings_view(geometry, run_of(*theory(geometry.basis)))
    assert dict(view.sizes) == {"point": 25, "context": 17, "word": 16}
    ends = np.stack([view.word_1[12:], view.word_2[12:]], 1)
    plants = np.stack([view.word_1[:4], view.word_2[:4]], 1).mean(0)
    animals = np.stack([view.word_1[4:12], view.word_2[4:12]], 1).mean(0)
    sign = np.sign(geometry.basis.U[0, 0])
    assert sign * (plants - animals) @ (ends[0] - ends[2]) > 0
    assert view.point_kind.values.tolist()[:13] == [
        *["plants"] * 4,
        *["mammals"] * 4,
        "birds",
        "birds",
        "fish",
        "fish",
        "plants",
    ]


def test_states_are_what_the_vocabulary_map_is_given():
    world = tasks.organism_world()
    task = training.ContextTask(world.context_ids, world.P)
    model = training.context_model(
        len(world.words), world.context_ids.shape[1], width=16
    )
    W = model.lm_head.weight.detach().numpy()[:12]
    np.testing.assert_allclose(W @ task.states(model), task.logits(model), atol=1e-6)
