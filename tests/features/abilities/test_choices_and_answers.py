"""Choices and answers: files of public tasks, and scores of a plain loop."""

import json

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import ontogeny as og
from helpers.family_models import build
from ontogeny.capture.predictor import Predictor
from ontogeny.errors import ArgumentError
from ontogeny.features.abilities.choice_forms import choice_of
from ontogeny.features.abilities.token_texts import TokenTexts
from ontogeny.observables import Answers, Choices
from ontogeny.start.examples import _fields_of, _kind_of
from ontogeny.tasks import train_tokenizer

PUBLIC = {
    "arc": {
        "id": "1",
        "question": "What is ice?",
        "answerKey": "B",
        "choices": {"text": ["fire", "water", "air"], "label": ["A", "B", "C"]},
    },
    "ai2": {
        "question": {
            "stem": "What is ice?",
            "choices": [
                {"text": "fire", "label": "1"},
                {"text": "water", "label": "2"},
            ],
        },
        "answerKey": "2",
    },
    "hellaswag": {
        "ctx_a": "A man sits.",
        "ctx_b": "he",
        "activity_label": "Rafting",
        "endings": ["[title] stands up.", "rows  on.", "a", "b"],
        "label": "1",
    },
    "copa": {
        "premise": "The man broke his toe.",
        "question": "cause",
        "choice1": "He got a hole in his sock.",
        "choice2": "He dropped a hammer.",
        "label": 1,
    },
    "boolq": {"question": "is ice cold", "passage": "Ice is frozen.", "answer": True},
    "piqa": {"goal": "Open it", "sol1": "push", "sol2": "eat", "label": 0},
    "plain": {
        "prompt": "Ice is",
        "answers": ["hot", "cold"],
        "right": "cold",
        "group": "ice",
    },
    "table": {
        "prompt": "Ice is",
        "answer1": "hot",
        "answer2": "cold",
        "answer3": "",
        "right": "2",
    },
}
READ = {
    "arc": ("Question: What is ice?\nAnswer:", (" fire", " water", " air"), 1, "arc"),
    "ai2": ("Question: What is ice?\nAnswer:", (" fire", " water"), 1, "ai2"),
    "hellaswag": (
        "Rafting: A man sits. He",
        (" stands up.", " rows on.", " a", " b"),
        1,
        "hellaswag",
    ),
    "copa": (
        "The man broke his toe because",
        (" he got a hole in his sock.", " he dropped a hammer."),
        1,
        "copa",
    ),
    "boolq": (
        "Ice is frozen.\nQuestion: is ice cold?\nAnswer:",
        (" no", " yes"),
        1,
        "boolq",
    ),
    "piqa": ("Question: Open it\nAnswer:", (" push", " eat"), 0, "piqa"),
    "plain": ("Ice is", (" hot", " cold"), 1, "ice"),
    "table": ("Ice is", (" hot", " cold"), 1, "table"),
}


@pytest.mark.parametrize("form", PUBLIC)
def test_questions_of_public_tasks_are_read_as_they_are(tmp_path, form):
    file = tmp_path / f"{form}.jsonl"
    file.write_text(json.dumps(PUBLIC[form]))
    assert _kind_of(_fields_of(str(file))[1], str(file)) == "choices"
    question = choice_of(PUBLIC[form], form, "")
    assert (question.before[0], question.texts, question.right, question.group) == READ[
        form
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"right": "wet"}, "its right answer 'wet' is none of its 2 answers"),
        ({"answers": ["cold"]}, "it has 1 answers to choose from, and needs two"),
        ({"answers": ["cold", "cold "]}, "two of its answers are equal"),
        ({"answers": ["cold", 3]}, "is int, not a text"),
        ({"answers": None}, "its fields do not hold what others of its form do"),
        ({"prompt": " "}, "its 'prompt' is empty"),
    ],
)
def test_what_is_no_question_gets_one_line_and_the_rest_goes_on(tmp_path, change, why):
    file = tmp_path / "q.jsonl"
    file.write_text(
        "\n".join(json.dumps({**PUBLIC["plain"], **each}) for each in ({}, change))
    )
    questions, left_out = Choices(str(file)).read()
    assert len(questions) == len(left_out) == 1
    assert why in left_out[0] and left_out[0].startswith("q.jsonl, line 2: ")


def test_files_without_an_example_are_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(
        ArgumentError, match=r"texts whose last word .* empty\.jsonl holds no exam"
    ):
        Answers(str(tmp_path / "empty.jsonl"))
    with pytest.raises(
        ArgumentError, match=r"examples must be files of questions.*none is named"
    ):
        Choices(())


def test_texts_are_asked_for_their_last_word_and_prompts_for_their_answer(tmp_path):
    rows = [
        {"text": "the cat sat on a mat "},
        {"prompt": "Ice is", "answer": "cold"},
        {"text": "alone"},
    ]
    file = tmp_path / "words.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    for row in rows[:2]:
        assert _kind_of([*row], "one.jsonl") == "answers"
    examples, left_out = Answers(str(file)).read()
    assert [(each.before[0], each.texts) for each in examples] == [
        ("the cat sat on a", (" mat",)),
        ("Ice is", (" cold",)),
    ]
    assert left_out == [
        "words.jsonl, line 3: its text has one word, and nothing stands before it"
    ]


def log_p_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].log_softmax(-1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run of four models asked both, with their tokenizer and the files."""
    folder = tmp_path_factory.mktemp("both")
    tokenizer = train_tokenizer(["he is . we are . the cat sat on the mat"] * 9, 300)
    questions = [
        {
            "prompt": f"the cat {i}",
            "answers": ["sat", "are", "is on the mat"][: 2 + i % 2],
            "right": 0,
            "group": "more" if i % 3 else "fewer",
        }
        for i in range(12)
    ]
    texts = [
        {"text": f"the cat {i} sat on the {'mat' if i % 4 else 'cat'}"}
        for i in range(12)
    ]
    for name, rows in (("questions", questions), ("texts", texts)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = GPT2Config(
        n_layer=1,
        n_embd=8,
        n_head=2,
        vocab_size=len(tokenizer),
        n_positions=64,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    models = {step: GPT2LMHeadModel(config).eval() for step in (0, 10, 20)}
    run = og.Trajectory.from_models(models, tokenizer=tokenizer)
    observables = [
        Choices(str(folder / "questions.jsonl")),
        Answers(str(folder / "texts.jsonl")),
    ]
    inputs = og.Inputs.from_texts(["the cat sat", "on the mat"], tokenizer)
    study = og.Study(run, inputs, observables, device="cpu")
    result = study.run(folder / "study", progress=False)
    return result, models, tokenizer, questions, texts


def _asked(tokenizer, prompt, answer):
    begin = tokenizer.bos_token_id
    begin = tokenizer.eos_token_id if begin is None else begin
    before = tokenizer.encode(prompt, add_special_tokens=False)
    return [
        begin,
        *tokenizer.encode(f"{prompt} {answer}", add_special_tokens=False),
    ], len(before)


def test_scores_and_accuracies_of_choices_are_those_of_a_plain_loop(measured):
    result, models, tokenizer, questions, _ = measured
    data = result["choices"].sel(step=10)
    of_answers, right, normalised = (
        [],
        {"more": [], "fewer": []},
        {"more": [], "fewer": []},
    )
    for row in questions:
        scores = []
        for answer in row["answers"]:
            ids, before = _asked(tokenizer, row["prompt"], answer)
            log_p = log_p_of(models[10], ids)
            scores.append(
                sum(float(log_p[i - 1, ids[i]]) for i in range(1 + before, len(ids)))
            )
        of_answers += scores
        right[row["group"]].append(int(np.argmax(scores)) == 0)
        lengths = [len(answer) for answer in row["answers"]]
        normalised[row["group"]].append(int(np.argmax(np.divide(scores, lengths))) == 0)
    assert data.score.values == pytest.approx(of_answers, abs=1e-4)
    for group in right:
        assert float(data.accuracy.sel(group=group)) == pytest.approx(
            np.mean(right[group])
        )
        by_length = float(data.accuracy_normalised.sel(group=group))
        assert by_length == pytest.approx(np.mean(normalised[group]))
    chance = result["choices"].accuracy_chance
    assert float(chance.sel(group="more")) == pytest.approx((4 / 2 + 4 / 3) / 8)


@pytest.mark.parametrize("kind", ["choices", "answers"])
def test_every_variable_says_what_it_is_and_numbers_their_units(measured, kind):
    node = measured[0][kind].to_dataset()
    assert [
        name for name, v in node.data_vars.items() if not v.attrs.get("long_name")
    ] == []
    floats = [name for name, v in node.data_vars.items() if v.dtype.kind == "f"]
    assert [name for name in floats if not node[name].attrs.get("units")] == []
    assert node.right.sizes["step"] == 3


def test_ranks_of_answers_are_those_of_a_plain_loop(measured):
    result, models, tokenizer, _, texts = measured
    data = result["answers"].sel(step=20)
    for place, row in enumerate(texts):
        prompt, _, word = row["text"].rpartition(" ")
        ids, before = _asked(tokenizer, prompt, word)
        log_p = log_p_of(models[20], ids)
        asked = range(1 + before, len(ids))
        assert float(data.score[place]) == pytest.approx(
            sum(float(log_p[i - 1, ids[i]]) for i in asked), abs=1e-4
        )
        ranks = [1 + int((log_p[i - 1] > log_p[i - 1, ids[i]]).sum()) for i in asked]
        assert int(data["rank"][place]) == max(ranks)
    assert float(result["answers"].accuracy_chance[0]) == pytest.approx(9 / 12)


def token_texts(rows, widths, mask_token_id=4):
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ids, width = np.concatenate(rows), np.concatenate(widths)
    return TokenTexts(
        ids.astype(np.int32), width.astype(np.int16), start, mask_token_id
    )


def test_answers_that_differ_in_their_last_token_share_a_pass():
    model, shown = build("gpt2"), []
    model.register_forward_pre_hook(
        lambda _, args, given: shown.append(len([*args, *given.values()][0])),
        with_kwargs=True,
    )
    # The third has other tokens with a score, the last one a token after the one that has.
    rows = [[1, 9, 12], [1, 9, 30], [1, 9, 12], [1, 9], [1, 9, 7, 2]]
    widths = [[0, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1], [0, 0, 1, 0]]
    scores = token_texts(rows, widths).scores(Predictor(model, "causal"))
    # A tree of all; two texts at once show whether the model is causal, single ones check.
    assert [n for n in shown if n != 1] == [2]
    for row, width, score in zip(rows, widths, scores, strict=True):
        log_p = log_p_of(model, row)
        loop = sum(float(log_p[i - 1, row[i]]) for i in np.flatnonzero(width))
        assert score == pytest.approx(loop, abs=1e-4)


def test_ranks_of_a_masked_model_hide_the_rest_of_the_word():
    model, row, width = build("bert"), [1, 9, 12, 30], [0, 0, 2, 1]
    scores, ranks = token_texts([row], [width]).scores_and_ranks(
        Predictor(model, "masked")
    )
    log_p = [
        log_p_of(model, hidden)[place]
        for place, hidden in ((2, [1, 9, 4, 4]), (3, [1, 9, 12, 4]))
    ]
    own = [float(each[token]) for each, token in zip(log_p, row[2:], strict=True)]
    assert scores[0] == pytest.approx(sum(own), abs=1e-4)
    assert ranks[0] == max(
        1 + int((each > value).sum()) for each, value in zip(log_p, own, strict=True)
    )
