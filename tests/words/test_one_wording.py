"""One claim has the same words in its section, on the first screen, in notebook and comparison."""

import json
import re

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import compared_runs
from helpers import report_examples as examples
from helpers.concept_trees import learned
from helpers.report_page import Page
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.report.figures.frames import chart_frame, row_frame
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content
from ontogeny.words.headings import Headings
from ontogeny.words.row_words import standing_of, state_words
from ontogeny.words.runs import sentences_of_runs
from ontogeny.words.sections import section_sentences
from ontogeny.words.sentences import OF_ROWS, strongest

TREES = {
    "controlled": examples.controlled_tree,
    "not learned": lambda: examples.controlled_tree(learned=False),
    "still": examples.still_tree,
    "concepts": learned,
    "run": lambda: compared_runs.run(20, 0, controls=True),
    "few": lambda: compared_runs.run(20, 0, steps=(0, 16, 256)),
    "no controls": lambda: compared_runs.run(20, 0),
}


def printed(content, screen):
    """All words of the first screen as it is drawn on paper, in their order."""
    from matplotlib.text import Text

    from ontogeny.report.paper.first_screen import draw_first_screen
    from ontogeny.report.paper.frame import style

    with style():
        figure = draw_first_screen(content, screen)
    return " ".join(" ".join(text.get_text() for text in figure.findobj(Text)).split())


def of_sections(content):
    return [one for node in content.nodes for one in section_sentences(content, node)]


def of_loss(content):
    """The sentence of the section on the row of the loss."""
    path = content.track_node.path
    kinds = (Kind.LEARNED, Kind.FORGOT, Kind.BEYOND_MOTION, Kind.CHANGED)
    said = section_sentences(content, content.track_node)
    of_row = [one for one in said if one.claims and one.claims[0].kind in kinds]
    assert {one.claims[0].subject.node for one in of_row} == {path}
    return of_row[0]


@pytest.mark.parametrize("name", TREES)
def test_page_first_screen_and_notebook_say_the_same_of_the_loss(name):
    tree = TREES[name]()
    content = read_content(tree)
    text = of_loss(content).text
    screen = first_screen(content)
    page = " ".join(" ".join(Page(render_page(content)).text).split())
    summary = " ".join(str(ResultSummary(tree)).split())
    told = [f"{line.lead} {line.text}".strip() for line in screen.sentences]
    assert text in page
    if Headings(content).heading.tells(of_loss(content)):
        # What the heading says is said no second time; no number is lost.
        said = " ".join([screen.heading, *told])
        numbers = re.findall(r"[\d.,]*\d", text)
        assert text not in told and all(number in said for number in numbers)
        return
    learned = [
        c for c in content.claims if c.kind is Kind.LEARNED and c.subject.node == "loss"
    ]
    texts = [text]
    if [claim for claim in learned if claim.reason]:
        texts.append(
            f"Whether {content.names.title(learned[0])} improved by learning is "
        )
    assert any(text in one for text in texts for one in told), (texts, told)
    assert any(text in summary for text in texts)


@pytest.mark.parametrize("name", TREES)
def test_first_screen_and_sections_say_no_claim_in_two_ways(name):
    content = read_content(TREES[name]())
    screen = first_screen(content)
    of_page = {}
    for one in of_sections(content):
        for claim in one.claims:
            of_page.setdefault(claim.subject, set()).add(one.text)
    for line in screen.sentences:
        for sentence in re.split(
            r"(?<=[.])\s+(?=[A-Z“])", f"{line.lead} {line.text}".strip()
        ):
            starts = {text[:24] for texts in of_page.values() for text in texts}
            if sentence[:24] in starts:
                every = [text for texts in of_page.values() for text in texts]
                assert any(sentence in text for text in every), sentence


@pytest.mark.parametrize("name", ["controlled", "few", "concepts"])
def test_paper_says_what_the_first_screen_says(name):
    content = read_content(TREES[name]())
    screen = first_screen(content)
    words = printed(content, screen)
    told = [f"{line.lead} {line.text}" for line in screen.sentences]
    told += [screen.heading, *(each.words for each in screen.numbers)]
    for text in told:
        assert " ".join(text.split()) in words, text


@pytest.mark.parametrize("name", TREES)
def test_tables_of_page_and_files_say_of_a_row_what_is_claimed_of_it(name):
    content = read_content(TREES[name]())
    claimed = {}
    for claim in content.claims:
        if claim.kind in OF_ROWS and not claim.subject.run:
            subject = claim.subject
            key = (subject.node, subject.quantity, subject.layer, subject.label)
            claimed.setdefault(key, {})[claim.kind] = claim
    rows = [(node.path, row) for node in content.nodes for row in node.rows]
    of_rows = 0
    for path, row in rows:
        stands = standing_of(row)
        labels = ("", row.quantity, row.label)
        keys = [(path, row.variable, row.layer, label) for label in labels]
        found = next((claimed[key] for key in keys if key in claimed), None)
        if stands is None or found is None:
            continue
        claim = strongest(found)
        of_rows += 1
        assert (stands.kind, stands.certainty) == (claim.kind, claim.certainty)
        assert state_words(row).startswith(stands.words())
    assert of_rows
    every = [row for _, row in rows]
    page = " ".join(" ".join(Page(render_page(content)).text).split())
    states = [state_words(row) for row in every]
    assert all(state in page for state in states)
    assert row_frame(every)["verdict"].tolist() == states
    cells = chart_frame(every, "cells")
    assert {*cells["verdict"]} == {*states}


@pytest.mark.parametrize("name", ["run", "few", "no controls"])
def test_a_comparison_of_a_run_with_its_twin_says_what_the_run_says(name):
    options = {
        "run": {"controls": True},
        "few": {"steps": (0, 16, 256)},
        "no controls": {},
    }[name]
    runs = {f"seed {i}": compared_runs.run(20, i, **options) for i in range(2)}
    tree = og.compare(runs, allow=["checkpoints"])
    content = read_content(tree)
    joined = [one.text for one in sentences_of_runs(content, "loss")]
    alone = of_loss(read_content(runs["seed 0"])).text

    def frame(text):
        """A sentence without numbers, signs between them and where it holds."""
        text = text.replace(" in 2 of 2 runs", "")
        return " ".join(
            re.sub(r"[−+]?\d[\d.,]*|\([^)]*\)|–| to ", " ", text).split()
        ).strip()

    assert frame(alone).rstrip(" .") in {frame(text).rstrip(" .") for text in joined}
    assert set(joined) <= set(og.comparison.summary_lines(tree)), (
        "the terminal says the same"
    )


@pytest.mark.parametrize("name", TREES)
def test_headings_of_pages_have_at_most_twelve_words(name):
    tree = TREES[name]()
    heading = first_screen(read_content(tree)).heading
    assert 0 < len(re.findall(r"[^\s\d]*[a-z][^\s\d]*", heading)) <= 12, heading
    assert ResultSummary(tree).heading == heading


@pytest.mark.parametrize("name", TREES)
def test_no_heading_or_lead_tells_a_zero(name):
    screen = first_screen(read_content(TREES[name]()))
    for text in (screen.heading, *(line.lead for line in screen.sentences)):
        assert not re.match(r"0 of |No .* (was|were) found", text), text


def test_every_sure_claim_of_a_section_is_told_in_it():
    """Of several claims that no sentence joins only the first was told."""
    tree = TREES["concepts"]()
    content = read_content(tree)
    told = {claim for one in of_sections(content) for claim in one.claims}
    subjects = {(claim.kind, claim.subject) for claim in told}
    rows = {claim.subject for claim in told}
    for claim in content.claims:
        if claim.certainty is Certainty.SURE and claim.kind is not Kind.DAMAGED:
            is_told = (claim.kind, claim.subject) in subjects or claim.subject in rows
            assert is_told or claim.value == 0, claim


def test_claims_that_no_sentence_joins_are_told_each():
    labels = ["first finding", "second finding", "third finding"]
    stands = [
        (Kind.REPRODUCES, Certainty.SURE, ""),
        (Kind.CONTRADICTS, Certainty.SURE, ""),
        (Kind.REPRODUCES, Certainty.OPEN, Reason.WITHIN_NOISE),
    ]
    names = ("kind", "certainty", "reason")
    columns = [
        np.array(list(map(str, each)), dtype=object)
        for each in zip(*stands, strict=True)
    ]
    typed = {n: ("claim", each) for n, each in zip(names, columns, strict=True)}
    papers = xr.Dataset(
        {**typed, "of_paper": ("claim", [True] * 3)},
        {"claim": labels, "step": [0]},
        {
            "role": "claims",
            "section": json.dumps({"title": "Claims", "definition": "."}),
            "figures": "[]",
            "statements": "[]",
        },
    )
    content = read_content(xr.DataTree.from_dict({"paper": papers}))
    texts = [one.text for one in of_sections(content)]
    assert sorted(texts) == [
        "“first finding” reproduces.",
        "“second finding” does not reproduce.",
        "“third finding” is not shown: noise gives as much.",
    ]


def test_an_early_result_whose_rows_lack_numbers_opens_without_claims_on_them():
    """Its claims ended the page: "first must be a number in a sure claim"."""
    tree = examples.developing_tree()
    for name, child in tree.children.items():
        data = child.to_dataset()
        lacking = [each for each in ("first_value", "last_value") if each in data]
        tree[name].dataset = data.drop_vars(lacking)
    content = read_content(tree)
    assert not [
        c
        for c in content.claims
        if c.kind in (Kind.CHANGED, Kind.LEARNED) and not c.reason
    ]
    assert ResultSummary(tree).heading
