"""Life lines: names are whole, on as many lines as they need, and say how a concept ends."""

import math
import re
from dataclasses import replace
from html import unescape

import pytest

from helpers import concept_trees as made
from ontogeny.report.chart.canvas import NARROW, WIDE
from ontogeny.report.concepts.lives import marks_words
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.life import life_picture
from ontogeny.words.catalogue import concepts as say
from ontogeny.words.content import read_content

LONG = "after “is · was · be · had”, or a word with a capital"


@pytest.fixture(scope="module")
def content():
    return read_content(made.learned())


def named(first, **fields):
    """The first screen with all its concepts so changed."""
    every = tuple(replace(concept, **fields) for concept in first.concepts.every)
    return replace(first, concepts=replace(first.concepts, every=every))


def lines_of(drawing):
    """The words of each life line: its name, and what stands beside it."""
    for line in re.findall(r"(?s)<a [^>]*data-line.*?</a>", drawing):
        texts = re.findall(r'(?s)<text class="([^"]*)"[^>]*>(.*?)</text>', line)
        name = [words for style, words in texts if "name" in style.split()]
        beside = [words for style, words in texts if "name" not in style.split()]
        yield unescape(" ".join(name)), unescape(" ".join(beside))


@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=["wide", "phone"])
def test_long_names_are_whole_and_births_keep_their_brackets(content, layout):
    first = named(first_screen(content), name=LONG)
    picture = life_picture(content, first, [WIDE, NARROW])
    lines = list(lines_of(picture.drawings[[WIDE, NARROW].index(layout)]))
    assert len(lines) == len(first.concepts.lines) > 2
    for (name, beside), concept in zip(lines, first.concepts.lines, strict=True):
        assert name.startswith(f"{LONG} · {concept.depth}")
        assert beside == concept.life


def test_what_grew_and_waned_again_does_not_read_as_finished(content):
    concept = first_screen(content).concepts.every[0]
    grown = {"born": math.nan, "kind": say.GROWING, "readable_at_end": True}
    waned = replace(concept, end=0.57, **grown)
    whole = replace(concept, end=0.97, **grown)
    assert (waned.life, whole.life) == ("grew, ends at 57 %", "grows")
    assert replace(whole, readable_at_end=False).life == say.NOT_AT_END
    assert marks_words([whole]) == say.GROWS[False] != marks_words([whole, waned])
    first = replace(waned, kind="from the start")
    assert first.life == "from the start, ends at 57 %"
