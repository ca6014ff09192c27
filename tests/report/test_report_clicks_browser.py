"""Of the things that a person clicks on a page, each leads to its evidence or does what it says."""

import pytest

from helpers import report_clicks as clicks
from helpers.large_runs import large_tree
from helpers.report_browser import browser, draw_all, quiet, visit
from helpers.report_examples import STEPS

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

MOST_ABSENT = 3  # of the list, on the page of a run with every kind of section


@pytest.fixture(scope="module")
def page(visit):
    page = visit("every kind", lambda: large_tree(3, STEPS), width=1280, height=900)
    draw_all(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    return page


def test_what_is_clicked_leads_to_its_evidence_or_does_what_it_says(page):
    there = {
        name: of for name, of in clicks.CLICKS.items() if page.locator(of[0]).count()
    }
    assert len(there) >= len(clicks.CLICKS) - MOST_ABSENT >= 35
    for name, (selector, wanted) in there.items():
        changed = clicks.click(page, selector, wanted)
        assert wanted in changed, (name, changed)
