"""English minimal pairs stand in presets where a model reads English, and else it is said why."""

import dataclasses

import pytest
from tokenizers import Regex
from tokenizers.normalizers import Replace

from ontogeny.observables import ModelFacts
from ontogeny.start.examples import no_english
from ontogeny.start.presets import fitted, preset_named
from ontogeny.tasks import train_tokenizer

ENGLISH = (
    "the old farmer walked to the river with his brown dog because she wanted some fresh water and "
    "the little children were playing with their red ball behind the house until the evening"
)
GERMAN = "Der alte Bauer ging mit seinem braunen Hund zum Fluss, und die Kinder spielten im Garten"
FACTS = ModelFacts(
    "M",
    "GPT-2",
    1,
    ("layers[0].mlp",),
    "mlp",
    8,
    "causal",
    True,
    "",
    "",
    ("attn",),
    True,
    64,
)


@pytest.fixture(scope="module")
def english():
    return train_tokenizer([ENGLISH] * 4, vocab_size=400)


def test_english_is_known_by_pieces_of_words_and_by_texts(english):
    assert no_english(english, []) == "" == no_english(english, [ENGLISH])
    assert "common English ones" in no_english(english, [GERMAN])
    assert "cuts an English word" in no_english(train_tokenizer([GERMAN] * 4, 300), [])
    letters = train_tokenizer([ENGLISH], vocab_size=261)
    assert "cuts an English word into 5.5" in no_english(letters, [ENGLISH])


def test_a_tokenizer_that_reads_nothing_of_english_is_told_once():
    digits = train_tokenizer(["1 2 3"], vocab_size=261)
    digits.backend_tokenizer.normalizer = Replace(Regex("[^0-9]"), "")
    assert no_english(digits, []) == "its tokenizer does not read English words"


def kinds_of(preset, **facts):
    tables, left_out = fitted(
        preset_named(preset), dataclasses.replace(FACTS, **facts), 4
    )
    return {table["kind"] for table in tables}, left_out


@pytest.mark.parametrize(
    "preset", ["quick", "standard", "fine-tuning", "one-model", "everything"]
)
def test_pairs_stand_in_the_presets_of_english_models(preset):
    assert "minimal-pairs" in kinds_of(preset)[0]
    for facts in (
        {"no_english": "why"},
        {"no_tokenizer": "why"},
        {"no_prediction": "why"},
    ):
        kinds, left_out = kinds_of(preset, **facts)
        assert "minimal-pairs" not in kinds and left_out["minimal-pairs"] == "why"


def test_a_masked_model_is_asked_by_the_presets_that_take_their_time():
    assert "minimal-pairs" in kinds_of("everything", objective="masked")[0]
    kinds, left_out = kinds_of("quick", objective="masked")
    assert (
        "minimal-pairs" not in kinds
        and "a pass for each token" in left_out["minimal-pairs"]
    )
