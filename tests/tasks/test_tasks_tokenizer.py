import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ontogeny.errors import ArgumentError
from ontogeny.tasks import python_documentation, train_tokenizer
from ontogeny.tasks.tokenizer import SPECIAL_TOKENS

TEXTS = [
    f"The number {n} follows {n - 1} and <unk> precedes {n + 1}." for n in range(300)
]
TOKENIZER = train_tokenizer(TEXTS, vocab_size=280)
DESCRIBE = """
import sys
from ontogeny.tasks import python_documentation, train_tokenizer
tokenizer = train_tokenizer(python_documentation()[:1000], vocab_size=1000)
sys.stdout.buffer.write(tokenizer.backend_tokenizer.to_str().encode())
"""


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_encoded_and_decoded_without_loss(text):
    ids = TOKENIZER(text).input_ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == text
    assert TOKENIZER.unk_token_id not in ids
    assert all(0 <= i < len(TOKENIZER) for i in ids)


def test_the_vocabulary_has_the_size_asked_for_and_special_tokens_come_first():
    assert len(TOKENIZER) == TOKENIZER.vocab_size == 280
    assert TOKENIZER.convert_tokens_to_ids(list(SPECIAL_TOKENS.values())) == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert sorted(TOKENIZER.all_special_ids) == [0, 1, 2, 3, 4]
    assert (TOKENIZER.cls_token_id, TOKENIZER.sep_token_id) == (2, 3)


def test_a_text_begins_and_ends_with_special_tokens():
    ids = TOKENIZER("The number").input_ids
    assert (ids[0], ids[-1]) == (TOKENIZER.bos_token_id, TOKENIZER.eos_token_id)
    assert not set(ids[1:-1]) & set(TOKENIZER.all_special_ids)


def test_words_that_look_special_elsewhere_are_ordinary_text():
    ids = TOKENIZER("<unk> <s> </s> [MASK] <pad>", add_special_tokens=False).input_ids
    assert not set(ids) & set(TOKENIZER.all_special_ids)


def test_padding_goes_to_the_right_and_is_masked():
    batch = TOKENIZER(["a", "a longer text"], padding=True)
    assert batch.input_ids[0][-1] == TOKENIZER.pad_token_id
    assert batch.attention_mask[0][-1] == 0


def test_frequent_words_become_one_token():
    tokenizer = train_tokenizer(TEXTS, vocab_size=400)
    assert len(tokenizer("The number", add_special_tokens=False).input_ids) == 2


def test_marks_and_digits_are_tokens_of_their_own():
    text = "123 and 123 (and) 123."
    tokenizer = train_tokenizer([text] * 9, vocab_size=400)
    ids = tokenizer(text, add_special_tokens=False).input_ids
    words = [tokenizer.decode([i]).strip() for i in ids]
    assert [w for w in words if w] == [
        *"123",
        "and",
        *"123",
        "(",
        "and",
        ")",
        *"123",
        ".",
    ]


def test_short_texts_give_a_smaller_vocabulary():
    assert 261 < len(train_tokenizer(["aaaa bbbb"], vocab_size=1000)) < 300


def test_saved_and_read_again_it_is_the_same(tmp_path):
    from transformers import AutoTokenizer

    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    for text in (TEXTS[7], "naïve 東京 🐈 ,  ."):
        assert again(text).input_ids == TOKENIZER(text).input_ids
        assert again.decode(again(text).input_ids, skip_special_tokens=True) == text
    assert again.special_tokens_map == TOKENIZER.special_tokens_map
    assert again.model_max_length == TOKENIZER.model_max_length == 512


@pytest.mark.slow
def test_the_same_texts_give_the_same_tokenizer_in_every_process():
    here = train_tokenizer(python_documentation()[:1000], vocab_size=1000)
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        env={**os.environ, "PYTHONHASHSEED": "7", "RAYON_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == here.backend_tokenizer.to_str()


@pytest.mark.parametrize(
    ("texts", "size", "named"),
    [
        (["a"], 260, "vocab_size"),
        ([], 300, "texts"),
        ([""], 300, "texts"),
        ("abc", 300, "texts"),
    ],
)
def test_bad_input_is_refused(texts, size, named):
    with pytest.raises(ArgumentError, match=named):
        train_tokenizer(texts, size)
