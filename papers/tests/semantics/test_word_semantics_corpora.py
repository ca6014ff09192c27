"""Two-sided contexts, shuffled next words, support files, logits after contexts."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ontogeny import capture, semantics
from ontogeny.errors import ArgumentError, NonFiniteError

STREAMS = st.lists(st.integers(-1, 5), min_size=8, max_size=60)


@settings(max_examples=60)
@given(STREAMS, st.integers(2, 4))
def test_gaps_are_counted_as_by_hand(ids, longest):
    counted = Counter()
    for n in range(2, longest + 1):
        left, right = -(-n // 2), n // 2
        for i in range(left, len(ids) - right):
            window = ids[i - left : i + right + 1]
            if min(window) >= 0:
                counted[(left, *window[:left], *window[left + 1 :]), window[left]] += 1
    if not counted:
        with pytest.raises(ArgumentError, match="no word between"):
            semantics.cloze_support(np.array(ids), 10, 10_000, (2, longest))
        return
    found = semantics.cloze_support(np.array(ids), 10, 10_000, (2, longest))
    support = found.support
    words = support.word_ids
    ours = Counter()
    table = support.counts.tocoo()
    for z, j, n in zip(table.row, table.col, table.data, strict=True):
        context = tuple(int(words[i]) for i in support.contexts.ids[j] if i >= 0)
        ours[(int(found.left[j]), *context), int(words[z])] += int(n)
    assert ours == counted


def test_only_the_most_frequent_gaps_are_kept():
    ids = np.array([0, 1, 2] * 9 + [-1, 3, 4, 5] * 2)
    found = semantics.cloze_support(ids, 10, 1, (2, 2))
    assert found.support.shape[1] == 1 and int(found.support.counts.sum()) == 9
    with pytest.raises(ArgumentError, match="at least 2"):
        semantics.cloze_support(ids, 10, 1, (1, 2))


@settings(max_examples=40)
@given(STREAMS.filter(lambda ids: max(ids) > 0), st.integers(0, 99))
def test_shuffling_keeps_how_often_everything_occurs(ids, seed):
    try:
        support = semantics.support_matrix(np.array(ids), lengths=1)
    except ArgumentError:
        return
    shuffled = semantics.shuffled_next_words(support, seed)
    for axis in (0, 1):
        assert np.array_equal(shuffled.counts.sum(axis), support.counts.sum(axis))
    assert np.allclose(shuffled.pi, support.pi)


def test_shuffling_leaves_only_frequency():
    """Words of two classes alternate; afterwards the second class follows both alike."""
    ids = np.array([0, 1] * 500)
    shuffled = semantics.shuffled_next_words(
        semantics.support_matrix(ids, lengths=1), 0
    )
    P = shuffled.P.toarray()
    assert np.abs(P - 0.5).max() < 0.1


def test_support_files_come_back_as_they_were(tmp_path):
    support = semantics.support_matrix(
        "to be or not to be , that is 日本 the question", lengths=(1, 2)
    )
    path = semantics.save_support(support, tmp_path / "a.npz")
    found = semantics.load_support(path)
    assert found.words == support.words and list(found.contexts) == list(
        support.contexts
    )
    assert (found.counts != support.counts).nnz == 0
    assert np.array_equal(found.word_ids, support.word_ids)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04broken"])
def test_files_that_hold_something_else_are_refused(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match="no support matrix"):
        semantics.load_support(path)


def test_files_with_parts_that_do_not_fit_are_refused(tmp_path):
    support = semantics.support_matrix("a b a c a b", lengths=1)
    path = semantics.save_support(support, tmp_path / "a.npz")
    with np.load(path) as file:
        parts = dict(file)
    for change in (
        {"indices": parts["indices"] + 100},
        {"words": parts["words"][:1]},
        {"word_ids": parts["word_ids"][:1]},
        {"data": -parts["data"]},
    ):
        np.savez(path, **{**parts, **change})
        with pytest.raises(ArgumentError, match="no support matrix"):
            semantics.load_support(path)
    np.savez(path, **{**parts, "words": np.array([{}], dtype=object)})
    # Pickle is never read.
    with pytest.raises(ArgumentError, match="no support matrix"):
        semantics.load_support(path)


def test_contexts_of_pairs_cannot_be_written(tmp_path):
    pairs = semantics.support_from_pairs([("barks", "dog"), ("sings", "bird")])
    assert isinstance(pairs.counts, sparse.csr_array)
    with pytest.raises(ArgumentError, match="stream of tokens"):
        semantics.save_support(pairs, tmp_path / "a.npz")


def causal(seed=0):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    ).eval()


@pytest.mark.parametrize("batch_size", [1, 3, 256])
def test_context_logits_are_those_of_every_context_alone(batch_size):
    model, rng = causal(), np.random.default_rng(0)
    contexts = np.where(
        np.arange(6) < rng.integers(1, 7, (9, 1)), rng.integers(0, 20, (9, 6)), -1
    )
    words = np.array([3, 0, 19])
    found = capture.context_logits(model, contexts, words, batch_size=batch_size)
    for j, row in enumerate(contexts):
        with torch.no_grad():
            alone = model(torch.tensor([row[row >= 0].tolist()])).logits[0, -1]
        assert np.allclose(found[:, j], alone[words], atol=1e-5)


def test_the_model_is_left_as_it_was():
    model = causal().train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    capture.context_logits(model, np.array([[1, 2], [3, -1]]), np.arange(4))
    assert model.training and all(not m._forward_hooks for m in model.modules())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_context_logits_refuse_what_cannot_be_read():
    model = causal()
    for contexts, options, word in (
        (np.array([1, 2]), {}, "contexts must be"),
        (np.array([[1], [-1]]), {}, "context 1 has no token"),
        (np.array([[1]]), {"left": np.array([1])}, "mask_token_id"),
        (
            np.array([[1]]),
            {"left": np.array([2]), "mask_token_id": 3},
            "left must give",
        ),
    ):
        with pytest.raises(ArgumentError, match=word):
            capture.context_logits(model, contexts, np.arange(3), **options)
    with pytest.raises(ArgumentError, match="token ids go up to 999999"):
        capture.context_logits(model, np.array([[999_999]]), np.arange(3))
    with pytest.raises(ArgumentError, match="word_ids go up to 999999"):
        capture.context_logits(model, np.array([[1]]), np.array([999_999]))
    with torch.no_grad():
        model.lm_head.weight[0] = float("nan")
    with pytest.raises(NonFiniteError):
        capture.context_logits(model, np.array([[1]]), np.arange(3))
