"""A click on a step sets it wherever it is drawn; names in the chart lead to their evidence."""

import pytest

from helpers import concept_trees as made
from helpers import example_texts
from helpers import report_examples as examples
from helpers.report_browser import browser, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser


def now(page):
    return page.inner_text("#now-step").replace(",", "")


def click_first_step(page, box):
    """Click at the left end of a box, where the first step lies."""
    page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)


@pytest.fixture(scope="module")
def learned(visit):
    return visit("learned", made.learned, width=1280, height=900)


@pytest.mark.parametrize(
    "selector",
    [
        "#life .life-wide .loss > .hit",
        "#life .life-wide .on-log .shade",
        "svg.chart-wide .row .on-log path",
    ],
)
def test_a_click_on_a_step_sets_it_and_leads_nowhere(learned, selector):
    page = learned
    page.focus("#slider")
    page.keyboard.press("End")
    last = now(page)
    part = page.locator(selector).first
    part.scroll_into_view_if_needed()
    place = page.url.split("?")[0]
    box = part.bounding_box()
    click_first_step(page, box)
    assert now(page) != last
    assert page.url.split("?")[0] == place and page.locator(".linked").count() == 0


def test_a_click_in_the_course_of_a_token_sets_the_step(visit):
    page = visit("texts", example_texts.tree, width=1280, height=900)
    page.click("#example-text summary")
    page.focus("#slider")
    page.keyboard.press("End")
    course = page.locator(".example-curve")
    course.scroll_into_view_if_needed()
    box = course.bounding_box()
    last = now(page)
    page.mouse.click(box["x"] + 3, box["y"] + 10)
    assert now(page) != last


def test_the_heading_of_a_step_in_the_table_of_gaps_sets_it(learned):
    page = learned
    page.focus("#slider")
    page.keyboard.press("End")
    heads = page.locator("#cloze thead button")
    heads.first.click()
    assert now(page) == "0"
    heads.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert now(page) not in ("0", "512")
    stops = "[...document.querySelectorAll('#cloze button')].filter((b) => b.tabIndex === 0).length"
    assert page.evaluate(stops) == 1


def test_a_name_on_a_life_line_leads_to_its_card(learned):
    page = learned
    page.evaluate("scrollTo(0, 0)")
    line = page.locator("#life .life-wide a[data-line]:has(.name)").first
    card = page.locator(f"[id='{line.get_attribute('href')[1:]}']")
    line.locator(".name").click()
    page.wait_for_selector(".card.linked")
    assert card.evaluate("(each) => each.matches('.card.linked')")


def test_folded_rows_open_where_they_are_named(visit):
    page = visit("controlled", examples.controlled_tree, width=1280, height=900)
    assert not page.is_visible(".table-fold table")
    folded = page.locator("svg.chart-wide a[data-folded]").first
    places = folded.get_attribute("data-folded").split()
    folded.click()
    assert page.is_visible(".table-fold table") and len(places) > 2
    marked = page.evaluate(
        "[...document.querySelectorAll('tr.linked')].map((row) => row.id)"
    )
    assert sorted(marked) == sorted(places)


def test_headings_of_the_chart_lead_to_the_section_of_their_first_row(visit):
    page = visit("controlled", examples.controlled_tree, width=1280, height=900)
    heading = page.locator("svg.chart-wide a:has(> .group)").first
    section = heading.get_attribute("href")[1:]
    assert page.locator(".linked").count() == 0
    heading.click()
    page.wait_for_selector(".linked")
    assert page.locator(f"[id='{section}']").evaluate("(e) => e.matches('.linked')")


def test_each_bold_sentence_and_tile_shows_its_evidence(visit):
    page = visit("controlled", examples.controlled_tree, width=1280, height=900)
    links = page.locator("#first .three a, #first .numbers a").all()
    assert len(links) > 3
    for link in links:
        place = link.get_attribute("href")[1:]
        page.evaluate("scrollTo(0, 0)")
        link.click()
        page.wait_for_selector(f"[id='{place}'].linked")
        assert page.locator(f"[id='{place}']").is_visible()
