"""Texts that hold what a vocabulary lacks are left out and counted, or refused by name."""

from __future__ import annotations

import json

import pytest

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.inputs.vocabularies import vocabulary_tokenizer


@pytest.fixture
def letters(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps(list(" abc")))
    return vocabulary_tokenizer(tmp_path / "vocab.json")


def test_texts_with_unknown_characters_are_left_out_with_their_labels(letters):
    texts = og.Inputs.from_texts(
        ["ab", "a“b”", "ca b", "é a"], letters, labels=[0, 1, 2, 3]
    )
    assert texts.texts == ("ab", "ca b") and texts.labels.tolist() == [0, 2]
    assert texts.sentence == "2 texts, 6 tokens"  # none was without a token
    assert texts.warnings[0] == (
        "2 of 4 texts are left out: the tokenizer cannot encode 'é', '“', '”'"
    )


def test_of_a_vocabulary_of_words_the_words_are_named(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps(["the", "cat", "sat"]))
    words = vocabulary_tokenizer(tmp_path / "vocab.json")
    texts = og.Inputs.from_texts(["the cat sat", "the mat sat"], words)
    assert texts.ids.tolist() == [[0, 1, 2]]
    assert texts.warnings[0].endswith("the tokenizer cannot encode 'mat'")


def test_where_each_text_holds_an_unknown_character_these_are_named(letters):
    with pytest.raises(
        ArgumentError, match=r"Missing \[UNK\].* that it cannot, of 'é', 'ü'"
    ):
        og.Inputs.from_texts(["éa", "aü"], letters)


def test_a_tokenizer_that_always_fails_says_how(letters):
    class Broken(type(letters)):
        def __call__(self, *_, **__):
            raise ValueError("no merges")

    letters.__class__ = Broken
    with pytest.raises(ArgumentError, match="ValueError: no merges"):
        og.Inputs.from_texts(["a"], letters)
