"""The first screen beside what somebody expected of the run."""

from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny.claims.expectations import parse
from ontogeny.report.page.html import render_page
from ontogeny.words.catalogue.page import PAGE
from ontogeny.words.content import read_content

NOT_SO, SO = PAGE["unexpected"], PAGE["expected"]


def words(lines):
    content = read_content(examples.controlled_tree())
    expected = parse(lines) if lines else ()
    return Page(render_page(content, expected=expected)).words


def test_what_is_not_so_stands_on_the_first_screen():
    told = words("learned loss\nno learned loss\nlearned loss below 0.001")
    after = " ".join(told.partition(NOT_SO)[2].split())
    assert after.startswith(
        "no learned loss: it is sure learned loss below 0.001: it is 5.02"
    )
    assert SO not in told


def test_a_run_as_expected_says_so_in_one_line():
    told = words("learned loss")
    assert SO in told and NOT_SO not in told


def test_without_expectations_nothing_is_said_of_them():
    told = words("")
    assert SO not in told and NOT_SO not in told
