"""Each finding that makes the values of a step meaningless is told on the first screen."""

import ast
from pathlib import Path

import pytest

import ontogeny
from ontogeny.words.catalogue.sentences import DAMAGES
from ontogeny.words.page_claims import claims_of
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

# What is certain and leaves the values of each step what they are, or leaves the step out.
HARMLESS = {
    "ambiguous",
    "configuration",
    "duplicate-dropped",
    "frozen",
    "incomplete",
    "missing",
    "mixed",
    "one-run",
    "temporary",
    "tokenizer",
    "unnumbered",
    "unreadable",
}


def certain_kinds():
    """The kinds that an audit writes as certain, by its source."""
    kinds = set()
    for path in (Path(ontogeny.__file__).parent / "trajectory").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Finding":
                values = [getattr(value, "value", None) for value in call.args[:2]]
                if values[1:] == ["certain"]:
                    kinds.add(values[0])
    return kinds


def test_a_kind_that_the_audit_proves_is_told_or_known_as_harmless():
    assert certain_kinds() - HARMLESS == set(DAMAGES)


@pytest.mark.parametrize("kind", DAMAGES)
def test_proven_damage_is_told_in_words_with_its_step(kind):
    finding = {"kind": kind, "certainty": "certain", "steps": [40], "message": "."}
    [claim] = claims_of({}, {}, [finding])
    text = said([claim], Voice(), Names()).text
    assert (
        text == f"The checkpoint of step 40 is damaged: {Voice().fill(DAMAGES[kind])}."
    )
