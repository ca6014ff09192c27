"""Example text in a browser: tints that follow the slider, a token's course, keys, paper."""

import pytest

from helpers import example_texts as examples
from helpers.report_browser import browser, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

LOOK = """() => {
  const tokens = [...document.querySelectorAll(".example-line:not([hidden]) .t")];
  const box = document.getElementById("example-text").getBoundingClientRect();
  return {
    tints: tokens.map((t) => Number(t.style.getPropertyValue("--a"))),
    // From the text's own corner: the browser may still scroll by a part of a pixel.
    places: tokens.map((t) => t.getBoundingClientRect())
      .map((t) => [t.x - box.x, t.y - box.y, t.width, t.height].map((x) => x.toFixed(2)).join()),
    text: tokens.map((t) => t.textContent).join(""),
    height: box.height,
    mean: document.getElementById("example-mean").textContent,
  };
}"""
VALUE = "#example-value b"


@pytest.fixture(scope="module")
def page(visit):
    page = visit(
        "tokens", lambda: examples.tree(hostile=True, controls=(8.5, 8.7)), width=320
    )
    page.click("#example-text summary")
    opened = page.locator("#example-choice [aria-pressed=true]").text_content()
    assert opened == "text 7", "that of most words is open"
    page.press("#example-choice button >> nth=0", "Enter")
    return page


def go_to(page, key):
    page.focus("#slider")
    page.keyboard.press(key)


def test_a_step_changes_tints_and_moves_nothing(page):
    data = examples.losses(hostile=True)
    page.locator("#example-text").scroll_into_view_if_needed()
    go_to(page, "End")
    last = page.evaluate(LOOK)
    go_to(page, "Home")
    first = page.evaluate(LOOK)
    assert (first["places"], first["height"]) == (last["places"], last["height"])
    n = len(first["tints"])
    for look, step in ((first, 0), (last, -1)):
        loss = data.token_loss.values[step, 0, :n]
        wanted = [0 if x != x else 0.62 * min(1, x / 9) for x in loss]
        assert look["tints"] == pytest.approx(wanted, abs=0.005)
        assert f"{data.token_loss[step, 0].mean():.2f} nats" in look["mean"]
        assert "by word frequencies alone 4.50" in look["mean"]


def test_the_text_is_selected_as_it_is_written(page):
    selected = page.evaluate(
        """() => {
          getSelection().selectAllChildren(document.querySelector(".example-line"));
          const text = getSelection().toString();
          getSelection().removeAllRanges();
          return text;
        }"""
    )
    assert selected.startswith("<|bos|>The cat sat.  ↵<script>alert(1)</script>")


def test_pointing_or_tapping_shows_a_token_and_its_course(page):
    go_to(page, "Home")
    token = page.locator(".example-line").first.locator(".t").nth(3)
    token.hover()
    assert page.text_content("#example-value bdi") == " sat"
    assert page.text_content(VALUE) == "9.0 nats"
    assert "Dotted: 4.5 nats by word frequencies." in page.text_content("#example-lead")
    assert "leads from step 32 on (not yet at 16)" in page.text_content("#example-lead")
    first = page.get_attribute(".example-curve .here", "x1")
    go_to(page, "End")
    assert page.get_attribute(".example-curve .here", "x1") != first
    assert page.text_content(VALUE) < "9.0 nats"
    assert page.locator(".example-curve").bounding_box()["height"] == 40
    page.locator(".example-line").first.locator(".t").nth(0).click()
    assert page.text_content("#example-value span") == "not predicted"


def test_the_text_is_one_stop_of_the_tab_key_and_arrows_go_along_it(page):
    # It runs from the right.
    page.locator("#example-choice button").nth(1).press("Enter")
    line = page.locator(".example-line").nth(1)
    assert line.locator('[tabindex="0"]').count() == 1
    slider = page.get_attribute("#slider", "aria-valuenow")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.role") == "option"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == examples.HEBREW[0]
    assert (
        page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    )
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent") == "<|eos|>"
    assert page.get_attribute("#slider", "aria-valuenow") == slider
    places = [t.bounding_box()["x"] for t in line.locator(".t").all()[1:3]]
    assert places[0] > places[1]
    page.locator("#example-choice button").first.press("Enter")


def test_names_targets_and_room(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("#example-text :is(svg, [role=img], [role=option])")]
          .filter((e) => !(e.getAttribute("aria-label") ?? e.textContent).trim()).length"""
    )
    assert nameless == 0
    small = page.evaluate(
        """() => [...document.querySelectorAll("#example-text :is(button, a)")]
          .map((e) => e.getBoundingClientRect())
          .filter((b) => b.height < 24 || b.width < 24).length"""
    )
    assert small == 0
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
    assert page.locator("#example-text script, #example-text img").count() == 0


def test_paper_has_the_text_at_the_step(page):
    page.emulate_media(media="print")
    assert page.locator(".example-line").first.is_visible()
    assert "at step" in page.inner_text(".example-about >> nth=0")
    assert page.locator(".example-course").is_hidden()
    page.emulate_media(media="screen")
