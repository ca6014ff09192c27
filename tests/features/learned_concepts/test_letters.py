"""Words of texts in other scripts: what byte tokens, marks and scripts without spaces make of them."""

import pytest

import ontogeny as og
from ontogeny.features.learned_concepts.places import Places
from ontogeny.inputs.pieces import pieces_of
from ontogeny.tasks import train_tokenizer

ENGLISH = ["the cat sat on the mat and ran"] * 8


def read(text, corpus=ENGLISH, vocab_size=300):
    """Return the words of a text, and how many of its tokens each rule about a word holds at."""
    tokenizer = train_tokenizer(corpus, vocab_size=vocab_size)
    inputs = og.Inputs.from_texts([text], tokenizer, max_length=200)
    places = Places(inputs, inputs.sample(), pieces_of(tokenizer))
    held = {rule.label: int(rule.holds.sum()) for rule in places.rules()}
    return [places.names[number] for number in places._words[0] if number], held


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("café naïve", ["café", "naïve"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("한국어 문장은", ["한국어", "문장은"]),
        ("日本語。", ["日", "本", "語", "。"]),
        ("سلام، دنیا؟", ["سلام", "،", "دنیا", "؟"]),
        ("ดี", ["ดี"]),
        ("🎉 party", ["🎉", "party"]),
    ],
)
def test_characters_of_several_tokens_are_letters_and_no_digits(text, words):
    found, held = read(text)
    assert found == words
    assert held["word with a digit"] == 0


@pytest.mark.parametrize("text", ["नमस्ते दुनिया कैसे हैं", "สวัสดี", "re\u0301sume\u0301 ok"])
def test_a_mark_on_a_letter_is_neither_punctuation_nor_the_end_of_a_word(text):
    found, held = read(text, [text] * 8, vocab_size=290)
    assert held["word of punctuation"] == 0
    assert "".join(found) == text.replace(" ", "")
    spaced, _ = read("résumé नमस्ते", ["résumé नमस्ते"] * 8, vocab_size=400)
    assert spaced == ["résumé", "नमस्ते"]


def test_a_picture_is_no_punctuation():
    _, held = read("🎉 party 🔥 now.")
    assert held["word with a picture"] > 0 and held["word of punctuation"] == 1


def test_a_character_that_the_end_of_a_text_cuts_is_no_digit():
    tokenizer = train_tokenizer(ENGLISH, vocab_size=300)
    ids = tokenizer("a é", add_special_tokens=False).input_ids[:-1]
    inputs = og.Inputs.from_tokens([ids])
    places = Places(inputs, inputs.sample(), pieces_of(tokenizer))
    held = {rule.label: rule.holds.any() for rule in places.rules()}
    assert not held["word with a digit"]


@pytest.mark.parametrize("quoted", ["„go“", "«go»", "»go«", "「go」", "“go”"])
def test_both_marks_of_a_pair_count_whichever_opens(quoted):
    _, alone = read("the cat sat on the mat")
    _, held = read(f"{quoted} the cat sat on the mat")
    assert alone["inside quotation marks"] == 0
    assert 0 < held["inside quotation marks"] <= 6
