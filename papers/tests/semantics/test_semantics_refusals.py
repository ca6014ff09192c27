"""What the functions of semantics refuse, and what they do not claim where nothing is known."""

import json

import numpy as np
import pytest

from ontogeny import semantics, updates
from ontogeny.errors import ArgumentError
from ontogeny_papers.observables.words import views as semantics_views
from ontogeny_papers.reproduce import tasks, training

TEXT = "to go to see a cat to run a dog " * 3
BASIS = semantics.svd_concepts(np.random.default_rng(0).normal(size=(10, 4)), 3)
ONES = np.ones((10, 4))
CENTRED = np.array([[0.5, 0.0], [-0.5, 0.0]])
LIFT_OF_NOTHING = semantics.SignatureLift(
    np.array([np.nan, 2.0]), np.ones((9, 2)), np.ones((9, 2))
)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: semantics.cloze_support(np.array([1, 2**40, 1, 2, 1])), "tokens"),
        (lambda: semantics.cloze_support(TEXT, vocab_size=0), "vocab_size"),
        (lambda: semantics.cloze_support(TEXT, n_contexts=0), "n_contexts"),
        (lambda: semantics.support_matrix(TEXT, lengths=2.0), "lengths"),
        (lambda: semantics.support_matrix(TEXT, lengths=True), "lengths"),
        (lambda: semantics.support_matrix(TEXT, exclude=None), "exclude"),
        (lambda: semantics.support_matrix([None, "a"]), "tokens"),
        (lambda: semantics.embedding_concepts(np.eye(4), k=0), "k must"),
        (lambda: semantics.embedding_concepts(np.eye(4), words=["a"]), "words"),
        (
            lambda: semantics.embedding_concepts(
                np.eye(4), np.eye(4), contexts=[("a",)]
            ),
            "contexts",
        ),
        (lambda: semantics.orthants(BASIS, 2.0), "dims"),
        (lambda: semantics.orthants(BASIS, [0.5]), "dims"),
        (lambda: semantics.refinement_tree(BASIS, [0, 1]), "depth"),
        (lambda: semantics.signature_lift(np.zeros((10, 4)), BASIS, 2), "support"),
        (
            lambda: semantics.signature_lift(
                np.ones((10, 4)), BASIS, 2, n_rotations=-1
            ),
            "n_rotations",
        ),
        (
            lambda: semantics.coherence([["a"], ["b"]], {"a": "x", "b": "x"}),
            "same class",
        ),
        (
            lambda: semantics.train_ufm(np.array([[0.5], [-0.5]]), 2, delta=800.0),
            "delta",
        ),
        (
            lambda: semantics.orthants(BASIS, 2, neutral="x"),
            "neutral must be a finite number",
        ),
        (lambda: semantics.orthants(BASIS, 2, neutral=np.nan), "neutral"),
        (lambda: semantics.orthants("x", 2), "basis must be of type ConceptBasis"),
        (lambda: semantics.refinement_tree(None, 2), "basis"),
        (lambda: semantics.orthant_coherence(BASIS.U, {}), "basis"),
        (lambda: semantics.coherence([["a"]], None), "labels must be of type Mapping"),
        (lambda: semantics.coherence([["a"]], {}, random_state=-1), "random_state"),
        (
            lambda: semantics.signature_lift(ONES, BASIS, 2, random_state=-1),
            "random_state",
        ),
        (
            lambda: semantics.spectral_clusters(BASIS, 2, random_state=-1),
            "random_state",
        ),
        (lambda: semantics.shuffled_next_words("x"), "support must be of type Support"),
        (
            lambda: semantics.learning_order([3, 2, 1], [1, 2, 3], n_draws="x"),
            "n_draws",
        ),
        (
            lambda: semantics.learning_order([3, 2, 1], [1, 2, 3], random_state=-1),
            "random_state",
        ),
        (lambda: semantics.leading_directions(np.eye(3), 1.5), "k must be a whole"),
        (
            lambda: semantics.subspace_overlap(np.eye(3), np.eye(3), "x"),
            "ks must be a list of",
        ),
        (lambda: semantics.max_margin_logits(np.eye(3), tolerance=0), "tolerance"),
        (
            lambda: semantics.max_margin_logits(np.eye(3), max_iterations=2.5),
            "max_iterations",
        ),
        (
            lambda: semantics.coarse_before_fine(1, np.zeros((2, 2, 2)), np.eye(2)),
            "steps",
        ),
        (lambda: semantics.train_ufm(CENTRED, 2, ridge="x"), "ridge"),
        (lambda: semantics.train_ufm(CENTRED, 2, delta=None), "delta"),
        (lambda: semantics.train_ufm(CENTRED, 2, duration="x"), "duration"),
        (lambda: semantics.train_ufm(CENTRED, 2, step_size=True), "step_size"),
        (lambda: semantics.train_ufm(CENTRED, 2, records=2.5), "records"),
        (lambda: semantics.train_ufm(CENTRED, 2, random_state=-1), "random_state"),
        (lambda: tasks.MarkerTask().inputs(4, random_state=-1), "random_state"),
        (lambda: tasks.MarkerTask().inputs("x"), "n must be a whole number"),
        (lambda: tasks.MarkerStream(tasks.MarkerTask(), 4, -1), "random_state"),
        (lambda: tasks.MarkerStream(tasks.MarkerTask(), 4.5), "batch_size"),
        (lambda: updates.pair_statistics([1.0, 2.0], n_draws="x"), "n_draws"),
        (lambda: updates.pair_statistics([1.0, 2.0], random_state=-1), "random_state"),
        (lambda: updates.commutators(None, None, [1, 2], 0.1, pairs="x"), "pairs"),
        (lambda: updates.commutators(None, None, [1, 2], 0.1, pairs=3), "pairs"),
        (lambda: training.context_model(2.5, 3), "words"),
        (lambda: training.context_model(5, 3, random_state=-1), "random_state"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ArgumentError, match=named):
        call()


@pytest.mark.parametrize("texts", [[[], [5, 7, 5, 7]], [[], ["a", "b", "a", "b"]]])
def test_a_first_text_without_tokens_is_passed_over(texts):
    support = semantics.support_matrix(texts, lengths=1)
    assert np.array_equal(support.counts.toarray(), [[0, 1], [2, 0]])


def test_a_score_without_a_value_is_not_significant():
    assert np.isnan(semantics.Score(np.nan, np.zeros(99)).p_value)
    assert semantics.Score(1.0, np.array([np.nan, 0.0, 0.0])).p_value == 0.5
    assert np.isnan(semantics.Score(1.0, np.zeros(9), np.zeros(0)).rotated_percentile)


def test_nothing_is_said_of_a_lift_that_is_not_known():
    assert not LIFT_OF_NOTHING.falls
    assert (
        json.loads(semantics_views.lift_view(LIFT_OF_NOTHING).attrs["statements"]) == []
    )


def test_a_page_without_draws_makes_no_comparison():
    support = semantics.support_matrix(TEXT, lengths=(1, 2))
    basis = semantics.svd_concepts(support, 3)
    page = semantics_views.semantics_page(basis, support, dims=2, n_draws=0)
    assert json.loads(page["coherence"].attrs["statements"]) == []


def test_projections_that_end_below_zero_have_no_half_time():
    rng = np.random.default_rng(1)
    S = (rng.random((6, 15)) < 0.5) * 1.0
    S[0, ~S.any(axis=0)], S[0, S.all(axis=0)] = 1, 0
    S_centred = S - S.mean(axis=0)
    U, _, Vt = np.linalg.svd(S_centred, full_matrices=False)
    P = S * np.exp(-60 * np.outer(U[:, 1], Vt[1]))  # against the second concept
    run = semantics.train_ufm(
        S_centred, 6, "cross_entropy", "random", P=P / P.sum(axis=0), duration=20.0
    )
    negative = run.projection.values[-1] <= 0
    assert negative.tolist() == [False, True, False, False, False]
    assert np.array_equal(np.isnan(run.half_time.values), negative)
