"""Text to words to numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ontogeny import semantics
from ontogeny.errors import ArgumentError
from ontogeny_papers.semantics.corpus import splitter

split_words = splitter("words", lowercase=True, punctuation=True)


def test_words_of_many_scripts_stay_whole():
    cases = {
        "Ночью идёт дождь.": ["ночью", "идёт", "дождь", "."],
        "हिन्दी में किताब।": ["हिन्दी", "में", "किताब", "।"],
        "مرحبا، كيف حالك؟": ["مرحبا", "،", "كيف", "حالك", "؟"],
        "Ünïcödé naïve": ["ünïcödé", "naïve"],
        "我喜欢猫。": ["我", "喜", "欢", "猫", "。"],
        "καλημέρα κόσμε!": ["καλημέρα", "κόσμε", "!"],
    }
    for text, words in cases.items():
        assert split_words(text) == words


def test_apostrophes_join_and_special_tokens_stand_alone():
    assert split_words("Don't! @-@ <unk> ‘quoted’") == [
        "don't",
        "!",
        "@-@",
        "<unk>",
        "‘",
        "quoted",
        "’",
    ]


def test_a_word_of_markup_is_a_word_like_any_other():
    support = semantics.support_matrix("say <script> now say <script> then", lengths=1)
    assert "<script>" in support.words


def test_nothing_is_lost_but_spaces():
    text = "a1_b—c…“d” e's\tf\nñ 5.5% 😀"
    cut = splitter("words", lowercase=False, punctuation=True)
    assert "".join(cut(text)) == "".join(text.split())


def test_a_text_file_is_parted_by_blank_lines(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text("One day\nit rained.\n\nThe end.\n", "utf-8")
    stream = semantics.word_stream(path)
    assert [stream.words[i] if i >= 0 else "|" for i in stream.ids] == [
        "one",
        "day",
        "it",
        "rained",
        ".",
        "|",
        "the",
        "end",
        ".",
    ]
    np.testing.assert_array_equal(semantics.token_stream(path).ids, stream.ids)


def test_rows_of_a_data_set_are_texts():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"story": ["a b", "b c"], "other": [1, 2]})
    stream = semantics.word_stream(rows, field="story")
    assert stream.ids.tolist() == [0, 1, -1, 1, 2]
    with pytest.raises(ArgumentError, match="entry 0 must be a string"):
        semantics.word_stream(rows, field="text")


def test_a_generator_of_texts_is_read_once():
    stream = semantics.word_stream(f"w{i} w{i + 1}" for i in range(3))
    assert stream.ids.tolist() == [0, 1, -1, 1, 2, -1, 2, 3]


def test_a_tokenizer_gives_its_tokens():
    tokenizers = pytest.importorskip("tokenizers")
    from transformers import PreTrainedTokenizerFast

    model = tokenizers.models.WordLevel({"<unk>": 0, "a": 1, "b": 2}, unk_token="<unk>")
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")
    stream = semantics.word_stream(["a b", "b x"], split=tokenizer)
    assert [stream.words[i] if i >= 0 else "|" for i in stream.ids] == [
        "a",
        "b",
        "|",
        "b",
        "<unk>",
    ]


@pytest.mark.parametrize(
    "tokens",
    [
        np.array([3, 1, 3, 1, 2]),
        [3, 1, 3, 1, 2],
        [[3, 1, 3, 1, 2]],
        np.array([[3, 1, 3, 1, 2]]),
        (np.array(part) for part in [[3, 1, 3, 1, 2]]),
    ],
)
def test_ids_may_come_in_any_shape(tokens):
    stream = semantics.token_stream(tokens, names=["zero", "one", "two", "three"])
    assert [stream.words[i] for i in stream.ids] == [
        "three",
        "one",
        "three",
        "one",
        "two",
    ]


def test_tensors_are_ids_too():
    import torch

    assert semantics.token_stream(torch.tensor([[1, 2], [3, 4]])).ids.tolist() == [
        1,
        2,
        -1,
        3,
        4,
    ]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint64, np.int8, np.int64])
def test_the_integer_type_does_not_matter(dtype, tmp_path):
    ids = np.random.default_rng(0).integers(0, 9, 500)
    expected = semantics.support_matrix(ids, 9, 60, (1, 3)).counts.toarray()
    given = ids.astype(dtype)
    given.tofile(tmp_path / "tokens.bin")
    mapped = np.memmap(tmp_path / "tokens.bin", dtype=dtype, mode="r")
    for tokens in (given, mapped):
        np.testing.assert_array_equal(
            semantics.support_matrix(tokens, 9, 60, (1, 3)).counts.toarray(), expected
        )
    rows = semantics.token_stream(given.reshape(5, 100)).ids
    assert np.issubdtype(rows.dtype, np.integer) and rows[100] == -1


def test_names_that_are_too_few_are_refused():
    with pytest.raises(ArgumentError, match="names holds 2"):
        semantics.token_stream([0, 5], names=["a", "b"])


def test_a_file_that_is_missing_or_not_utf8_is_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"nowhere\.txt cannot be read"):
        semantics.word_stream(tmp_path / "nowhere.txt")
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    with pytest.raises(ArgumentError, match="not UTF-8"):
        semantics.word_stream(tmp_path / "latin.txt")
