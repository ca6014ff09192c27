"""Scores of groups against planted truth, chance, and other code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.metrics.pairwise import cosine_similarity

from ontogeny import semantics
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny_papers.semantics.neighbours import mean_similarity
from ontogeny_papers.semantics.scores import purity, random_rotation


def planted(n=240, p=3, noise=0.3, seed=0):
    """Words of 2^p classes at the corners of a cube, and contexts likewise."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2**p, size=n)
    corners = np.where(classes[:, None] >> np.arange(p) & 1, -1.0, 1.0)
    words = tuple(f"w{i}" for i in range(n))
    basis = ConceptBasis(
        corners + rng.normal(0, noise, (n, p)), np.ones(p), None, words
    )
    return basis, dict(zip(words, map(str, classes), strict=True))


def test_planted_classes_score_high_and_chance_scores_zero():
    basis, labels = planted()
    found = semantics.orthant_coherence(basis, labels, dims=3)
    assert found.ami.value > 0.95 and found.purity.value > 0.95
    assert abs(found.ami.permuted.mean()) < 0.01
    assert found.ami.p_value == pytest.approx(1 / 101)
    # The planted classes sit on the axes, so that here (not in text) the axes are special.
    assert found.ami.rotated_percentile > 95
    assert found.labelled == 240 and found.groups == 8


def test_the_score_is_that_of_scikit_learn():
    basis, labels = planted(noise=0.9)
    groups = semantics.orthants(basis, 3)
    assigned = {word: o.name for o in groups for word in o.words}
    expected = adjusted_mutual_info_score(
        list(labels.values()), [assigned[w] for w in labels]
    )
    for found in (
        semantics.coherence(groups, labels),
        semantics.orthant_coherence(basis, labels, 3),
    ):
        assert found.ami.value == pytest.approx(expected)


def test_words_without_a_class_do_not_count():
    basis, labels = planted()
    some = {word: labels[word] for word in list(labels)[:50]}
    found = semantics.orthant_coherence(
        basis, some, dims=3, n_permutations=5, n_rotations=5
    )
    assert found.labelled == 50
    assert found.ami.value > 0.9


def test_random_groups_are_not_found_coherent():
    """The p-value of random groups is uniform: no more than its share lies below 0.1."""
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(120)]
    labels = {word: str(rng.integers(0, 4)) for word in words}
    values = []
    for _ in range(40):
        groups = np.array_split(rng.permutation(words), 6)
        found = semantics.coherence(
            groups, labels, n_permutations=19, random_state=rng.integers(99)
        )
        values.append(found.ami.p_value)
    assert kstest(values, "uniform").pvalue > 0.001
    assert np.mean(np.array(values) <= 0.1) < 0.25


def test_purity_is_a_share_of_majorities():
    groups = np.array([3, 3, 3, 7, 7, 1])
    classes = np.array(["a", "a", "b", "b", "c", "c"])
    assert purity(groups, classes) == pytest.approx((2 + 1 + 1) / 6)


def test_rotations_are_orthogonal_and_have_no_favourite_direction():
    rng = np.random.default_rng(0)
    turned = np.array([random_rotation(3, rng) for _ in range(500)])
    np.testing.assert_allclose(
        turned @ turned.transpose(0, 2, 1), np.tile(np.eye(3), (500, 1, 1)), atol=1e-10
    )
    # One coordinate of a uniform direction in three dimensions is uniform on [-1, 1].
    for i, j in ((0, 0), (1, 2), (2, 2)):
        assert kstest(turned[:, i, j], "uniform", args=(-1, 2)).pvalue > 1e-3


def test_similarity_is_the_mean_cosine_of_the_most_typical():
    rng = np.random.default_rng(0)
    dense = np.abs(rng.normal(size=(12, 7))) * (rng.random((12, 7)) < 0.6)
    dense[5] = 0  # a word that the held-out text does not hold
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-300)
    codes = np.array([0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 3, 3])
    typicality = rng.random(12)
    means = []
    for code in (0, 1, 3):
        members = [i for i in np.argsort(-typicality) if codes[i] == code and i != 5][
            :3
        ]
        cosines = cosine_similarity(dense[members])
        means.append(cosines[np.triu_indices(len(members), 1)].mean())
    found = mean_similarity(sparse.csr_array(unit), codes, typicality, top=3)
    assert found == pytest.approx(np.mean(means))


def test_words_with_the_same_neighbours_are_similar():
    rng = np.random.default_rng(0)
    months, animals = [f"month{i}" for i in range(6)], [f"animal{i}" for i in range(6)]
    text = []
    for _ in range(400):
        text += [
            "in",
            str(rng.choice(months)),
            "19",
            "the",
            str(rng.choice(animals)),
            "ran",
        ]
    vectors = semantics.neighbour_vectors(text, [*months, *animals, "absent"])
    labels = dict.fromkeys(months, "m") | dict.fromkeys(animals, "a")
    right = semantics.coherence([months, animals], labels, neighbours=vectors)
    wrong = semantics.coherence(
        [months[:3] + animals[:3], months[3:] + animals[3:]], labels, neighbours=vectors
    )
    assert right.similarity.value > 0.8 > 0.6 > wrong.similarity.value
    assert right.similarity.p_value < 0.02 < wrong.similarity.p_value


def test_neighbour_vectors_count_both_sides_with_their_distance():
    vectors = semantics.neighbour_vectors(
        "a x b y a x b y", ["x", "y"], window=1
    ).vectors
    assert vectors.shape == (2, 8)
    assert vectors.nnz == 4
    np.testing.assert_allclose(vectors.power(2).sum(1), 1)
    assert (vectors @ vectors.T).toarray()[0, 1] == 0


def test_neighbours_weigh_by_positive_pointwise_mutual_information():
    ids = np.random.default_rng(0).zipf(1.6, 400) % 8
    words = [str(i) for i in ids]
    table = np.zeros((3, 2, 8))  # word, side, neighbour
    for i, word in enumerate(ids):
        if word < 3:
            for side, j in enumerate((i - 1, i + 1)):
                if 0 <= j < len(ids):
                    table[word, side, ids[j]] += 1
    table = table.reshape(3, 16)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
        pmi = np.nan_to_num(np.maximum(np.log(table / expected), 0), neginf=0)
    unit = pmi / np.linalg.norm(pmi, axis=1, keepdims=True)
    found = semantics.neighbour_vectors(
        words, ["0", "1", "2"], window=1
    ).vectors.toarray()
    np.testing.assert_allclose(found @ found.T, unit @ unit.T, atol=1e-10)


def test_lift_is_the_density_of_pairs_counted_one_by_one():
    rng = np.random.default_rng(1)
    support = semantics.support_matrix(
        rng.zipf(1.5, 3000) % 30, 30, 120, lengths=(1, 3)
    )
    basis = semantics.svd_concepts(support, 4)
    found = semantics.signature_lift(
        support, basis, dims=[0, 2, 3], n_permutations=3, n_rotations=2
    )
    S = support.S.toarray()
    signs = [vectors[:, [0, 2, 3]] < 0 for vectors in (basis.U, basis.V)]
    apart = (signs[0][:, None] != signs[1][None]).sum(2)
    for h in range(4):
        assert found.by_distance[h] == pytest.approx(S[apart == h].mean() / S.mean())
    assert found.permuted.shape == (3, 4) and found.rotated.shape == (2, 4)


def test_lift_of_planted_signatures_falls_with_distance():
    """Support where the signs agree in most concepts: the opposite signature has none."""
    rng = np.random.default_rng(0)
    U, V = (rng.choice([-1.0, 1.0], size=(n, 4)) for n in (80, 200))
    S = (rng.random((80, 200)) < np.clip((U @ V.T + 4) / 8, 0, 1) ** 2).astype(float)
    basis = ConceptBasis(U, np.ones(4), V)
    found = semantics.signature_lift(
        sparse.csr_array(S), basis, dims=4, n_permutations=20
    )
    assert found.falls and found.by_distance[-1] == 0
    assert found.lift.p_value < 0.05
    assert abs(found.permuted[:, 0].mean() - 1) < 0.15


def test_classes_of_words():
    classes = semantics.word_classes(
        [
            "May",
            "june",
            "Ġtwelve",
            "1998",
            "10",
            "3.5",
            "walked",
            "running",
            "thing",
            "red",
            "went",
            "quickly",
            "station",
            "them",
            "upon",
            "because",
            "<script>",
            ",",
            "@-@",
            "games",
            "was",
            "monday",
            "21st",
            "mph",
        ]
    )
    assert classes == {
        "May": "auxiliary",
        "june": "month",
        "Ġtwelve": "number word",
        "1998": "year",
        "10": "number",
        "3.5": "number",
        "walked": "past",
        "running": "-ing",
        "went": "past",
        "quickly": "-ly",
        "station": "abstract noun",
        "them": "pronoun",
        "upon": "preposition",
        "because": "conjunction",
        ",": "punctuation",
        "@-@": "punctuation",
        "games": "plural",
        "was": "auxiliary",
        "monday": "weekday",
        "21st": "ordinal",
        "mph": "unit",
    }


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ArgumentError, match="'a' is in more than one"):
        semantics.coherence([["a"], ["a"]], {"a": "x"})
    with pytest.raises(ArgumentError, match="labels name 1 of the 2"):
        semantics.coherence([["a"], ["b"]], {"a": "x"})
    basis = ConceptBasis(np.eye(4)[:, :2], np.ones(2), None)
    with pytest.raises(ArgumentError, match="must know its words"):
        semantics.orthant_coherence(basis, {"a": "x"}, 2)
    with pytest.raises(ArgumentError, match="context analyzer"):
        semantics.signature_lift(sparse.csr_array((4, 5)), basis, 2)
    with pytest.raises(ArgumentError, match="none of the words stands"):
        semantics.neighbour_vectors("a b c", ["z"])
    vectors = semantics.neighbour_vectors("a b c", ["a"])
    with pytest.raises(ArgumentError, match="none of the words is among"):
        semantics.coherence([["x"], ["y"]], {"x": "1", "y": "2"}, neighbours=vectors)


def test_draws_that_equal_a_score_are_none_that_are_lower():
    """A mean of numbers in another order rounds apart."""
    value = (0.1 + 0.2 + 0.3) / 3
    equal = (0.3 + 0.2 + 0.1) / 3
    assert equal < value
    draws = np.array([equal, 0.1, 0.1])
    score = semantics.Score(value, draws, draws)
    assert score.p_value == 0.5
    assert score.rotated_percentile == pytest.approx(200 / 3)
    single = semantics.Score(float(np.float32(value)), draws.astype(np.float32))
    assert single.p_value == 0.5
