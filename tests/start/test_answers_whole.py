"""Answers at the end of long texts: they are read whole unless another length was said."""

import json

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from helpers.study_examples import record
from helpers.text_models import save_tokenizer
from ontogeny.errors import ArgumentError
from ontogeny.inputs.scoring import AnswersCutError
from ontogeny.start import propose
from ontogeny.start.wishes import Wishes
from ontogeny.tasks import bundled_texts, train_tokenizer

READS = 200
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    tokenizer = train_tokenizer(bundled_texts(), 300)
    tokenizer.chat_template = TEMPLATE
    models = {}
    for step in (0, 1):
        torch.manual_seed(step)
        size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": READS}
        models[step] = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size))
    record(models, folder / "run")
    save_tokenizer(tokenizer, folder / "run")
    return folder, tokenizer


def table(folder, prompts):
    rows = [{"prompt": text, "completion": " A story of a dog."} for text in prompts]
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path), [row["prompt"] + row["completion"] for row in rows]


def proposed(folder, path, **asked):
    wishes = Wishes(str(folder / "run"), "quick", texts=[path], **asked)
    return propose(wishes, folder)


@pytest.mark.parametrize("short", [0, 20])
def test_texts_are_read_as_far_as_their_answers_reach(place, short):
    """All answers were cut, and the study refused; or some, and they were left out."""
    folder, tokenizer = place
    prompts = [f"{i} " + "the big dog ran " * 8 for i in range(30 - short)]
    prompts += [f"{i} the dog ran." for i in range(short)]
    path, whole = table(folder, prompts)
    longest = max(len(ids) for ids in tokenizer(whole)["input_ids"])
    assert 64 < longest <= READS
    proposal = proposed(folder, path)
    assert proposal.content["inputs"]["max_length"] == longest
    said = "\n".join(proposal.texts)
    assert f"read to {longest} tokens instead of 64" in said
    assert "30 texts" in said and "left out" not in said and "cut" not in said


def test_a_length_that_was_said_stands(place):
    folder, _ = place
    path, _ = table(folder, ["the big dog ran " * 8] * 20)
    for asked in ({"max_length": 64}, {"sets": ["inputs.max_length=64"]}):
        with pytest.raises(AnswersCutError, match="--max-length"):
            proposed(folder, path, **asked)


def test_no_more_is_read_than_the_model_reads(place):
    folder, _ = place
    path, _ = table(folder, ["the dog.", "the big dog ran " * 100] * 10)
    proposal = proposed(folder, path)
    assert proposal.content["inputs"]["max_length"] == 64
    said = "\n".join(proposal.texts)
    assert "left out" in said and "instead of" not in said


def reading(place, reads):
    """Return a folder of checkpoints that read so many tokens."""
    folder, tokenizer = place
    run = folder / f"reads-{reads}"
    if not run.exists():
        size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": reads}
        model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size))
        record({0: model, 1: model}, run)
        save_tokenizer(tokenizer, run)
    return str(run)


@pytest.mark.parametrize("reads", [48, 80])
def test_the_length_that_is_said_is_the_one_that_the_model_reads(place, reads):
    """A model that reads 48 tokens was said to read 218."""
    folder, _ = place
    long = ["the big dog ran " * k for k in (5, 20)] * 5
    path, _ = table(folder, ["the dog ran."] * 15 + long)
    run = reading(place, reads)
    proposal = propose(Wishes(run, "quick", texts=[path]), folder)
    assert proposal.content["inputs"]["max_length"] == reads
    said = "\n".join(proposal.texts)
    assert (f"read to {reads} tokens instead of 64" in said) == (reads > 64)
    assert said.count("instead of") == (reads > 64)


def test_advice_is_none_that_the_model_cannot_follow(place):
    """Of a model that reads 48 tokens, 217 were advised, with the same message again."""
    folder, _ = place
    path, _ = table(folder, ["the big dog ran " * 20] * 10)
    run = reading(place, 48)
    with pytest.raises(ArgumentError, match="the model reads 48 tokens") as refusal:
        propose(Wishes(run, "quick", texts=[path]), folder)
    assert "--max-length" not in str(refusal.value)
    assert "--score all" in str(refusal.value)
    proposal = propose(Wishes(run, "quick", texts=[path], score="all"), folder)
    assert proposal.content["inputs"]["max_length"] == 48


def test_what_stands_behind_all_answers_is_no_reason_to_read_more(place):
    folder, _ = place
    chat = [("user", "the dog?"), ("assistant", "the dog."), ("user", "the dog " * 60)]
    messages = [{"role": role, "content": text} for role, text in chat]
    path = folder / "chats.jsonl"
    path.write_text(
        "".join(f"{json.dumps({'messages': messages})}\n" for _ in range(20))
    )
    proposal = proposed(folder, str(path))
    assert proposal.content["inputs"]["max_length"] == 64
    assert "instead of" not in "\n".join(proposal.texts)


def test_the_last_tokens_of_long_rows_of_ids_are_read(place):
    folder, _ = place
    path = folder / "rows.npy"
    np.save(path, np.random.default_rng(0).integers(0, 40, (30, 90)))
    proposal = proposed(folder, str(path), score="last:2")
    assert proposal.content["inputs"]["max_length"] == 90


@pytest.mark.parametrize("how", ["separator", "labels"])
def test_rows_of_ids_are_read_to_answers_that_all_stand_behind_the_usual_length(
    place, how
):
    """It was said that no row held the separator, or that no token was asked for."""
    folder, tokenizer = place
    (mark,) = tokenizer("?", add_special_tokens=False)["input_ids"]
    ids = np.random.default_rng(0).integers(100, 160, (30, 90))
    ids[:, 75] = mark
    np.save(folder / "marked.npy", ids)
    np.save(folder / "asked.npy", np.where(np.arange(90) > 75, ids, -100))
    asked = {
        "separator": {"answer_after": "?"},
        "labels": {"token_labels": [str(folder / "asked.npy")]},
    }[how]
    path = str(folder / "marked.npy")
    proposal = proposed(folder, path, **asked)
    assert proposal.content["inputs"]["max_length"] == 90
    assert "30 texts" in "\n".join(proposal.texts)
    with pytest.raises(AnswersCutError, match="--max-length 90"):
        proposed(folder, path, max_length=64, **asked)
