"""All bold sentences, tiles and headings of groups lead to their evidence, and every step is set."""

import pytest
import xarray as xr

import ontogeny as og
from helpers import ability_nodes, compared_runs, example_texts
from helpers import concept_trees as made
from helpers import report_examples as examples
from helpers.report_browser import browser, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser


def compared():
    runs = {f"seed {i}": compared_runs.run(20, i, controls=True) for i in range(2)}
    return og.compare(runs)


def able():
    tree = examples.controlled_tree()
    halves = {"rises": [0.5, 0.5, 1, 1], "falls": [1, 1, 0.5, 0.5], "chance": [0.5] * 4}
    pairs = ability_nodes.with_texts(ability_nodes.node(halves))
    steps = tree["loss"].step.values[[0, 1, 2, -1]]
    tree["minimal-pairs"] = xr.DataTree(pairs.assign_coords(step=steps))
    return tree


PAGES = {
    "controlled": examples.controlled_tree,
    "not learned": lambda: examples.controlled_tree(learned=False),
    "still": examples.still_tree,
    "concepts": made.learned,
    "texts": example_texts.tree,
    "compared": compared,
    "able": able,
}
BOLD = ("#first-heading", ".three b", ".numbers dd")
STEPS = (
    "#life .life-wide .loss > .hit",
    "svg.chart-wide .row .on-log path",
    "#cloze thead button",
)


@pytest.fixture(scope="module", params=PAGES)
def page(request, visit):
    """Each page is opened once for the tests below: the last leads away from where it opens."""
    there = len(visit.opened)
    yield visit(request.param, PAGES[request.param], width=1280, height=900)
    visit.close(there)


def test_no_bold_sentence_tile_or_heading_is_without_its_evidence(page):
    for selector in BOLD:
        parts = page.locator(selector)
        if selector == ".three b" and not page.locator(".three").count():
            continue  # the heading says all
        assert parts.count()
        assert page.locator(f"{selector}:has(a)").count() == parts.count(), selector
    headings = page.locator("svg.chart-wide .group").count()
    assert page.locator("svg.chart-wide a > .group").count() == headings


def test_a_click_on_a_step_sets_it_wherever_it_is_drawn(page):
    for selector in STEPS:
        part = page.locator(selector).locator("visible=true").first
        if not part.count():
            continue
        page.focus("#slider")
        page.keyboard.press("End")
        last = page.inner_text("#now-step")
        part.scroll_into_view_if_needed()
        box = part.bounding_box()
        page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)
        assert page.inner_text("#now-step") != last, selector


def test_each_of_them_opens_what_it_names(page):
    chosen = ", ".join(f"{selector} a" for selector in BOLD)
    links = page.locator(f"{chosen}, svg.chart-wide a:has(> .group), .sentences a")
    hrefs = links.evaluate_all("(all) => all.map((a) => a.getAttribute('href'))")
    places = {href: hrefs.index(href) for href in hrefs}
    assert places
    for place, i in places.items():
        page.evaluate("scrollTo(0, 0)")
        link = links.nth(i)
        if not link.is_visible():  # in a fold
            link.evaluate("(e) => { e.closest('details').open = true; }")
        link.click()
        page.wait_for_selector(f"[id='{place[1:]}'].linked")
        assert page.locator(f"[id='{place[1:]}']").is_visible(), place
