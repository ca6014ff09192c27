"""Conversations through the tokenizer's own chat template, with a loss of their answers alone."""

import json

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.inputs.conversations import messages_of
from ontogeny.tasks import document_files

WORDS = ["Hello", "?", "I", "am", "fine", ".", "And", "you", "user", "assistant", "s"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
CHAT = [
    {"role": "user", "content": "Hello ?"},
    {"role": "assistant", "content": "I am fine ."},
    {"role": "user", "content": "And you ?"},
    {"role": "assistant", "content": "s"},  # a letter that the template writes too
]


def tokenizer_of(template=TEMPLATE):
    special = ["<s>", "</s>", "<pad>", "<unk>"]
    vocabulary = {w: i for i, w in enumerate([*special, *WORDS, "<", "|", ">", "\n"])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    names = dict(
        zip(("bos_token", "eos_token", "pad_token", "unk_token"), special, strict=True)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **names)
    tokenizer.add_tokens(["<|user|>", "<|assistant|>"])
    tokenizer.chat_template = template
    return tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizer_of()


def answers_of(inputs, tokenizer, row=0):
    return tokenizer.convert_ids_to_tokens(
        inputs.ids[row][inputs.answers[row]].tolist()
    )


@pytest.mark.parametrize("side", ["right", "left"])
def test_answers_are_what_a_loss_is_taken_of_and_nothing_begins_twice(tokenizer, side):
    inputs = og.Inputs.from_texts([CHAT, CHAT[:2]], tokenizer, padding_side=side)
    assert answers_of(inputs, tokenizer) == ["I", "am", "fine", ".", "s"]
    assert answers_of(inputs.padded("left").subset([1]), tokenizer) == [
        "I",
        "am",
        "fine",
        ".",
    ]
    assert [int((ids == 0).sum()) for ids in inputs.ids] == [1, 1]
    assert inputs.texts[1] == tokenizer.apply_chat_template(CHAT[:2], tokenize=False)
    # Activations are read at all tokens.
    assert inputs.ordinary.sum() > inputs.answers.sum()
    plain = og.Inputs.from_tokens(inputs.ids, inputs.mask, inputs.special)
    assert plain.fingerprint != inputs.fingerprint


def test_the_loss_is_that_of_labels_of_the_answers(tokenizer):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
    )
    model = LlamaForCausalLM(config).eval()
    inputs = og.Inputs.from_texts([CHAT, CHAT[:2]], tokenizer)
    ids, mask = (torch.from_numpy(array.copy()) for array in (inputs.ids, inputs.mask))
    labels = ids.masked_fill(~torch.from_numpy(inputs.answers.copy()), -100)
    with torch.no_grad():
        expected = float(
            model(input_ids=ids, attention_mask=mask.long(), labels=labels).loss
        )
    measured = og.capture.losses(model, inputs)
    mean = float((measured.loss * measured.tokens).sum() / measured.tokens.sum())
    assert mean == pytest.approx(expected, abs=1e-5)
    assert int(measured.tokens.sum()) == int(inputs.answers.sum())


def test_files_of_messages_are_recognised(tokenizer, tmp_path):
    file = tmp_path / "chat.jsonl"
    file.write_text(
        "\n".join(json.dumps({"id": str(i), "messages": CHAT}) for i in range(3))
    )
    read = document_files(file)
    assert read.texts[0] == CHAT and "answers" in read.form
    assert og.Inputs.from_texts(read.texts, tokenizer).answers.any(axis=1).all()


def of_sharegpt(message):
    role = {"user": "human", "assistant": "gpt"}[message["role"]]
    return {"from": role, "value": message["content"]}


def in_parts(message):
    half = len(message["content"]) // 2
    parts = message["content"][:half], message["content"][half:]
    return {**message, "content": [{"type": "text", "text": part} for part in parts]}


@pytest.mark.parametrize(
    ("column", "form"),
    [("conversations", of_sharegpt), ("messages", in_parts), ("dialogue", dict)],
)
def test_other_forms_of_messages_are_the_same_conversations(tmp_path, column, form):
    rows = [
        {"source": "web", column: []},
        {"source": "web", column: [*map(form, CHAT)]},
    ]
    rows = rows[:1] + rows[1:] * 3 if column != "dialogue" else [{column: CHAT}] * 3
    file = tmp_path / "chats.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    read = document_files(file)
    assert list(read.texts) == [CHAT] * 3 and read.form.startswith("conversations")


def test_messages_with_what_is_no_text_are_refused_and_calls_of_tools_are_empty():
    image = [{"role": "user", "content": [{"type": "image", "url": "a.png"}]}]
    call = [{"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}]
    assert messages_of(image) is None and messages_of([{"role": "user"}]) is None
    assert messages_of(call) == [{**call[0], "content": ""}]


@pytest.mark.parametrize(
    ("texts", "template", "length", "message"),
    [
        ([CHAT, "Hello"], TEMPLATE, 99, "none of them; got some of each"),
        ([CHAT], None, 99, "no chat template"),
        (
            [CHAT],
            TEMPLATE,
            5,
            "none of 1 holds an answer within its first max_length=5",
        ),
        ([CHAT[:1]], TEMPLATE, 99, "holds an answer"),
        ([CHAT], "{{ messages[-1].content }}", 99, "one answer each"),
        (
            [CHAT],
            "{{ raise_exception('roles must alternate') }}",
            99,
            "roles must alternate",
        ),
        ([[{"role": "user"}]], TEMPLATE, 99, "lists of messages with role and content"),
    ],
)
def test_what_has_no_answers_is_refused(texts, template, length, message):
    with pytest.raises(ArgumentError, match=message):
        og.Inputs.from_texts(texts, tokenizer_of(template), length)
