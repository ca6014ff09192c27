"""The support matrix against a plain count, on streams that have every kind of end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.semantics_examples import brute_force, in_words
from ontogeny import semantics
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace import counting

streams = st.lists(st.integers(-1, 5), min_size=2, max_size=120)


@settings(max_examples=150)
@given(
    streams, st.integers(1, 7), st.integers(1, 40), st.integers(1, 3), st.integers(0, 3)
)
def test_counts_equal_a_plain_count(ids, vocab_size, n_contexts, shortest, more):
    longest = shortest + more
    kept, columns, counts = brute_force(ids, vocab_size, n_contexts, shortest, longest)
    if not columns:
        with pytest.raises(ArgumentError, match="no context"):
            semantics.support_matrix(
                np.array(ids), vocab_size, n_contexts, (shortest, longest), exclude=()
            )
        return
    support = semantics.support_matrix(
        np.array(ids), vocab_size, n_contexts, (shortest, longest), exclude=()
    )
    assert support.word_ids.tolist() == kept
    assert in_words(support) == columns
    np.testing.assert_array_equal(support.counts.toarray(), counts)
    np.testing.assert_array_equal(support.S.toarray(), counts > 0)
    np.testing.assert_allclose(support.P.toarray(), counts / counts.sum(0))
    np.testing.assert_allclose(support.pi, counts.sum(0) / counts.sum())


@settings(max_examples=60)
@given(streams, st.integers(2, 30), st.integers(3, 17))
def test_chunks_do_not_change_the_counts(ids, n_contexts, chunk):
    whole = [counting.frequent_words(np.array(ids), np.zeros(0, int), 5)]
    stream = counting.relabelled(np.array(ids), whole[0][0])
    results = []
    for size in (chunk, 1 << 22):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(counting, "CHUNK", size)
            words = counting.frequent_words(np.array(ids), np.zeros(0, int), 5)
            found = counting.frequent_contexts(stream, 5, n_contexts, 1, 3)
            counts = counting.count_next_words(stream, found, 5).toarray()
            results.append([*words, found.ids, found.counts, counts])
    for pieces, at_once in zip(*results, strict=True):
        np.testing.assert_array_equal(pieces, at_once)


def test_pruning_keeps_contexts_that_tie_with_the_last_one():
    """Ten contexts of two words and many of three occur equally often; the first met win."""
    ids = list(range(12)) * 2
    support = semantics.support_matrix(np.array(ids), 12, 15, (2, 4))
    _, columns, _ = brute_force(ids, 12, 15, 2, 4)
    assert in_words(support) == columns


def test_every_length_gets_its_share():
    ids = np.random.default_rng(0).integers(0, 4, size=600)
    support = semantics.support_matrix(ids, 4, 11, (2, 4), per_length=True)
    assert np.bincount((support.contexts.ids >= 0).sum(1)).tolist() == [0, 0, 4, 4, 3]


def test_excluded_words_end_the_context():
    support = semantics.support_matrix("a b <unk> c a b a", lengths=(1, 2))
    assert "<unk>" not in support.words
    assert ("b", "c") not in list(support.contexts)
    by_id = semantics.support_matrix(
        np.array([1, 2, 0, 3, 1, 2, 1]), lengths=(1, 2), exclude=[0]
    )
    np.testing.assert_array_equal(by_id.counts.toarray(), support.counts.toarray())


def test_no_context_crosses_the_end_of_a_text():
    separate = semantics.support_matrix([["a", "b"], ["c", "d"]], lengths=1)
    assert list(separate.contexts) == [("a",), ("c",)]
    padded = semantics.support_matrix(np.array([[5, 6, -1], [7, 8, -1]]), lengths=1)
    np.testing.assert_array_equal(separate.counts.toarray(), padded.counts.toarray())


def test_contexts_that_never_repeat_are_kept_when_there_is_room():
    support = semantics.support_matrix(
        "one two three four five six seven", lengths=(2, 6)
    )
    assert support.shape == (7, 15)
    assert (support.counts.sum(0) == 1).all()


def test_a_vocabulary_larger_than_the_text_is_the_whole_text():
    support = semantics.support_matrix(
        "a b a c", vocab_size=10**6, n_contexts=10**6, lengths=1
    )
    assert support.words == ("a", "b", "c")


def test_pairs_count_like_the_stream_they_come_from():
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in rng.integers(0, 6, size=400)]
    pairs = [(words[i : i + 2], words[i + 2]) for i in range(len(words) - 2)]
    stream = semantics.support_matrix(words, 6, 36, lengths=2)
    paired = semantics.support_from_pairs(pairs)
    rows = [paired.words.index(word) for word in stream.words]
    columns = [list(paired.contexts).index(context) for context in stream.contexts]
    np.testing.assert_array_equal(
        paired.counts.toarray()[np.ix_(rows, columns)], stream.counts.toarray()
    )


def test_pairs_keep_the_most_frequent_words_and_contexts():
    pairs = [("a", "x"), ("b", "y"), ("b", "y"), ("a", "z"), ("b", "x"), ("c", "y")]
    support = semantics.support_from_pairs(pairs, vocab_size=2, n_contexts=2)
    assert support.words == ("y", "x")
    assert list(support.contexts) == [("b",), ("a",)]
    assert support.counts.toarray().tolist() == [[2, 0], [1, 1]]


@pytest.mark.parametrize(
    ("exclude", "left_out"), [("2", True), (2, True), ("02", False)]
)
def test_ids_without_names_are_excluded_by_their_decimal_ones(exclude, left_out):
    support = semantics.support_matrix(
        [1, 2, 3, 1, 2, 3, 1, 3], lengths=(1, 1), exclude=[exclude]
    )
    assert ("2" in support.words) is not left_out


def test_many_words_and_contexts_stay_sparse():
    """An (n_words, m) dense array would take 100 GB here."""
    ids = np.random.default_rng(0).integers(0, 50_000, size=60_000)
    support = semantics.support_matrix(ids, 50_000, 1_000_000, lengths=(1, 6))
    assert support.shape[1] > 200_000
    assert support.S.nnz <= support.counts.sum()
    assert len(support.S.data) == support.S.nnz


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("", "no context"),
        ([], "no context"),
        ("word", "no context"),
        (np.array([3]), "no context"),
        (np.zeros(0, dtype=int), "no context"),
        ([1.5, 2.5], "words, token ids"),
        (np.array([0.5, 1.0]), "integer ids"),
        (7, "must be a list of words or token ids, or a text; got 7"),
        (["one text", "another text"], "word_stream"),
        ([["a", 3]], "must hold words"),
        (np.array([1, 1 << 40]), "must be below"),
    ],
)
def test_what_is_no_text_is_refused(tokens, message):
    with pytest.raises(ArgumentError, match=message):
        semantics.support_matrix(tokens)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 0}, "vocab_size must"),
        ({"n_contexts": 2.5}, "n_contexts must"),
        ({"lengths": (3, 2)}, "lengths must"),
        ({"lengths": (0, 2)}, "lengths must"),
        ({"lengths": (1, 2, 3)}, "lengths must"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        semantics.support_matrix("a b c a b", **options)
