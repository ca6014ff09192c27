"""Vocabularies with ids that no token has: the largest id lies above the number of tokens."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ontogeny import Inputs
from ontogeny.errors import ArgumentError
from ontogeny.inputs.pieces import pieces_of, pieces_of_texts
from ontogeny.inputs.tokenize import count_ids
from ontogeny.training.packed import packed_stream

HOLES = {"<unk>": 0, "the": 5, "cat": 17, "sat": 30}


def tokenizer_of(vocabulary):
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>")


def test_texts_are_read_with_ids_above_the_number_of_tokens():
    tokenizer = tokenizer_of(HOLES)
    assert len(tokenizer) == 4 and count_ids(tokenizer) == 31
    inputs = Inputs.from_texts(["the cat sat"], tokenizer, max_length=8)
    assert inputs.ids.tolist() == [[5, 17, 30]] and inputs.vocab_size == 31
    with pytest.raises(ArgumentError, match="between 0 and 30"):
        Inputs.from_tokens([[31]], vocab_size=count_ids(tokenizer))


def test_without_holes_the_number_is_that_of_tokens():
    tokenizer = tokenizer_of({"<unk>": 0, "the": 1, "cat": 2})
    assert count_ids(tokenizer) == len(tokenizer) == 3
    tokenizer.add_tokens(["<new>"])
    assert count_ids(tokenizer) == len(tokenizer) == 4


def test_a_token_that_is_added_far_above_counts():
    tokenizer = tokenizer_of(HOLES)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<far>"]})
    assert count_ids(tokenizer) == 1 + max(tokenizer.get_vocab().values())


def test_pieces_stand_at_their_ids():
    tokenizer = tokenizer_of(HOLES)
    inputs = Inputs.from_texts(["the cat sat", "cat the sat"], tokenizer, max_length=8)
    assert [pieces_of_texts(inputs)[i] for i in (5, 17, 30)] == [" the", " cat", " sat"]
    written = pieces_of(tokenizer)
    assert len(written) == 31
    assert [written[i].strip() for i in (5, 17, 30)] == ["the", "cat", "sat"]


def test_streams_of_a_training_are_packed_with_such_ids():
    stream = packed_stream(["the cat sat"] * 8, tokenizer_of(HOLES), 4, 8, 2)
    assert np.isin(stream.numpy(), list(HOLES.values())).all()
