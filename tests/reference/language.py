"""A small language with agreement: texts, a tokenizer of its words, pairs and questions."""

import json

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

SPECIAL = ("[UNK]", "[PAD]", "[BOS]", "[EOS]", "[MASK]")
NOUNS = ("dog", "cat", "bird", "farmer", "child", "horse")
VERBS = ("see", "like", "chase", "hear")
SMALL = ("the", "a", "some", "old", "red", "and", "near", ".")
WORDS = (
    *SMALL,
    *NOUNS,
    *(f"{noun}s" for noun in NOUNS),
    *VERBS,
    *(f"{verb}s" for verb in VERBS),
)
N_TEXTS = 24


def texts():
    """Return texts of 6 to 20 words, of which one repeats."""
    rng = np.random.default_rng(5)
    some = [" ".join(_words(rng, int(rng.integers(6, 21)))) for _ in range(N_TEXTS - 1)]
    return [*some[:9], some[2], *some[9:]]


def _words(rng, count):
    words = []
    while len(words) < count:
        plural = bool(rng.integers(2))
        words += _nouns(rng, plural)
        words.append(str(rng.choice(VERBS)) + "s" * (not plural))
        words += [
            *_nouns(rng, bool(rng.integers(2))),
            str(rng.choice([".", "and", "near"])),
        ]
    return words[:count]


def _nouns(rng, plural):
    first = str(rng.choice(["the", "some"] if plural else ["the", "a"]))
    adjective = [str(rng.choice(["old", "red"]))] * int(rng.integers(2))
    weights = np.arange(len(NOUNS), 0, -1) / sum(range(len(NOUNS) + 1))
    return [first, *adjective, str(rng.choice(NOUNS, p=weights)) + "s" * plural]


def tokenizer(begins):
    """Return a tokenizer of whole words; with `begins` it puts a token before every text."""
    numbers = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    fast = Tokenizer(WordLevel(numbers, "[UNK]"))
    fast.pre_tokenizer = WhitespaceSplit()
    if begins:
        fast.post_processor = TemplateProcessing(
            "[BOS] $A", special_tokens=[("[BOS]", 2)]
        )
    names = ("unk_token", "pad_token", "bos_token", "eos_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        **dict(zip(names, SPECIAL, strict=True)),
        model_max_length=64,
    )


def pairs():
    """Return right and wrong texts in two groups: of verbs, and of nouns after a word."""
    rows = []
    for number, noun in enumerate(NOUNS):
        verb = VERBS[number % len(VERBS)]
        for right, wrong in (
            (f"{noun} {verb}s", f"{noun} {verb}"),
            (f"{noun}s {verb}", f"{noun}s {verb}s"),
        ):
            rows.append(
                {"right": f"the {right}", "wrong": f"the {wrong}", "group": "verbs"}
            )
        rows.append({"right": f"a {noun}", "wrong": f"a {noun}s", "group": "nouns"})
    return rows


def questions():
    """Return prompts with answers of different lengths, of which one is right."""
    rows = []
    for number, noun in enumerate(NOUNS):
        verb = VERBS[number % len(VERBS)]
        rows.append(
            {
                "prompt": f"the old {noun}",
                "answers": [f"{verb}s the cats", verb, f"{verb} a"],
                "right": number % 3,
                "group": "one",
            }
        )
        rows.append(
            {
                "prompt": f"some {noun}s",
                "answers": [f"{verb}s the", f"{verb} some birds"],
                "right": 1,
                "group": "many",
            }
        )
    return rows


def write(folder):
    """Write texts, one a line, and the files of pairs and of questions."""
    (folder / "texts.txt").write_text("\n".join(texts()) + "\n")
    for name, rows in (("pairs", pairs()), ("questions", questions())):
        lines = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl").write_text(f"{lines}\n")
