"""Published text: the scores that the paper's claims stand on, with their controls."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from helpers.paths import DATA
from helpers.semantics_examples import brute_force, in_words
from ontogeny import semantics


def lines(name):
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no {name} in {DATA}; set ONTOGENY_DATA")
    return path.read_text("utf-8").split("\n")


@cache
def wikitext(V):
    stream = semantics.word_stream(
        "\n".join(lines("wikitext-2/train.txt")), split="spaces"
    )
    support = semantics.support_matrix(stream, V, 10 * V)
    return support, semantics.svd_concepts(support, k=20)


@cache
def tinystories():
    stream = semantics.word_stream(
        lines("tinystories/v1-validation-sample.txt"), lowercase=False
    )
    support = semantics.support_matrix(stream)
    return support, semantics.svd_concepts(support, k=20)


def test_the_support_of_real_text_equals_a_plain_count():
    stream = semantics.word_stream(lines("wikitext-2/valid.txt"), split="spaces")
    support = semantics.support_matrix(stream, 300, 3000)
    unknown = [stream.words.index("<unk>")]
    kept, columns, counts = brute_force(stream.ids.tolist(), 300, 3000, 2, 6, unknown)
    assert support.words == tuple(stream.words[i] for i in kept)
    assert in_words(support) == columns
    np.testing.assert_array_equal(support.counts.toarray(), counts)


@pytest.mark.parametrize(
    ("corpus", "bar"),
    [
        (lambda: wikitext(1000), 0.36),
        (lambda: wikitext(500), 0.40),
        (tinystories, 0.32),
    ],
    ids=["wikitext-1000", "wikitext-500", "tinystories-1000"],
)
def test_orthants_agree_with_word_classes_and_random_groups_do_not(corpus, bar):
    support, basis = corpus()
    labels = semantics.word_classes(support.words)
    found = semantics.orthant_coherence(
        basis, labels, dims=5, n_permutations=20, n_rotations=10
    )
    assert found.ami.value >= bar
    assert abs(found.ami.permuted.mean()) <= 0.02
    # A rotated basis does about as well: the axes themselves are not what is meaningful.
    assert abs(found.ami.value - found.ami.rotated.mean()) < 0.1


def test_words_of_an_orthant_have_the_same_neighbours_in_other_text():
    support, basis = wikitext(1000)
    heldout = semantics.word_stream(lines("wikitext-2/valid.txt"), split="spaces")
    vectors = semantics.neighbour_vectors(heldout, support.words)
    found = semantics.orthant_coherence(
        basis,
        semantics.word_classes(support.words),
        5,
        neighbours=vectors,
        n_permutations=20,
        n_rotations=0,
    )
    assert found.similarity.value >= 2.5 * found.similarity.permuted.mean()


def test_contexts_lead_to_words_of_their_signature():
    support, basis = wikitext(1000)
    found = semantics.signature_lift(
        support, basis, 5, n_permutations=20, n_rotations=5
    )
    assert found.lift.value >= 6
    assert found.lift.value >= 3 * found.lift.permuted.mean()
    assert found.falls


def test_months_are_a_group_of_their_own():
    support, _ = wikitext(1000)
    basis = semantics.svd_concepts(support, k=64)
    labels = semantics.word_classes(support.words)
    months = {word for word, name in labels.items() if name == "month"}

    def best(groups):
        shared = [(len(months & set(g.words)), len(g.words)) for g in groups]
        return max(2 * both / (size + len(months)) for both, size in shared)

    assert best(semantics.spectral_clusters(basis, 64)) >= 0.8
    assert best(semantics.orthants(basis, 6)) >= 0.5


def test_concepts_of_real_text_equal_the_dense_svd():
    support, basis = wikitext(1000)
    S = support.S.toarray()
    U, sigma, _ = np.linalg.svd(S[:, :3000] - S[:, :3000].mean(0), full_matrices=False)
    for method in ("gram", "lanczos"):
        found = semantics.svd_concepts(support.S[:, :3000], 20, method=method)
        np.testing.assert_allclose(found.sigma, sigma[:20], rtol=1e-6)
        assert (np.abs((found.U * U[:, :20]).sum(0)) > 1 - 1e-6).all()
    np.testing.assert_allclose(basis.U.sum(0), 0, atol=1e-9)
    # Concept 1 is how often a word is possible at all.
    frequent = np.corrcoef(np.abs(basis.U[:, 0]), support.S.sum(1))[0, 1]
    assert frequent > 0.9


def test_both_halves_of_the_text_give_the_same_leading_subspace():
    text = lines("wikitext-2/train.txt")
    halves = (text[: len(text) // 2], text[len(text) // 2 :])
    supports = [
        semantics.support_matrix(
            semantics.word_stream(half, split="spaces"), 1000, 10_000
        )
        for half in halves
    ]
    places = [{word: z for z, word in enumerate(support.words)} for support in supports]
    shared = sorted(set(places[0]) & set(places[1]))
    spans = [
        np.linalg.qr(
            semantics.svd_concepts(s, k=4).U[[place[word] for word in shared]]
        )[0]
        for s, place in zip(supports, places, strict=True)
    ]
    assert np.linalg.norm(spans[0].T @ spans[1]) ** 2 / 4 > 0.9
