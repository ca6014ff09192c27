"""What a run writes in a browser: the slider moves it."""

import pytest

from helpers import concept_trees as made
from helpers.report_browser import browser, quiet, visit
from helpers.written_texts import tree

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser


def test_the_slider_shows_what_is_written_at_its_step(visit):
    page = visit("written", tree, width=1280, height=900)
    words = [" The", " cat", " sat", " mat"]
    page.focus("#slider")
    page.keyboard.press("Home")
    for number, step in enumerate(made.STEPS):
        assert page.text_content(".written-step") == f"{step:,}"
        shown = page.locator(".written .now").all_text_contents()
        assert shown == 2 * [3 * words[number % 4], "<b>& The"]
        page.keyboard.press("ArrowRight")
