"""The guide on the showcase says what the stored results of its runs say."""

import importlib.util
import json
import re

from helpers.paths import GUIDES, ROOT
from ontogeny.tasks import split_texts

GUIDE = (GUIDES / "showcase.md").read_text("utf-8")
STORED = (ROOT / "docs" / "evidence" / "showcase.json").read_text("utf-8")


def script():
    path = ROOT / "examples" / "showcase.py"
    spec = importlib.util.spec_from_file_location("showcase", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(text):
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.replace("−", "-"))
    return set(re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)", plain))


def prose():
    """The guide without its code, pictures, links and the names of papers."""
    text = re.sub(r"```.*?```", "", GUIDE, flags=re.S)
    text = re.sub(r"!\[.*?\]\(.*?\)|\(.*?\.(?:md|json|py)\S*\)|`[^`]*`", "", text)
    return re.sub(r"WikiText-2|\b20\d\d\b|95 %", "", text)


def test_numbers_in_the_guide_are_those_that_were_stored():
    said = {number.lstrip("-") for number in numbers(prose())}
    known = {number.lstrip("-") for number in numbers(STORED)}
    known |= {number.partition(".")[0] for number in known}
    assert len(said) > 30
    assert sorted(said - known, key=float) == []


def test_every_run_is_stored_with_its_size_and_what_was_said_of_it():
    found, made = json.loads(STORED), script()
    assert set(found) == set(made.SIZES)
    for name, one in found.items():
        sizes = made.SIZES[name]
        assert one["run"]["steps"] == sizes["steps"]
        assert one["run"]["recorded"] >= 48
        assert one["loss"]["last"] < one["loss"]["unigram"]
        assert any(one["sentences"].values())


def test_words_that_the_guide_quotes_as_concepts_were_named():
    names = {
        each["name"] for one in json.loads(STORED).values() for each in one["named"]
    }
    quoted = re.findall(r"concept `([^`]+)`", GUIDE)
    assert quoted and not [
        each for each in quoted if not any(each in name for name in names)
    ]


def test_marks_of_wikitext_are_no_words(tmp_path):
    text = tmp_path / "wiki.txt"
    text.write_text(" = Fish = \n \n The <unk> has 1 @,@ 200 well @-@ known teeth .\n")
    assert script().texts_of(str(text)) == ["The <|unk|> has 1,200 well-known teeth ."]


def test_without_a_text_the_runs_learn_the_documentation_of_python():
    kept, heldout = split_texts(script().texts_of(None))
    assert len(kept) > len(heldout) > 100
