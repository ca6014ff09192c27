"""Vocabularies of characters beside token ids, and tokenizers of a user's own class."""

from __future__ import annotations

import json
import pickle

import pytest

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.inputs.pieces import pieces_of
from ontogeny.inputs.vocabularies import vocabulary_tokenizer
from ontogeny.trajectory.tokenizers import named_tokenizer

LETTERS = {letter: i for i, letter in enumerate("\n abc")}


class Hostile:
    """Runs code where a pickle is not read inertly."""

    def __reduce__(self):
        return print, ("this must never run",)


@pytest.mark.parametrize("name", ["meta.pkl", "vocab.json"])
def test_characters_are_read_and_written(tmp_path, name):
    path = tmp_path / name
    if name == "meta.pkl":
        path.write_bytes(pickle.dumps({"vocab_size": 5, "stoi": LETTERS}))
    else:
        path.write_text(json.dumps(LETTERS))
    tokenizer = vocabulary_tokenizer(path)
    assert pieces_of(tokenizer) == list(LETTERS)
    texts = og.Inputs.from_texts(["ab c\nc"], tokenizer, max_length=8)
    assert texts.ids.tolist() == [[2, 3, 1, 4, 0, 4]] and texts.spans[
        0, 3
    ].tolist() == [3, 4]
    assert tokenizer.decode([2, 3, 1]) == "ab "


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"stoi": LETTERS, "more": Hostile()}), "whose code is not run"),
        (pickle.dumps({"stoi": {"ab": 0, "c": 0}}), "each of its entries another id"),
        (pickle.dumps({"stoi": {"ab": 0.5}}), "each of its entries another id"),
        (pickle.dumps([1, 2]), "each of its entries another id"),
        (b"no pickle", "cannot be read"),
    ],
)
def test_other_pickles_are_refused_and_nothing_runs(tmp_path, capsys, content, message):
    (tmp_path / "meta.pkl").write_bytes(content)
    with pytest.raises(ArgumentError, match=message):
        vocabulary_tokenizer(tmp_path / "meta.pkl")
    assert capsys.readouterr().out == ""


def test_a_vocabulary_of_characters_in_a_run_is_its_tokenizer(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1}), encoding="utf-8")
    assert named_tokenizer(tmp_path)("ba")["input_ids"] == [1, 0]
    (tmp_path / "vocab.json").write_text(json.dumps({"word": 0.5}), encoding="utf-8")
    with pytest.raises(ArgumentError, match="--tokenizer FILE:NAME"):
        named_tokenizer(tmp_path)


WORDS = ["<pad>", "<unk>", "the", "cat", "sat", "."]
ATOMS = ["<eos>", "C", "Cl", "Br", "=", "(", " "]


@pytest.mark.parametrize(
    "content",
    [
        {word: i for i, word in enumerate(WORDS)},
        {"itos": WORDS},
        {"itos": {str(i): word for i, word in enumerate(WORDS)}, "vocab_size": 6},
        {"vocab_size": 6, "stoi": {word: i for i, word in enumerate(WORDS)}},
        WORDS,
    ],
)
def test_words_are_cut_at_white_space_however_the_file_says_them(tmp_path, content):
    (tmp_path / "vocab.json").write_text(json.dumps(content))
    tokenizer = vocabulary_tokenizer(tmp_path / "vocab.json")
    assert tokenizer("the cat flew .").input_ids == [2, 3, 1, 5]
    assert pieces_of(tokenizer)[2:] == [" the", " cat", " sat", "."]


def test_the_longest_entry_that_fits_is_taken_of_marks_and_characters(tmp_path):
    content = {"stoi": {atom: i + 3 for i, atom in enumerate(ATOMS)}}
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(content))
    tokenizer = vocabulary_tokenizer(tmp_path / "meta.pkl")
    assert tokenizer("CCl=Br C").input_ids == [4, 5, 7, 6, 9, 4]
    # Ids may begin anywhere: those without an entry are their digits.
    assert pieces_of(tokenizer) == ["0", "1", "2", *ATOMS]
