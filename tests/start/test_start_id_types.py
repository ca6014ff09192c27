"""What is said of inputs is taken or refused; where two types of ids fit, the model decides."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch

from helpers.own_model import write_own
from ontogeny.errors import ArgumentError
from ontogeny.start import Wishes, propose
from ontogeny.start.id_types import sources_by_model
from ontogeny.study.file import make_sources

WORDS = 32
CODE = """
from torch import nn


class Bigrams(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 32)

    def forward(self, ids):
        return self.table(ids)


def build():
    return Bigrams()
"""


def chain(count=4000):
    """Return words of which each is followed by the next one, mostly."""
    rng = np.random.default_rng(0)
    words = [1]
    for jump in rng.random(count - 1) < 0.2:
        words.append(
            int(rng.integers(1, WORDS)) if jump else 1 + words[-1] % (WORDS - 1)
        )
    return np.array(words)


def with_blanks(words):
    return np.stack([words, np.zeros_like(words)], axis=1).ravel()


@pytest.fixture
def place(tmp_path):
    (tmp_path / "model.py").write_text(CODE)
    return tmp_path


def learned(folder, ids, scale=1.0):
    """Write checkpoints of a model that has learned which id follows which."""
    counts = np.full((WORDS, WORDS), 0.1)
    np.add.at(counts, (ids[:-1], ids[1:]), 1.0)
    table = torch.tensor(
        np.log(counts / counts.sum(1, keepdims=True)), dtype=torch.float32
    )
    for step, share in ((0, 0.0), (10, 0.5 * scale), (20, scale)):
        torch.save({"table.weight": share * table}, folder / f"ckpt_{step}.pt")


def content(**inputs):
    return {
        "trajectory": {"folder": ".", "model": "model.py:build"},
        "inputs": {"tokens": ["val.bin"], "max_length": 32, "max_texts": 40, **inputs},
        "observables": [],
    }


@pytest.mark.parametrize("true", ["uint16", "uint32"])
def test_the_reading_whose_order_the_model_knows_is_taken_and_said(place, true):
    words = chain()
    words.astype(np.uint32).tofile(place / "val.bin")
    learned(place, with_blanks(words) if true == "uint16" else words)
    with pytest.raises(ArgumentError, match=r"as uint16 .* and as uint32"):
        make_sources(content(), place)
    _, inputs, found, (line,) = sources_by_model(content(), place)
    assert found == {"dtype": true}
    assert line.startswith(
        f"ids are read as {true}, which the last checkpoint predicts best: "
    )
    assert "uint16 " in line and "uint32 " in line and "shuffled" in line
    assert (0 in inputs["text"].ids) == (true == "uint16")


def test_a_model_that_has_learned_nothing_decides_nothing(place):
    chain().astype(np.uint32).tofile(place / "val.bin")
    learned(place, chain(), scale=0.0)
    with pytest.raises(ArgumentError, match="does not distinguish them") as refused:
        sources_by_model(content(), place)
    assert "inputs.dtype=uint16 or --set inputs.dtype=uint32" in str(refused.value)


@pytest.mark.parametrize("said", ["uint16", "uint32"])
def test_what_is_said_of_ids_is_taken_whatever_the_model_knows(place, said):
    words = chain()
    words.astype(np.uint32).tofile(place / "val.bin")
    learned(place, words)
    _, inputs, found, lines = sources_by_model(content(dtype=said), place)
    assert (found, lines) == ({}, [])
    assert inputs["text"].sentence.endswith("tokens") and f"{said}, as was said" in str(
        inputs["text"].sentence
    )
    assert (0 in inputs["text"].ids) == (said == "uint16")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"vocab_size": 20}, "between 0 and 19"),
        ({"dtype": "uint8", "vocab_size": 20}, "between 0 and 19"),
        ({"dtype": "float64"}, "dtype must be one of"),
        ({"padding_side": "left"}, "padding_side does not go with tokens"),
        ({"unit": "line"}, "unit does not go with tokens"),
        ({"encoding": "latin-1"}, "encoding does not go with tokens"),
    ],
)
def test_what_is_said_and_does_not_fit_is_refused(place, said, message):
    chain().astype(np.uint16).tofile(place / "val.bin")
    learned(place, chain())
    with pytest.raises(ArgumentError, match=message):
        make_sources(content(**{"dtype": "uint16", **said}), place)


def test_rows_that_are_cut_are_counted_and_warned_of(place):
    np.save(place / "val.npy", np.tile(chain(64), (30, 4)))
    learned(place, chain())
    _, inputs = make_sources(content(tokens=["val.npy"]), place)
    texts = inputs["text"]
    assert (texts.truncated, texts.cut_tokens) == (30, 30 * (256 - 32))
    assert "30 cut at 32" in texts.sentence
    assert any("88 % of the tokens are cut off" in line for line in texts.warnings)


def test_texts_of_one_token_are_warned_of(place):
    np.save(place / "val.npy", chain(30)[:, None])
    learned(place, chain())
    _, inputs = make_sources(content(tokens=["val.npy"]), place)
    assert any("every text has one token" in line for line in inputs["text"].warnings)


def test_a_length_that_the_model_does_not_take_is_not_changed_in_silence(tmp_path):
    own = write_own(tmp_path)
    wishes = Wishes(
        str(own / "out"),
        texts=[str(own / "val.bin")],
        model=str(own / "model.py:build"),
        preset="quick",
        sets=["inputs.max_length=40", "controls.count=3"],
    )
    proposal = propose(wishes, own)
    assert proposal.content["inputs"]["max_length"] == 24
    assert proposal.content["controls"]["count"] == 3
    (line,) = [line for line in proposal.lines if "as asked" in line]
    assert (
        line
        == "inputs.max_length is 24, not 40 as asked: the model takes no longer text"
    )
    assert any("uint16 (all ids are below" in line for line in proposal.texts)


def proposed(place, texts="val.bin"):
    return propose(
        Wishes(
            str(place / "out"),
            "quick",
            texts=[str(place / texts)],
            model=str(place / "model.py:build"),
        ),
        place,
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.json", b'{"a": 0, "b": 1}'),  # of other texts
        ("vocab.json", b"[]"),
        ("meta.pkl", pickle.dumps({"stoi": {"a": 0.5}})),
        ("meta.pkl", b"damaged"),
    ],
)
def test_a_vocabulary_that_is_not_that_of_the_ids_leaves_numbers_and_is_named(
    place, name, content
):
    words = chain()
    words.astype(np.uint16).tofile(place / "val.bin")
    (place / "out").mkdir()
    learned(place / "out", words)
    (place / name).write_bytes(content)
    proposal = proposed(place)
    assert proposal.content["trajectory"]["tokenizer"] == "none"
    assert any(
        line.startswith(f"tokens are shown as numbers, as {place / name} is not")
        for line in proposal.texts
    )


def test_the_words_beside_ids_are_how_they_are_written(place):
    words = chain()
    words.astype(np.uint16).tofile(place / "val.bin")
    (place / "out").mkdir()
    learned(place / "out", words)
    (place / "vocab.json").write_text(json.dumps([f"word{i}" for i in range(WORDS)]))
    proposal = proposed(place)
    trajectory, inputs = make_sources(proposal.content, place)
    assert trajectory.tokenizer().convert_ids_to_tokens([3, 9]) == ["word3", "word9"]
    assert inputs["text"].vocab_size == WORDS


def test_texts_beside_the_characters_of_ids_are_told_where_these_are(place):
    words = chain()
    words.astype(np.uint16).tofile(place / "val.bin")
    (place / "out").mkdir()
    learned(place / "out", words)
    (place / "vocab.json").write_text(json.dumps(list("abcdefghijklmnopqrstuvwxyz ")))
    (place / "texts.txt").write_text("caf\u00e9\n\u00fcber\n")
    with pytest.raises(
        ArgumentError, match=r"of '\u00e9', '\u00fc'.*--texts .*val.bin"
    ):
        proposed(place, "texts.txt")
