"""Inputs from texts: what tokenizers of every kind turn into, and character spans."""

import numpy as np
import pytest
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from helpers.paths import DATA
from ontogeny import Inputs
from ontogeny.errors import ArgumentError
from ontogeny.tasks import train_tokenizer

TEXTS = [
    "The cat sat on the mat, and the cat stayed.",
    "Η γάτα κάθεται στο χαλί.",
    "猫坐在垫子上。",
    "جلست القطة على السجادة.",
    "A family 👩‍👩‍👧 and a flag 🇬🇷 end here 🙂",
    "Ångström, naïve, cafe\u0301",
]
SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}


def byte_level(**special):
    """Bytes, merged: one token may be part of a character."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(SPECIAL.values()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def with_ends():
    """The byte-level tokenizer, with <s> and </s> around each text."""
    tokenizer = byte_level(**SPECIAL)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return tokenizer


def word_pieces():
    """BERT's kind: lower case, accents stripped, [CLS] and [SEP]."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=names, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS[:1], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


class Letters(PreTrainedTokenizer):
    """A slow tokenizer: one token per letter, an end token after each text."""

    def __init__(self, **options):
        self._ids = {"<pad>": 0, "</s>": 1} | {chr(97 + i): 2 + i for i in range(26)}
        super().__init__(pad_token="<pad>", eos_token="</s>", unk_token="a", **options)

    @property
    def vocab_size(self):
        return len(self._ids)

    def get_vocab(self):
        return dict(self._ids)

    def _tokenize(self, text, **options):
        return [letter for letter in text if letter in self._ids]

    def _convert_token_to_id(self, token):
        return self._ids.get(token, 2)

    def _convert_id_to_token(self, index):
        return list(self._ids)[index]

    def build_inputs_with_special_tokens(self, first, second=None):
        return [*first, 1]

    def get_special_tokens_mask(
        self, first, second=None, already_has_special_tokens=False
    ):
        if already_has_special_tokens:
            return [int(i in (0, 1)) for i in first]
        return [0] * len(first) + [1]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("text", TEXTS)
def test_words_of_every_script_are_whole_pieces_of_the_text(text, side):
    inputs = Inputs.from_texts([text, "a"], with_ends(), padding_side=side)
    sample = inputs.sample("all")
    words = [
        w for w, t in zip(inputs.tokens_of(sample), sample.text, strict=True) if t == 0
    ]
    assert all(word and word in text and "\ufffd" not in word for word in words)
    covered = set()
    first = inputs.mask[0].argmax()
    for position in sample.position[sample.text == 0]:
        start, stop = inputs.spans[0, first + position]
        covered |= set(range(start, stop))
    assert covered == set(range(len(text)))


def test_word_is_none_for_special_tokens_and_slow_tokenizers():
    inputs = Inputs.from_texts(["the cat"], with_ends())
    assert inputs.word(0, 0) is None and inputs.word(0, 1) is not None
    assert Inputs.from_texts(["abc"], Letters()).word(0, 0) is None
    with pytest.raises(ArgumentError, match="position must lie in 0 to"):
        inputs.word(0, 99)


def test_window_shows_the_surroundings_and_a_mean_the_whole_text():
    inputs = Inputs.from_texts(["a cat sat"], word_pieces())
    cat = next(p for p in range(8) if inputs.word(0, p) and "c" in inputs.word(0, p))
    start, stop = inputs.spans[0, cat]
    sample = inputs.sample("all")
    index = sample.position.tolist().index(cat)
    assert (
        inputs.tokens_of(sample, window=2)[index] == "a cat sat"[start - 2 : stop + 2]
    )
    assert inputs.tokens_of(inputs.sample("mean")) == ["a cat sat"]


@pytest.mark.parametrize("make", [with_ends, word_pieces, Letters])
def test_ids_are_the_tokenizers_own(make):
    tokenizer = make()
    texts = ["the cat sat", "a cat"]
    inputs = Inputs.from_texts(texts, tokenizer)
    for row, text in enumerate(texts):
        assert (
            inputs.ids[row][inputs.mask[row]].tolist() == tokenizer(text)["input_ids"]
        )
    assert inputs.vocab_size == len(tokenizer)
    assert inputs.mask_token_id == tokenizer.mask_token_id


def test_special_tokens_are_marked_wherever_they_stand():
    inputs = Inputs.from_texts(["the <mask> cat </s> sat"], with_ends())
    marked = inputs.ids[0][inputs.special[0]].tolist()
    assert sorted(marked) == [0, 1, 1, 3]
    assert inputs.counts["special"] == 4


def test_unknown_words_are_ordinary():
    inputs = Inputs.from_texts(["cat 猫"], word_pieces())
    assert (inputs.ids[0][inputs.ordinary[0]] == 1).any()
    sample = inputs.sample("all")
    assert inputs.tokens_of(sample)[-1] == "猫"


def test_padding_without_a_padding_token_uses_the_end_token_or_zero():
    ends = Inputs.from_texts(["the cat sat", "a"], byte_level(eos_token="</s>"))
    assert ends.pad_token_id == 1 and set(ends.ids[1][~ends.mask[1]].tolist()) == {1}
    none = Inputs.from_texts(["the cat sat", "a"], byte_level())
    assert none.pad_token_id == 0 and none.mask_token_id is None
    assert none.counts["special"] == 0


@pytest.mark.parametrize("make", [with_ends, word_pieces, Letters])
def test_empty_and_long_texts_are_counted_and_labels_follow(make):
    texts = ["the cat", "", "  \n\t", "cat " * 40, "mat"]
    inputs = Inputs.from_texts(texts, make(), max_length=10, labels=list("abcde"))
    assert inputs.counts["dropped"] == 2 and inputs.counts["truncated"] == 1
    assert inputs.labels.tolist() == ["a", "d", "e"]
    assert inputs.texts == ("the cat", texts[3], "mat")
    assert inputs.ids.shape[1] == 10


def test_a_text_of_special_tokens_only_is_dropped():
    assert Inputs.from_texts(["</s><s>", "a"], with_ends()).counts["dropped"] == 1


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["a", 3], {}, r"texts\[1\] is int"),
        (["a", None], {}, r"texts\[1\] is NoneType"),
        ("one text", {}, "got one string"),
        ([], {}, "no text is left: none of 0"),
        (["", " "], {}, "no text is left: none of 2"),
        (
            ["a"],
            {"max_length": 2},
            "max_length must exceed the 2 special tokens.*got 2",
        ),
        (["a"], {"padding_side": "top"}, "padding_side must be one of 'right', 'left'"),
        (["a"], {"labels": [1, 2]}, "labels has 2 entries for 1 texts"),
    ],
)
def test_bad_texts_are_refused_with_what_came(texts, options, message):
    with pytest.raises(ArgumentError, match=message):
        Inputs.from_texts(texts, with_ends(), **options)


def test_a_tokenizer_of_another_kind_is_refused():
    with pytest.raises(ArgumentError, match="Hugging Face tokenizer; got str"):
        Inputs.from_texts(["a"], "bert-base-uncased")


def test_settings_of_the_tokenizer_do_not_matter():
    plain, changed = with_ends(), with_ends()
    changed.padding_side = "left"
    changed.backend_tokenizer.enable_padding(length=64)
    changed.backend_tokenizer.enable_truncation(3)
    one, other = (Inputs.from_texts(TEXTS, t, max_length=32) for t in (plain, changed))
    assert one.fingerprint == other.fingerprint


def test_real_text_round_trips():
    path = DATA / "rt-polarity" / "rt-polarity.pos"
    if not path.exists():
        pytest.skip(f"no {path.name} in {DATA}; set ONTOGENY_DATA")
    texts = path.read_text(encoding="utf-8").splitlines()[:300]
    inputs = Inputs.from_texts(texts, with_ends(), max_length=64)
    sample = inputs.sample("all", 2000)
    pairs = zip(inputs.tokens_of(sample), sample.text.tolist(), strict=True)
    assert all(word and word in inputs.texts[text] for word, text in pairs)
    assert np.all(inputs.special[~inputs.mask])


def test_what_is_said_of_texts_counts_what_is_cut_off():
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    long = " ".join(["cat"] * 90)
    few = Inputs.from_texts(
        ["a cat", long], tokenizer, max_length=16, form="one a line"
    )
    assert few.sentence.startswith("2 texts, one a line, ") and few.sentence.endswith(
        "1 cut at 16"
    )
    assert few.cut_tokens + int(few.ordinary.sum()) == len(
        [i for t in few.texts for i in tokenizer(t, add_special_tokens=False).input_ids]
    )
    assert len(few.warnings) == 2 and "only 2 texts" in few.warnings[0]
    assert "--max-length" in few.warnings[1]
    # Texts of one line are not told to be lines.
    assert "inputs.unit" not in few.warnings[1]
    lines = Inputs.from_texts(
        ["a cat", long.replace(" ", "\n")], tokenizer, max_length=16
    )
    assert "--set inputs.unit=line" in lines.warnings[1]
    many = Inputs.from_texts([f"cat {n}" for n in range(25)], tokenizer)
    assert many.warnings == [] and repr(many).startswith("Inputs(25 texts")


def test_a_begin_that_stands_twice_is_said():
    texts = Inputs.from_tokens(
        [[1, 1, 5], [1, 5, 5], [1, 2, 5]] * 8, special_ids=[1, 2]
    )
    assert [line[:40] for line in texts.warnings] == [
        "8 texts begin with the same special toke"
    ]
    assert Inputs.from_tokens([[5, 5, 6]] * 20).warnings == []


@pytest.mark.parametrize(
    ("texts", "corpus", "unit", "spelled"),
    [
        (["جلست القطة"], ["the cat"], "token", True),  # two bytes a letter
        (["naïve"], ["the cat"], "token", True),
        (["naive"], ["the cat"], "character", True),
        (["नमस्ते दुनिया"], ["नमस्ते दुनिया"] * 9, "token", False),  # its vowels are marks
    ],
)
def test_bytes_are_no_characters_and_pieces_between_marks_no_words(
    texts, corpus, unit, spelled
):
    size = 400 if len(corpus) > 1 else 261
    inputs = Inputs.from_texts(texts, train_tokenizer(corpus, vocab_size=size))
    assert (inputs.token_unit, inputs.is_spelled) == (unit, spelled)
