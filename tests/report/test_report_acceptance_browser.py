"""What a reader needs of the page in a browser: one axis, whole numbers, keys, room, contrast."""

import re
from itertools import pairwise

import pytest

from helpers import report_examples as examples
from helpers.report_browser import browser, draw_all, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

SHOWN = "const svg = [...document.querySelectorAll('svg.chart')].find((s) => s.clientWidth);"


def long_tree():
    """A run of 24 layers and 154 steps to step 143,000."""
    return examples.huge_tree(layers=24, heads=2)


def apart(page):
    """Pixels between the slider's handle and the chart's hairline."""
    return page.evaluate(
        f"""() => {{
          {SHOWN}
          const middle = (e) => {{
            const box = e.getBoundingClientRect();
            return box.left + box.width / 2;
          }};
          return Math.abs(middle(svg.querySelector(".now")) -
                          middle(document.querySelector("#slider .knob")));
        }}"""
    )


@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_slider_and_chart_have_every_step_at_the_same_place(visit, width):
    page = visit("long", long_tree, width=width)
    page.focus("#slider")
    for scale in ("log", "linear"):
        page.click(f"#scale button[data-scale={scale}]")
        page.focus("#slider")
        for key in ("Home", "PageUp", "End"):
            page.keyboard.press(key)
            assert apart(page) < 1, (scale, key)


def test_no_number_of_a_long_run_lies_on_the_cells(visit):
    page = visit("long", long_tree)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        right, lefts, words = page.evaluate(
            f"""() => {{
              {SHOWN}
              const values = [...svg.querySelectorAll(".row .value")];
              const boxes = [...svg.querySelectorAll(".row .arrow")].concat(values);
              return [svg.querySelector(".on-log .axis").getBoundingClientRect().right,
                      boxes.map((e) => e.getBoundingClientRect().left),
                      values.map((e) => e.textContent)];
            }}"""
        )
        assert min(lefts) > right
        assert max(map(len, words)) >= (13 if width > 620 else 5)


def test_chart_moves_with_the_kind_of_axis(visit):
    page = visit("long", long_tree)
    place = "document.querySelector('svg.chart-wide .now').getAttribute('x1')"
    page.focus("#slider")
    page.keyboard.press("PageDown")
    before = page.evaluate(place)
    page.click("#scale button[data-scale=linear]")
    assert page.evaluate(place) != before
    assert not page.is_visible("svg.chart-wide .row >> nth=0 >> .on-log")
    assert page.locator("svg.chart-wide .row >> nth=0 >> .on-linear").count() == 1


def test_the_chart_is_one_stop_of_the_tab_key(visit):
    page = visit("long", long_tree)
    stops = (
        "[...document.querySelectorAll('svg.chart-wide a')].filter((a) => a.tabIndex === 0).length"
    )
    assert page.evaluate(stops) == 1
    page.focus("svg.chart-wide a[tabindex='0']")
    first = page.evaluate("document.activeElement.closest('.row').dataset.row")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.closest('.row').dataset.row")
    assert first != second and page.evaluate(stops) == 1
    before = page.inner_text("#tooltip")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#tooltip") != before, "the row tells the step that the keys chose"
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "layers=" in url or "loss" in url)


@pytest.fixture(scope="module")
def drawn(visit):
    page = visit("controlled", examples.controlled_tree, width=1440)
    draw_all(page)
    return page


def test_headings_plots_and_scrolling_tables_have_names(drawn):
    levels = drawn.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => +h.tagName[1])"
    )
    assert all(b - a <= 1 for a, b in pairwise(levels))
    unnamed = drawn.evaluate(
        """[...document.querySelectorAll(".plot")].filter((p) =>
          !document.getElementById(p.getAttribute("aria-labelledby"))?.textContent).length"""
    )
    assert unnamed == 0
    drawn.set_viewport_size({"width": 390, "height": 9000})
    drawn.click(".table-fold summary")
    drawn.wait_for_selector(".table-fold .table-scroll[tabindex='0'][aria-label]")
    drawn.click(".table-fold summary")
    drawn.set_viewport_size({"width": 1440, "height": 9000})


def test_whatever_can_be_pressed_is_24_pixels_high_and_wide(drawn):
    small = drawn.evaluate(
        """[...document.querySelectorAll("button, summary, select, input, .rail a, .rows td > a")]
          .map((e) => [e.textContent, e.getBoundingClientRect()])
          .filter(([, box]) => box.width && Math.min(box.width, box.height) < 23.9)
          .map(([words]) => words)"""
    )
    assert small == []


@pytest.mark.parametrize("width", [1440, 390])
def test_no_label_covers_another(drawn, width):
    drawn.set_viewport_size({"width": width, "height": 9000})
    draw_all(drawn)
    covered = drawn.evaluate(
        """() => {
          const found = [];
          for (const figure of document.querySelectorAll("figure[data-drawn], .chart-figure")) {
            const texts = [...figure.querySelectorAll("svg text")]
              .map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width);
            texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
              if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 &&
                  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
                found.push([one, other]);
            }));
          }
          return found;
        }"""
    )
    drawn.set_viewport_size({"width": 1440, "height": 9000})
    assert covered == []


def test_at_400_percent_the_bar_leaves_two_thirds_and_nothing_overflows(visit):
    page = visit("controlled", examples.controlled_tree, width=320, height=256)
    page.evaluate("scrollTo(0, 900)")
    assert page.evaluate("document.getElementById('bar').getBoundingClientRect().bottom") < 80
    assert page.is_visible("#slider") and page.is_visible("#now-step")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_no_figure_scrolls_inside(drawn):
    inner = drawn.evaluate(
        """[...document.querySelectorAll(".plot-frame")]
          .filter((f) => f.scrollHeight > f.clientHeight + 2).length"""
    )
    assert inner == 0


def test_a_step_is_followed_by_what_is_in_view_alone(visit):
    page = visit("developing", examples.developing_tree, height=700)
    page.locator("[id='loss/loss'] .plot").scroll_into_view_if_needed()
    page.wait_for_selector("[id='loss/loss'][data-drawn]")
    figures = page.evaluate("document.querySelectorAll('figure[data-drawn]').length")
    page.focus("#slider")
    before = page.inner_text("[id='loss/loss'] .readout")
    page.locator("[id='loss/loss'] .plot").scroll_into_view_if_needed()
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("[id='loss/loss'] .readout") != before
    assert page.evaluate("document.querySelectorAll('figure[data-drawn]').length") == figures < 8


def test_paper_has_few_pages_with_numbers_and_the_table(visit):
    page = visit("controlled", examples.controlled_tree)
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 4
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.is_visible(".table-fold table") and page.is_visible("[id='loss/loss'] .readout")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".table-fold[open]").count() == 0
