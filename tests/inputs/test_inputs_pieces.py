"""How the ids of a vocabulary are written, whatever tokenizer made them."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from ontogeny.errors import ArgumentError
from ontogeny.inputs import Inputs
from ontogeny.inputs.pieces import in_words, pieces_of, pieces_of_texts, shown
from ontogeny.tasks import train_tokenizer

TEXTS = [
    'The cat said "meow", and the dog_2 ran (fast).',
    "Walking, talking and playing: the cats play, the dogs talk.\n\tdef walk(self): pass",
    "Der Mädchenname, שלום עולם, 猫と犬 🐈.",
] * 3
SPECIAL = ["[UNK]", "[PAD]", "<s>"]


def wrapped(tokenizer, **special):
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **special
    )


def trained(model, trainer, pre, decoder, normalizer=None, **special):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    if decoder is not None:
        tokenizer.decoder = decoder
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(TEXTS, trainer)
    return wrapped(
        tokenizer, unk_token="[UNK]", pad_token="[PAD]", bos_token="<s>", **special
    )


def word_piece(decoder=True):
    return trained(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(
            vocab_size=150, special_tokens=SPECIAL, show_progress=False
        ),
        pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece() if decoder else None,
    )


def unigram(decoder=True):
    return trained(
        models.Unigram(),
        trainers.UnigramTrainer(
            vocab_size=150,
            special_tokens=SPECIAL,
            unk_token="[UNK]",
            show_progress=False,
        ),
        pre_tokenizers.Metaspace(),
        decoders.Metaspace() if decoder else None,
    )


def llama_like():
    """Return BPE with SentencePiece's spaces and bytes for unknown characters."""
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    letters = ["▁", "c", "a", "t", "at", "cat", "▁cat"]
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *bytes_, *letters])}
    merges = [("a", "t"), ("c", "at"), ("▁", "cat")]
    tokenizer = Tokenizer(
        models.BPE(
            vocabulary, merges, byte_fallback=True, unk_token="[UNK]", fuse_unk=True
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return wrapped(tokenizer, unk_token="[UNK]", pad_token="[PAD]", bos_token="<s>")


def ended_words():
    return trained(
        models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
        trainers.BpeTrainer(
            vocab_size=150,
            special_tokens=SPECIAL,
            end_of_word_suffix="</w>",
            show_progress=False,
        ),
        pre_tokenizers.WhitespaceSplit(),
        decoders.BPEDecoder(),
    )


class Slow:
    """A tokenizer written in Python: a vocabulary, and a rule that its tokens follow."""

    def __init__(self, tokens, special=(0,), **others):
        self.tokens, self.all_special_ids = tokens, list(special)
        self.__dict__.update(others)

    def get_vocab(self):
        return {token: i for i, token in enumerate(self.tokens) if token is not None}


def joined(tokenizer, text, pieces=None):
    pieces = pieces_of(tokenizer) if pieces is None else pieces
    return "".join(
        pieces[i] for i in tokenizer(text, add_special_tokens=False).input_ids
    )


def test_byte_level_pieces_join_to_the_text():
    tokenizer = train_tokenizer(TEXTS, vocab_size=400)
    pieces = pieces_of(tokenizer)
    assert len(pieces) == len(tokenizer) and pieces[:2] == ["<|pad|>", "<|mask|>"]
    for text in TEXTS[:2]:
        assert joined(tokenizer, text, pieces) == text
    assert "\n" in pieces and " " in pieces and " the" in pieces
    assert "<0xC3>" in pieces and "Ġthe" not in pieces


@given(st.text(min_size=1))
def test_bytes_that_are_no_character_are_written_so_that_nothing_is_lost(text):
    tokenizer = train_tokenizer_once()
    found = joined(tokenizer, text, PIECES)
    rebuilt = bytearray()
    while found:
        if found.startswith("<0x") and text.find("<0x") < 0:
            rebuilt.append(int(found[3:5], 16))
            found = found[6:]
        else:
            rebuilt += found[0].encode()
            found = found[1:]
    assert rebuilt.decode() == text


def train_tokenizer_once(kept=[]):  # noqa: B006
    if not kept:
        kept.append(train_tokenizer(TEXTS, vocab_size=400))
        PIECES.extend(pieces_of(kept[0]))
    return kept[0]


PIECES = []


@pytest.mark.parametrize("decoder", [True, False])
def test_word_pieces_are_read_as_words_and_their_continuations(decoder):
    tokenizer = word_piece(decoder)
    pieces, ids = pieces_of(tokenizer), tokenizer.get_vocab()
    assert pieces[ids["the"]] == " the" and pieces[ids["[PAD]"]] == "[PAD]"
    ending = next(token for token in ids if token.startswith("##") and len(token) > 3)
    assert pieces[ids[ending]] == ending[2:]
    assert (
        joined(tokenizer, "the cats talk, and the dog", pieces)
        == " the cats talk, and the dog"
    )


@pytest.mark.parametrize("decoder", [True, False])
def test_sentence_pieces_have_real_spaces(decoder):
    tokenizer = unigram(decoder)
    pieces = pieces_of(tokenizer)
    assert not any("▁" in piece for piece in pieces)
    assert joined(tokenizer, "the cats talk, and", pieces) == " the cats talk, and"


def test_bytes_of_sentence_pieces_are_characters_where_they_are_whole():
    tokenizer = llama_like()
    assert joined(tokenizer, "cat cat") == " cat cat"
    assert joined(tokenizer, "cat\n") == " cat\n"
    assert joined(tokenizer, "é") == " <0xC3><0xA9>"


def test_words_that_end_with_a_mark_end_with_a_space():
    tokenizer = ended_words()
    assert joined(tokenizer, "the cat said") == "the cat said "


def test_added_tokens_are_written_as_they_are():
    tokenizer = unigram()
    tokenizer.add_tokens(["▁raw", "<|tool|>"])
    assert pieces_of(tokenizer)[-2:] == ["▁raw", "<|tool|>"]


@pytest.mark.parametrize(
    ("tokenizer", "pieces"),
    [
        (
            Slow(["<s>", "▁the", "re", "<0x0A>", "<0xE2>"]),
            ["<s>", " the", "re", "\n", "<0xE2>"],
        ),
        (Slow(["[CLS]", "the", "##re", ",", "猫"]), ["[CLS]", " the", "re", ",", "猫"]),
        (Slow(["<s>", "the</w>", "re"]), ["<s>", "the ", "re"]),
        (Slow(["<s>", "a", "b"]), ["<s>", "a", "b"]),
        (Slow(["<s>", "cat", "dog"]), ["<s>", " cat", " dog"]),
        (
            Slow(["<s>", None, "Ġa", "Ċ", "é"], byte_decoder={}),
            ["<s>", "1", " a", "\n", "<0xE9>"],
        ),
        (Slow(["<s>", "Ġ猫"], byte_decoder={}), ["<s>", "Ġ猫"]),
    ],
)
def test_slow_tokenizers_are_read_by_the_marks_of_their_vocabulary(tokenizer, pieces):
    assert pieces_of(tokenizer) == pieces


def test_a_vocabulary_of_bytes_shows_no_byte_as_a_character_that_it_is_not():
    tokenizer = ByT5Tokenizer()
    assert joined(tokenizer, "hé\n") == "h<0xC3><0xA9>\n"


def test_what_has_no_vocabulary_is_refused():
    with pytest.raises(
        ArgumentError, match=r"tokenizer must be a Hugging Face tokenizer; got str"
    ):
        pieces_of("gpt2")


def test_pieces_of_texts_are_what_tokens_cover():
    tokenizer = word_piece()
    inputs = Inputs.from_texts(["the cats talk, and the dog", "the the"], tokenizer)
    pieces, ids = pieces_of_texts(inputs), tokenizer.get_vocab()
    assert len(pieces) == len(tokenizer)
    assert pieces[ids["the"]] == " the"  # twice after white space, twice at the start
    assert "".join(pieces[i] for i in inputs.ids[0]) == " the cats talk, and the dog"
    unseen = next(i for i in range(len(pieces)) if i not in inputs.ids)
    assert pieces[unseen] == str(unseen)


def test_tokens_that_share_a_character_show_no_piece():
    tokenizer = train_tokenizer(["the cat"] * 4, vocab_size=300)
    inputs = Inputs.from_texts(["cat 🐈 cat"], tokenizer)
    pieces = pieces_of_texts(inputs)
    assert not any("🐈" in piece for piece in pieces)
    special = inputs.ids[0][inputs.special[0]]
    assert [pieces[i] for i in special] == [str(i) for i in special]
    assert any(piece.strip() == "cat" for piece in pieces)


def test_pieces_of_texts_do_not_depend_on_the_side_of_padding():
    inputs = Inputs.from_texts(["the cats talk", "dog"], word_piece())
    assert pieces_of_texts(inputs) == pieces_of_texts(inputs.padded("left"))
    with pytest.raises(ArgumentError, match="inputs must be of type Inputs"):
        pieces_of_texts(inputs.ids)


@pytest.mark.parametrize(
    ("piece", "name"),
    [
        (",", "comma"),
        (" ,", "comma"),
        ('"', "double quote"),
        ("_", "underscore"),
        ("\n", "new line"),
        (" ", "space"),
        ("  ", "space × 2"),
        ("(", "open parenthesis"),
        ("]", "close square bracket"),
        ("}", "close curly bracket"),
        (".", "full stop"),
        (" the", "the"),
        ("The", "The"),
        ("_init", "_init"),
        ("<s>", "<s>"),
        ("<0xE2>", "<0xE2>"),
        ("'s", "'s"),
        (">>>", "greater-than sign × 3"),
        ('")', "double quote + close parenthesis"),
        ("\u201c", "left double quotation mark"),
        ("\u200b", "zero width space"),
        ("\x07", "U+0007"),
        ("\ue000", "U+E000"),
        ("\n    ", "new line + space × 4"),
        ("", ""),
        ("$%^&*", "$%^&*"),
        ("\u00a0", "no-break space"),
        ("猫", "猫"),
    ],
)
def test_pieces_are_named_in_words(piece, name):
    assert in_words(piece) == name


@pytest.mark.parametrize(
    ("piece", "written"),
    [
        (" the", " the"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("\x00", "␀"),
        ("\x7f", "␡"),
        ("\u200b", "\\u200b"),
        ("\u202e", "\\u202e"),
        ("\ufeff", "\\ufeff"),
        ("\x85", "\\x85"),
        ("\u2028", "\\u2028"),
        ("<script>", "<script>"),
        ("\u0301", "\u25cc\u0301"),
        (" \u0301a", " \u25cc\u0301a"),
        ("\u200d", "\\u200d"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        (" שלום", " \u2068שלום\u2069"),
        ("سلام ", "\u2068سلام\u2069 "),
        ("Mädchen", "Mädchen"),
        ("", ""),
        (" ", " "),
        ("\u2069שלום", "\u2068\\u2069שלום\u2069"),
    ],
)
def test_pieces_are_written_so_that_they_are_seen(piece, written):
    assert shown(piece) == written


@given(st.text())
def test_no_piece_changes_what_stands_around_it(piece):
    written = shown(piece)
    assert written.count("\u2068") == written.count("\u2069") <= 1
    inner = written.replace("\u2068", "").replace("\u2069", "")
    hidden = {
        c for c in inner if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    assert hidden <= {"\u200c", "\u200d"}
    right = [unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in inner]
    assert any(right) == ("\u2068" in written)
    if piece.isascii() and piece.isprintable():
        assert written == piece


def test_ids_beyond_a_vocabulary_without_gaps_are_written_as_digits():
    inputs = Inputs.from_tokens([[5, 2]])
    assert pieces_of_texts(inputs) == [str(i) for i in range(6)]
    assert np.array(pieces_of_texts(inputs)).shape == (6,)
