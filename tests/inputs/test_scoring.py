"""Which places are scored: what each way of saying it gives, and what is refused."""

import json
import re

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.capture import losses
from ontogeny.errors import ArgumentError
from ontogeny.inputs.scoring import REGEX
from ontogeny.study.file import make_sources
from ontogeny.tasks import text_files, train_tokenizer

SUMS = [f"{a} + {b} = {a + b}" for a in range(6) for b in range(6)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(SUMS * 3, vocab_size=300)


def written(inputs, mask):
    """Return the characters of the tokens in a mask, text by text."""
    rows = []
    for text, spans, chosen in zip(inputs.texts, inputs.spans, mask, strict=True):
        rows.append("".join(text[a:b] for a, b in spans[chosen]).strip())
    return rows


def test_what_follows_a_separator_is_scored(tokenizer):
    inputs = og.Inputs.from_texts(SUMS, tokenizer, answer_after="=")
    assert written(inputs, inputs.scored) == [text.split("= ")[1] for text in SUMS]
    assert (inputs.ordinary.sum(axis=1) > inputs.scored.sum(axis=1)).all()
    assert (
        f"scored: what follows the last '=' ({int(inputs.scored.sum())})"
        in inputs.sentence
    )


@pytest.mark.parametrize(("occurrence", "answer"), [("first", "2 = 2"), ("last", "2")])
def test_of_several_separators_it_is_said_which_counts(tokenizer, occurrence, answer):
    inputs = og.Inputs.from_texts(
        ["1 + 1 = 2 = 2", *SUMS],
        tokenizer,
        answer_after="=",
        answer_occurrence=occurrence,
    )
    assert written(inputs, inputs.scored)[0] == answer
    (note,) = (w for w in inputs.warnings if "several times" in w)
    assert note.startswith(f"1 of {len(SUMS) + 1} texts hold '=' several times")
    assert f"what follows the {occurrence} one" in note


def test_a_regular_expression_finds_the_answer(tokenizer):
    inputs = og.Inputs.from_texts(SUMS, tokenizer, answer_after=f"{REGEX}[=:] *")
    assert written(inputs, inputs.scored)[7] == "2"


def test_texts_without_the_separator_are_left_out_and_counted(tokenizer):
    inputs = og.Inputs.from_texts([*SUMS, "1 + 1", "2"], tokenizer, answer_after="=")
    assert len(inputs) == len(SUMS)
    assert inputs.warnings[0] == f"2 of {len(SUMS) + 2} texts lack '=' and are left out"


def test_answers_that_are_cut_off_are_counted(tokenizer):
    texts = ["1 = 1 2 3 4 5 5 4 3 2 1", *SUMS]
    length = max(map(len, tokenizer(SUMS)["input_ids"]))
    inputs = og.Inputs.from_texts(texts, tokenizer, answer_after="=", max_length=length)
    assert f"1 answers are cut off at max_length={length}" in inputs.warnings


def test_where_all_answers_are_cut_off_it_says_which_length_would_read_them(tokenizer):
    with pytest.raises(ArgumentError, match=r"; --max-length [0-9]+ reads") as error:
        og.Inputs.from_texts(SUMS, tokenizer, answer_after="=", max_length=3)
    length = int(re.search("--max-length ([0-9]+)", str(error.value))[1])
    whole = og.Inputs.from_texts(SUMS, tokenizer, answer_after="=", max_length=length)
    assert whole.lengths.max() == length and not whole.truncated


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_last_tokens_are_scored_whatever_the_padding(tokenizer, side):
    inputs = og.Inputs.from_texts(SUMS, tokenizer, score="last:2", padding_side=side)
    for ordinary, scored in zip(inputs.ordinary, inputs.scored, strict=True):
        assert np.flatnonzero(scored).tolist() == np.flatnonzero(ordinary)[-2:].tolist()
    assert (inputs.padded("left").subset([3, 4]).scored.sum(axis=1) == 2).all()


def test_completions_are_scored_as_they_stand(tokenizer, tmp_path):
    rows = [
        dict(zip(("prompt", "answer"), text.split("= "), strict=True)) for text in SUMS
    ]
    file = tmp_path / "sums.jsonl"
    file.write_text(
        "\n".join(json.dumps(row | {"prompt": row["prompt"] + "= "}) for row in rows)
    )
    inputs = og.Inputs.from_texts(text_files(file), tokenizer)
    assert list(inputs.texts) == SUMS
    assert (
        inputs.scored == og.Inputs.from_texts(SUMS, tokenizer, answer_after="=").scored
    ).all()
    whole = og.Inputs.from_texts(text_files(file), tokenizer, score="all")
    assert whole.answers is None


def test_a_template_that_marks_the_assistant_is_taken_at_its_word(tokenizer):
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }} ="
        "{% endgeneration %}{% else %}{{ m.content }} = {% endif %}{% endfor %}"
    )
    chat = [{"role": "user", "content": "1 + 1"}, {"role": "assistant", "content": "2"}]
    inputs = og.Inputs.from_texts([chat] * 2, tokenizer)
    assert inputs.texts[0] == "1 + 1 = 2 ="
    # Its mark, not the message alone.
    assert written(inputs, inputs.scored) == ["2 ="] * 2


IDS = [[4, 5, 9, 1], [6, 7, 9, 2], [8, 3, 9, 3]]


@pytest.mark.parametrize(
    "options",
    [
        {"score": "last:1"},
        {"answer_after": [9]},
        {"token_labels": [[-100, -100, -100, row[-1]] for row in IDS]},
        {"token_labels": torch.tensor([[-100, -100, -100, row[-1]] for row in IDS])},
        {
            "token_labels": [[-100, -100, row[-1], -100] for row in IDS]
        },  # as targets of nanoGPT
        {"token_labels": np.array([[False, False, False, True]] * 3)},
    ],
)
def test_each_way_of_asking_for_the_last_id_gives_its_loss_alone(options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))
    inputs = og.Inputs.from_tokens(IDS, **options)
    found = losses(model, inputs, objective="causal")
    with torch.no_grad():
        logits = model(torch.tensor(IDS))
    expected = nn.functional.cross_entropy(
        logits[:, 2], torch.tensor([row[3] for row in IDS]), reduction="none"
    )
    assert np.allclose(found.loss.values, expected.numpy(), atol=1e-6)
    assert found.tokens.values.tolist() == [1, 1, 1]


def test_more_last_tokens_than_texts_have_are_said():
    inputs = og.Inputs.from_tokens([*IDS, [1, 2]], score="last:3")
    assert (
        "1 of 4 texts have fewer than 3 tokens: all of theirs are scored"
        in inputs.warnings
    )


def test_texts_that_are_cut_have_no_last_tokens_to_be_few(tokenizer):
    long = " ".join(SUMS)
    inputs = og.Inputs.from_texts(
        [long, *SUMS], tokenizer, score="last:30", max_length=20
    )
    assert len(inputs) == len(SUMS) and inputs.dropped == 1
    few = f"{len(SUMS)} of {len(SUMS)} texts have fewer than 30 tokens"
    assert inputs.warnings[0].startswith(few)


def test_labels_of_transformers_are_read_beside_ids():
    batch = {"input_ids": IDS, "labels": [[-100, -100, 9, row[-1]] for row in IDS]}
    assert og.Inputs.coerce(batch).scored.tolist() == [[False, False, True, True]] * 3
    # Of texts.
    assert og.Inputs.coerce({"input_ids": IDS, "labels": [0, 1, 0]}).answers is None


def test_without_an_option_nothing_changes():
    plain, all_of_them = (
        og.Inputs.from_tokens(IDS),
        og.Inputs.from_tokens(IDS, score="all"),
    )
    assert plain.answers is None and plain.fingerprint == all_of_them.fingerprint
    assert (plain.scored == plain.ordinary).all()


def test_masked_models_are_asked_for_scored_tokens():
    inputs = og.Inputs.from_tokens(IDS, score="last:1", mask_token_id=0)
    assert inputs.corrupt(0.5)[1].tolist() == [[False, False, False, True]] * 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"score": "last"}, "score must be 'all', 'answer', 'labels' or 'last:K'"),
        ({"score": "last:0"}, "such as 'last:1'; got 'last:0'"),
        ({"score": "answer"}, "of token ids the ids that stand before an answer"),
        ({"score": "labels"}, "needs token_labels, an array beside the ids"),
        (
            {"answer_after": [77]},
            "none of 3 texts holds it, so nothing would be scored",
        ),
        ({"token_labels": [[-100] * 4] * 3}, "ask for no token"),
        ({"token_labels": [[-100, 1, -100, -100]] * 3}, "of text 0 are other ids"),
        ({"token_labels": [[1, 2]] * 2}, "one row of labels for each of 3 texts"),
        (
            {"token_labels": np.where(np.eye(3, 4), 65436, IDS)},
            "65,436 is -100 without its sign: store them as int64",
        ),
        (
            {"answer_after": [row[-1] for row in IDS[:1]]},
            "in none of 3 texts does anything follow it",
        ),
        (
            {"score": "last:1", "token_labels": IDS},
            "token_labels go with score='labels'",
        ),
    ],
)
def test_what_cannot_be_scored_is_one_clear_line(options, words):
    with pytest.raises(ArgumentError, match=r"^[^\n]*$") as error:
        og.Inputs.from_tokens(IDS, **options)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"answer_after": "#"}, "none of 36 texts holds it"),
        ({"answer_after": "regex:("}, "is no regular expression"),
        ({"answer_after": "regex:x*"}, "matches an empty text"),
        ({"score": "answer"}, "give answer_after, what stands before them"),
        ({"score": "labels"}, "goes with token ids"),
        ({"score": "all", "answer_after": "="}, "goes with score='answer'"),
        (
            {"answer_after": "=", "answer_occurrence": "third"},
            "answer_occurrence must be",
        ),
    ],
)
def test_texts_refuse_what_they_do_not_hold(tokenizer, options, words):
    with pytest.raises(ArgumentError) as error:
        og.Inputs.from_texts(SUMS, tokenizer, **options)
    assert words in str(error.value)


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 10)

    def forward(self, ids):
        return self.map(ids[..., None].float().expand(*ids.shape, 4))


def of_file(tmp_path, **keys):
    torch.save(Tiny().state_dict(), tmp_path / "step_1.pt")
    np.save(tmp_path / "ids.npy", np.array(IDS * 4))
    (tmp_path / "model.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Sequential(nn.Linear(4, 10))\n"
    )
    content = {
        "trajectory": {"folder": ".", "model": "model.py:build", "only": "step_1.pt"},
        "inputs": {"tokens": "ids.npy", **keys},
        "observables": [],
    }
    return make_sources(content, tmp_path)[1]["text"]


def test_a_study_file_says_what_is_scored(tmp_path):
    labels = np.full((12, 4), -100)
    labels[:, 3] = np.array(IDS * 4)[:, 3]
    np.save(tmp_path / "labels.npy", labels)
    for keys in (
        {"score": "last:1"},
        {"answer_after": 9},
        {"token_labels": "labels.npy"},
    ):
        assert (of_file(tmp_path, **keys).scored.sum(axis=0) == [0, 0, 0, 12]).all()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"score": "last:1", "max_length": 3},
            "12 of 12 are cut at max_length=3: max_length=4",
        ),
        ({"score": "labels"}, "holds ids alone"),
        ({"answer_after": "="}, "is no id, and the run has no tokenizer"),
        ({"token_labels": "no.npy"}, "there is no file"),
    ],
)
def test_a_study_file_refuses_what_cannot_be_scored(tmp_path, keys, words):
    with pytest.raises(ArgumentError) as error:
        of_file(tmp_path, **keys)
    assert words in str(error.value)
