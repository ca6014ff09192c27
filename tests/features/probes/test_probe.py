"""Probes of labels of words: files, pieces, control tasks, and a planted label."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import nn

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.features.probes.fits import (
    PENALTIES,
    _fitted,
    control_labels,
    majority,
    right,
)
from ontogeny.features.probes.labelled_words import read_sentences
from ontogeny.features.probes.pieces_of_words import placed
from ontogeny.observables import Probe
from ontogeny.tasks import train_tokenizer
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences

TREEBANK = Path(__file__).with_name("treebank.conllu")
RNG = np.random.default_rng(0)


def written(sentence):
    return [(sentence.text[a:b], label) for a, b, _, label in sentence.words]


def test_conllu_is_read_as_it_is_written():
    pytest.importorskip("conllu")
    one, two = read_sentences(str(TREEBANK), "upos")
    assert one.text == "She doesn't see Ana's dogs." and two.text == "Dogs run."
    assert written(one) == [
        ("She", "PRON"),
        ("see", "VERB"),
        ("Ana", "PROPN"),
        ("'s", "PART"),
        ("dogs", "NOUN"),
        (".", "PUNCT"),
    ]
    assert one.left_out == 2  # of the multiword token
    number = read_sentences(str(TREEBANK), "Number")
    assert written(number[0]) == [("She", "Sing"), ("Ana", "Sing"), ("dogs", "Plur")]
    assert written(number[1]) == [("Dogs", "Plur"), ("run", "Plur")]


def test_fields_that_are_none_are_refused():
    pytest.importorskip("conllu")
    message = "or a feature of 'treebank.conllu' (Case, Number, VerbForm); got 'upso'."
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Probe(str(TREEBANK), field="upso")


@pytest.mark.parametrize("mark", ["\t", ",", " "])
def test_columns_of_words_and_labels_are_read(tmp_path, mark):
    lines = ["dogs N", "run V", "", "cats N", ", P", "sleep V"]
    text = "\n".join(line.replace(" ", mark) for line in lines)
    (tmp_path / "tags.txt").write_text(text)
    one, two = read_sentences(str(tmp_path / "tags.txt"), "")
    assert one.text == "dogs run" and written(one) == [("dogs", "N"), ("run", "V")]
    assert two.text == "cats , sleep" and len(two.words) == 3


def test_lines_without_a_label_are_counted_and_three_are_shown(tmp_path):
    (tmp_path / "tags.tsv").write_text("a\tX\nb\nc\nd\ne\nf\tY\n")
    message = "4 do not: line 2: 'b'; line 3: 'c'; line 4: 'd'; and 1 more"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Probe(str(tmp_path / "tags.tsv"))
    with pytest.raises(ArgumentError, match="there is no file"):
        Probe(str(tmp_path / "none.tsv"))
    (tmp_path / "one.tsv").write_text("a\tX\n")
    with pytest.raises(ArgumentError, match="at least two texts"):
        Probe(str(tmp_path / "one.tsv"))
    with pytest.raises(ArgumentError, match="field must be empty"):
        Probe(str(tmp_path / "one.tsv"), field="upos")


def test_a_label_goes_to_the_last_piece_of_its_word():
    pytest.importorskip("conllu")
    tokenizer = train_tokenizer(["she sees dogs . dogs run . Ana's"] * 4, 280)
    sentences = read_sentences(str(TREEBANK), "upos")
    words = placed(sentences, tokenizer, 512)
    for text, position, kind in zip(
        words.text, words.position, words.kind, strict=True
    ):
        spans = words.inputs.spans[text]
        _, end = spans[position]
        assert words.inputs.texts[text][:end].casefold().endswith(kind)
        following = spans[position + 1 : position + 2]
        assert not len(following) or following[0][0] >= end or not following[0].any()
    assert words.left_out == ("2 words that multiword tokens are written for",)
    cut = placed(sentences, tokenizer, 8)
    assert len(cut.text) < len(words.text) and "is beyond the cut" in cut.left_out[0]


def test_a_ridge_probe_is_that_of_scikit_learn():
    X, y = RNG.normal(size=(40, 6)), RNG.integers(0, 3, 40)
    U, s, V = np.linalg.svd(X - X.mean(0), full_matrices=False)
    Y = np.eye(3)[y]
    weights = V.T @ _fitted(U, s, Y)
    others = [
        Ridge(alpha=penalty * s[0] ** 2).fit(X, Y).coef_.T for penalty in PENALTIES
    ]
    errors = []
    for penalty in PENALTIES:
        left = [
            Ridge(alpha=penalty * s[0] ** 2)
            .fit(np.delete(X, i, 0), np.delete(Y, i, 0))
            .predict(X[i : i + 1])[0]
            - Y[i]
            for i in range(40)
        ]
        errors.append(np.mean(np.square(left)))
    best = int(np.argmin(errors))
    assert weights == pytest.approx(others[best], abs=1e-6)


def test_a_probe_tells_about_as_much_as_logistic_regression():
    y = RNG.integers(0, 4, 600)
    A = 1.2 * np.eye(4)[y] @ RNG.normal(size=(4, 20)) + RNG.normal(size=(600, 20))
    half = np.arange(600) % 2 == 0
    told = right(A.astype(np.float32), y[None], half)[0]
    other = [
        LogisticRegression(max_iter=500).fit(A[a], y[a]).score(A[b], y[b])
        for a, b in ((half, ~half), (~half, half))
    ]
    assert told.mean() == pytest.approx(np.mean(other), abs=0.04)
    noise = right(RNG.normal(size=(600, 20)), y[None], half)[0]
    assert noise.mean() < 0.35


def test_control_tasks_are_of_word_types_and_as_frequent():
    kinds = RNG.integers(0, 400, 4000).astype(str)
    labels = RNG.choice(3, 4000, p=[0.7, 0.2, 0.1])
    drawn = control_labels(kinds, labels, 30, 0)
    for kind in ("1", "2"):
        assert (np.ptp(drawn[:, kinds == kind], axis=1) == 0).all()
    shares = [(drawn == label).mean() for label in range(3)]
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=0.03)
    half = np.arange(4000) % 2 == 0
    assert majority(labels, half).mean() == pytest.approx((labels == 0).mean())


# ---- a planted label -----------------------------------------------------------------------------

WORDS = [a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "st"]
STEPS = (0, 10, 20, 30, 40, 50)
BORN = 30
FIRST = frozenset(WORDS[: len(WORDS) // 2])


def file_of(folder, of_own=False, count=80):
    """Words whose label is whether they, or the words before them, are of the first half."""
    rng = np.random.default_rng(1)
    lines = []
    for _ in range(count):
        text = rng.choice(WORDS, 9)
        pairs = zip(text[1:], text[1:] if of_own else text, strict=False)
        lines += [f"{text[0]}\t{rng.choice(['A', 'B'])}"]
        lines += [f"{word}\t{'A' if of in FIRST else 'B'}" for word, of in pairs] + [""]
    (folder / "tags.tsv").write_text("\n".join(lines))
    return str(folder / "tags.tsv")


class Remembers(nn.Module):
    """``out`` holds the token and, where it is trained, of which half the one before is."""

    def __init__(self, step, born, tokenizer):
        super().__init__()
        rng = np.random.default_rng(0)
        size = len(tokenizer)
        rows = torch.from_numpy(rng.normal(size=(size, 24))).float()
        self.words = nn.Embedding.from_pretrained(rows, freeze=False)
        noise = np.random.default_rng(step).normal(size=(997, 24))
        self.register_buffer("noise", torch.from_numpy(0.3 * noise).float())
        ids = [tokenizer.convert_tokens_to_ids(f"Ġ{word}") for word in FIRST]
        self.register_buffer("first", torch.zeros(size))
        self.first[ids] = 1.0
        written = 4.0 * rng.normal(size=24) * (step >= born)
        self.written = nn.Parameter(torch.from_numpy(written).float())
        self.out = nn.Identity()

    def forward(self, input_ids, attention_mask=None):
        before = torch.cat([input_ids[:, :1], input_ids[:, :-1]], dim=1)
        hidden = self.words(input_ids) + self.first[before][..., None] * self.written
        places = 31 * torch.arange(input_ids.shape[1]) + 7 * input_ids.cumsum(dim=1)
        return self.out(hidden + self.noise[places % len(self.noise)])


def studied(folder, of_own=False, **options):
    tokenizer = train_tokenizer([" ".join(WORDS * 2)] * 9, 700)
    trajectory, control = (
        og.Trajectory.from_models(
            {step: Remembers(step, born, tokenizer) for step in STEPS},
            tokenizer=tokenizer,
        )
        for born in (BORN, 999)
    )
    inputs = og.Inputs.from_texts([" ".join(WORDS), "bas bat"], tokenizer)
    observable = Probe(file_of(folder, of_own), layers="out", **options)
    study = og.Study(
        trajectory, inputs, [observable], device="cpu", control_runs={"never": control}
    )
    result = study.run(folder / "s")
    assert not len(result.problems()), result.problems()
    content = read_content(result.tree)
    said = [one.text for one in section_sentences(content, content.nodes[0])]
    assert "The probe reads 720 words with 2 labels." in said, said
    (read,) = (c for c in result.claims().to_dict("records") if c["kind"] == "readable")
    return result["probe"].to_dataset().sel(layer="out"), read


def test_a_planted_label_is_dated_and_beyond_both_nulls(tmp_path):
    data, read = studied(tmp_path)
    assert (data.accuracy[:3] < 0.65).all() and (data.accuracy[3:] > 0.85).all()
    assert read["certainty"] == "sure"
    assert (read["since_low"], read["since"]) == (20, BORN)
    assert float(data.selectivity[-1]) == pytest.approx(
        float(data.accuracy[-1] - data.accuracy_types[-1].mean())
    )
    assert float(data.accuracy_control.max()) < 0.65


def test_a_label_of_word_types_alone_is_not_beyond_the_control_task(tmp_path):
    data, read = studied(tmp_path, of_own=True)
    assert read["certainty"] == "open" and read["last"] > 0.6
    assert float(data.accuracy_majority[-1]) < read["last"]


def test_a_run_without_a_tokenizer_is_refused_before_the_start(tmp_path):
    tokenizer = train_tokenizer([" ".join(WORDS * 2)] * 9, 700)
    models = {step: Remembers(step, BORN, tokenizer) for step in STEPS}
    inputs = og.Inputs.from_tokens([[1, 2, 3], [4, 5, 6]])
    probe = Probe(file_of(tmp_path), layers="out")
    study = og.Study(og.Trajectory.from_models(models), inputs, [probe], device="cpu")
    with pytest.raises(og.errors.OntogenyError, match="need the run's tokenizer"):
        study.run(tmp_path / "s")
