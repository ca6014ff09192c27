"""Embeddings of pretrained models: which rows, and contexts of all lengths in one pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from helpers import capture_models
from ontogeny import capture, semantics
from ontogeny.errors import ArgumentError


class Tokenizer:
    """Names 60 of 64 rows; 0 to 4 are special."""

    all_special_ids = (0, 1, 2, 3, 4)

    def __len__(self):
        return 60

    def convert_ids_to_tokens(self, ids):
        return [f"Ġword{i}" if i % 2 else f"##{i}" for i in ids]


WINDOWS = np.random.default_rng(0).integers(5, 64, size=(6, 11))


@pytest.mark.parametrize("family", capture_models.CAUSAL)
def test_one_pass_equals_a_pass_for_each_length(family):
    model = capture_models.build(family)
    found = capture.context_embeddings(model, WINDOWS, batch_size=4)
    assert found.H.shape == (16, 60)
    seen = []
    head = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    for length in range(1, 11):
        with torch.no_grad():
            model(torch.from_numpy(WINDOWS[:, :length]))
    handle.remove()
    expected = torch.stack([state[:, -1] for state in seen], dim=1).reshape(60, 16).T
    np.testing.assert_allclose(found.H, expected.numpy(), atol=2e-6)


def test_contexts_and_next_tokens_are_those_of_the_window():
    model = capture_models.build("gpt2")
    found = capture.context_embeddings(model, WINDOWS[:2], lengths=(3, 11))
    assert len(found.ids) == 18
    for i, (ids, following) in enumerate(zip(found.ids, found.next_ids, strict=True)):
        window, length = WINDOWS[i // 9], 3 + i % 9
        assert ids[ids >= 0].tolist() == window[:length].tolist()
        assert following == (window[length] if length < 11 else -1)
    assert found.words(list(range(64)))[0] == tuple(WINDOWS[0][:3].tolist())


def test_states_give_the_logits_of_the_model():
    model = capture_models.build("llama")
    found = capture.context_embeddings(model, WINDOWS, lengths=(10, 10))
    W = capture.word_embeddings(model).W
    with torch.no_grad():
        logits = model(torch.from_numpy(WINDOWS[:, :10])).logits[:, -1]
    np.testing.assert_allclose((W @ found.H).T, logits.numpy(), atol=1e-5)


def test_a_model_that_sees_what_follows_is_refused():
    for family in ("bert", "eurobert"):
        with pytest.raises(ArgumentError, match="not causal"):
            capture.context_embeddings(capture_models.build(family), WINDOWS)


def test_a_model_that_sees_what_follows_is_refused_though_all_tokens_are_equal():
    with pytest.raises(ArgumentError, match="not causal"):
        capture.context_embeddings(capture_models.build("bert"), np.full((2, 11), 7))


def test_rows_beyond_the_tokenizer_and_special_tokens_are_left_out():
    model = capture_models.build("gpt_neox")
    found = capture.word_embeddings(model, Tokenizer())
    assert found.masked_rows == 4
    assert found.ids.tolist() == list(range(5, 60))
    weight = model.get_output_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(found.W, weight[5:60])
    whole = capture.word_embeddings(
        model, Tokenizer(), keep=lambda word: word.startswith("Ġ")
    )
    assert set(whole.words) == {f"Ġword{i}" for i in range(5, 60, 2)}


def test_input_embeddings_are_those_of_the_tokens():
    model = capture_models.build("bert", head=False)
    found = capture.word_embeddings(model, of="input")
    weight = model.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(found.W, weight)
    with pytest.raises(ArgumentError, match=r"of='input'"):
        capture.word_embeddings(model)


def test_half_precision_embeddings_become_float32():
    model = capture_models.build("llama").to(torch.bfloat16)
    assert capture.word_embeddings(model).W.dtype == np.float32
    assert capture.context_embeddings(model, WINDOWS[:2]).H.dtype == np.float32


def test_concepts_of_a_model_group_its_words_and_contexts():
    model = capture_models.build("gpt2")
    embedded = capture.word_embeddings(model, Tokenizer())
    contexts = capture.context_embeddings(model, WINDOWS)
    names = [f"t{i}" for i in range(64)]
    basis = semantics.embedding_concepts(
        embedded.W,
        contexts.H,
        k=6,
        words=embedded.words,
        contexts=contexts.words(names),
    )
    for p in (4, 5, 6):
        found = semantics.orthants(basis, p)
        assert sum(len(o.words) for o in found) == 55
        assert sum(len(o.contexts) for o in found) == 60
    # V = H^T R Sigma^-1/2 keeps the logits: U Sigma^1/2 V^T = U U^T W H, here of rank 6.
    W = embedded.W - embedded.W.mean(0)
    np.testing.assert_allclose(
        (basis.U * np.sqrt(basis.sigma)) @ (np.sqrt(basis.sigma)[:, None] * basis.V.T),
        basis.U @ basis.U.T @ W @ contexts.H,
        atol=1e-4,
    )


@pytest.mark.parametrize(
    ("windows", "lengths", "message"),
    [
        (WINDOWS[:, :5], (1, 10), "windows hold 5"),
        (WINDOWS[0], (1, 10), "shape"),
        (WINDOWS * 0.5, (1, 10), "integer ids"),
        (WINDOWS, (0, 3), "lengths must"),
        (WINDOWS[:0], (1, 3), "shape"),
    ],
)
def test_windows_that_do_not_fit_are_refused(windows, lengths, message):
    with pytest.raises(ArgumentError, match=message):
        capture.context_embeddings(capture_models.build("gpt2"), windows, lengths)


def test_a_model_without_a_head_has_no_contexts():
    with pytest.raises(ArgumentError, match="no vocabulary map"):
        capture.context_embeddings(capture_models.build("gpt2", head=False), WINDOWS)
