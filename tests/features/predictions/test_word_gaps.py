"""Gaps of words in texts of characters: whole words, with the probabilities of an own loop."""

import itertools
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.capture.predictor import Predictor
from ontogeny.features.predictions.gaps import gaps_at
from ontogeny.features.predictions.word_gaps import (
    Words,
    choose_words,
    letters_of,
    likeliest_words,
)
from ontogeny.inputs.pieces import pieces_of, spelled
from ontogeny.inputs.vocabularies import vocabulary_tokenizer
from ontogeny.observables import Predictions

CHARACTERS = " abc."
LETTERS = "abc"
TEXT = "ab cab ba abc. a bab cab ab. "


class Pairs(nn.Module):
    """Predicts the next character from the last one alone."""

    def __init__(self, seed=0):
        super().__init__()
        table = np.random.default_rng(seed).normal(0, 1.5, (len(CHARACTERS),) * 2)
        self.table = nn.Embedding.from_pretrained(torch.tensor(table).float())

    def forward(self, ids):
        return self.table(ids)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "meta.pkl"
    table = {character: i for i, character in enumerate(CHARACTERS)}
    path.write_bytes(pickle.dumps({"stoi": table}))
    return vocabulary_tokenizer(path)


@pytest.fixture(scope="module")
def inputs(tokenizer):
    """Texts whose words are in another order in each."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation(TEXT.split())) + " " for _ in range(12)]
    ids = [[CHARACTERS.index(c) for c in text] for text in texts]
    return spelled(
        og.Inputs.from_tokens(ids, vocab_size=len(CHARACTERS)), pieces_of(tokenizer)
    )


def chances(model, before, word):
    """Return the probability that a word stands behind a character, and that it ends there."""
    p = torch.softmax(model.table.weight.double(), dim=1).numpy()
    ids = [CHARACTERS.index(c) for c in before[-1] + word]
    ends = [i for i, c in enumerate(CHARACTERS) if c not in LETTERS]
    of_letters = np.prod([p[a, b] for a, b in itertools.pairwise(ids)])
    return of_letters * p[ids[-1], ends].sum()


def test_ids_of_characters_have_their_texts(inputs):
    assert inputs.token_unit == "character"
    assert sorted(inputs.texts[0].split()) == sorted(TEXT.split())
    assert inputs.word(0, 1) == inputs.texts[0][1]


def test_ids_of_word_pieces_have_none(tokenizer):
    pieces = og.tasks.train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    ids = [pieces("the cat sat")["input_ids"]]
    assert spelled(og.Inputs.from_tokens(ids), pieces_of(pieces)).texts is None
    assert spelled(og.Inputs.from_tokens([[9]]), pieces_of(tokenizer)).texts is None


def test_words_are_whole_and_their_frequencies_those_of_other_texts(inputs):
    words = Words.of(inputs)
    found = [
        inputs.texts[i][at : at + width]
        for i, at, width in zip(words.text, words.position, words.width, strict=True)
    ]
    # With its last letter but one a word that goes on would be another word.
    assert {*found} <= {word.strip(".") for word in TEXT.split()}
    spelling = dict(zip(words.key.tolist(), found, strict=True))
    right = words.letters[words.key[:1]]
    unit = inputs.groups[words.text[:1]]
    beside = words.elsewhere(inputs.groups, right, unit)
    others = [w for w, i in zip(found, words.text, strict=True) if i != words.text[0]]
    assert beside["frequency"][1][0] == pytest.approx(
        others.count(spelling[int(words.key[0])]) / len(others)
    )
    most = "".join(CHARACTERS[i] for i in beside["frequent_letter"][1][0] if i >= 0)
    assert others.count(most) == max(map(others.count, others))


def test_the_likeliest_words_are_those_of_all_words(inputs):
    words = Words.of(inputs)
    at = choose_words(inputs, words, 3)
    places = words.text[at], words.position[at]
    gaps = gaps_at(inputs, *places, list(CHARACTERS), words.width[at])
    model = Pairs()
    right = letters_of(gaps)
    ask = Predictor(model, "causal").at
    found = likeliest_words(ask, gaps.cut(), right, list(CHARACTERS), 4, 60)
    for g, before in enumerate(gaps.before):
        every = {
            "".join(letters): chances(model, before, "".join(letters))
            for size in range(1, 6)
            for letters in itertools.product(LETTERS, repeat=size)
        }
        best = sorted(every, key=every.get, reverse=True)[:4]
        answers = [
            "".join(CHARACTERS[i] for i in row if i >= 0)
            for row in found["answer_letter"][g]
        ]
        assert answers == best
        np.testing.assert_allclose(
            np.exp(found["answer_log_probability"][g]),
            [every[word] for word in best],
            rtol=1e-5,
        )
        word = "".join(CHARACTERS[i] for i in right[g] if i >= 0)
        own = chances(model, before, word)
        assert np.exp(found["right_log_probability"][g]) == pytest.approx(own, rel=1e-5)
        assert (found["right_rank"][g] == 1) == (word == best[0])


def test_words_at_the_beginning_of_texts_alone_leave_gaps_of_characters(
    tokenizer, tmp_path
):
    ids = [[CHARACTERS.index(c) for c in text] for text in ("ab ...", "ca . .", "b ..")]
    inputs = spelled(
        og.Inputs.from_tokens(ids, vocab_size=len(CHARACTERS)), pieces_of(tokenizer)
    )
    assert len(Words.of(inputs).text) == 3
    observable = Predictions(n_gaps=2, top=3, objective="causal")
    run = og.Trajectory.from_models({step: Pairs(step) for step in (0, 1)})
    data = og.Study(run, inputs, [observable], device="cpu").run(tmp_path / "study")
    assert set(data["predictions"].to_dataset().right_text.values) <= {*CHARACTERS}


def test_a_study_of_characters_asks_for_words(inputs, tmp_path):
    models = {step: Pairs(step) for step in (0, 1, 2)}
    observable = Predictions(n_gaps=3, top=3, objective="causal")
    run = og.Trajectory.from_models(models)
    data = og.Study(run, inputs, [observable], device="cpu").run(tmp_path / "study")
    node = data["predictions"].to_dataset()
    known = {word.strip(".") for word in TEXT.split()}
    assert {*node.right_text.values} <= known
    for gap, before, word in zip(
        range(3), node.gap_before.values, node.right_text.values, strict=True
    ):
        for step, model in models.items():
            own = chances(model, str(before), str(word))
            shown = float(node.right_probability.sel(step=step)[gap])
            assert shown == pytest.approx(own, rel=1e-4)
    # Shares of one first answer are of words as well.
    first = node.answer_id.isel(rank=0).values
    same = [np.unique(row, return_counts=True)[1].max() for row in first]
    np.testing.assert_array_equal(node.shared_first_answer, same)
