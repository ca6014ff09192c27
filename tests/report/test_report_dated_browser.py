"""Dated text in a browser: the slider hides what was predicted later, and a token sets the step."""

import pytest

from helpers import concept_trees as made
from helpers import example_texts as examples
from helpers.report_browser import browser, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

TOKENS = """() => [...document.querySelectorAll(".dated-line[role] .d[data-step]")].map((t) => ({
  step: Number(t.dataset.step),
  seen: getComputedStyle(t).color !== "rgba(0, 0, 0, 0)",
}))"""


@pytest.fixture(scope="module")
def page(visit):
    return visit("dated", examples.tree, width=1280, height=900)


def go_to(page, step):
    page.focus("#slider")
    page.keyboard.press("Home")
    for _ in range(made.STEPS.index(step)):
        page.keyboard.press("ArrowRight")


def test_the_slider_leaves_only_what_was_predicted_by_then(page):
    go_to(page, made.STEPS[-1])
    tokens = page.evaluate(TOKENS)
    steps = sorted({token["step"] for token in tokens})
    assert len(steps) > 1 and all(token["seen"] for token in tokens)
    assert "control" not in page.text_content(".dated-end")
    for step in (made.STEPS[0], steps[0], steps[-1]):
        go_to(page, step)
        for token in page.evaluate(TOKENS):
            assert token["seen"] == (token["step"] <= step)
        assert f"step {step}." in page.inner_text(".dated h3")
    go_to(page, made.STEPS[0])
    assert page.inner_text(".dated h3").startswith("0 of ")


def test_a_token_and_the_key_set_the_step_and_tell_it(page):
    go_to(page, made.STEPS[-1])
    token = page.locator(".dated-line[role] .d[data-step]").first
    step = token.get_attribute("data-step")
    token.hover()
    assert f"step {int(step):,}" in page.inner_text("#tooltip")
    token.click()
    assert page.inner_text("#now-step") == f"{int(step):,}"
    box = page.locator(".dated-axis").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 6)
    assert page.inner_text("#now-step") == f"{made.STEPS[-1]:,}"


def test_a_text_is_one_stop_of_the_tab_key_and_arrows_go_along_it(page):
    stops = page.locator(".dated-line[role] [tabindex='0']")
    assert stops.count() == page.locator(".dated-line[role]").count()
    go_to(page, made.STEPS[-1])
    stops.first.focus()
    page.keyboard.press("End")
    told = page.inner_text("#tooltip")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#tooltip") != told
    assert page.inner_text("#now-step") == f"{made.STEPS[-1]:,}"


def test_a_phone_scrolls_down_alone_and_paper_shows_every_token(visit):
    page = visit("dated", examples.tree, width=360)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    go_to(page, made.STEPS[0])
    page.emulate_media(media="print")
    assert all(token["seen"] for token in page.evaluate(TOKENS))
    assert page.is_visible(".dated-end") and not page.is_visible(".dated-now")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 900})
