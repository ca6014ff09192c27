"""What a reader needs of the page in a browser: one axis, whole numbers, keys, room, contrast."""

import re

import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.large_runs import PAGES, large_tree, short_tree
from helpers.page_faults import faults
from helpers.report_browser import browser, draw_all, quiet, until, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

SHOWN = "const svg = [...document.querySelectorAll('svg.chart')].find((s) => s.clientWidth);"


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


@pytest.fixture
def large(visit):
    """The page of a large run, as wide and with the axis with which it opens."""
    page = visit.once("large", PAGES["large"], width=1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.press("#scale button[data-scale=log]", "Enter")
    return page


@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_slider_and_chart_have_every_step_at_the_same_place(visit, width):
    page = visit.once("large", PAGES["large"], width=width)
    page.focus("#slider")
    for scale in ("log", "linear"):
        page.press(f"#scale button[data-scale={scale}]", "Enter")
        page.focus("#slider")
        for key in ("Home", "PageUp", "End"):
            page.keyboard.press(key)
            assert apart(page) < 1, (scale, key)


def test_no_number_of_a_long_run_lies_on_the_cells(large):
    page = large
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


def test_chart_moves_with_the_kind_of_axis(large):
    page = large
    place = "document.querySelector('svg.chart-wide .now').getAttribute('x1')"
    page.focus("#slider")
    page.keyboard.press("End")
    page.keyboard.press("PageDown")
    before = page.evaluate(place)
    page.press("#scale button[data-scale=linear]", "Enter")
    assert page.evaluate(place) != before
    assert not page.is_visible("svg.chart-wide .row >> nth=0 >> .on-log")
    assert page.locator("svg.chart-wide .row >> nth=0 >> .on-linear").count() == 1


def test_the_chart_is_one_stop_of_the_tab_key(visit):
    page = visit("large", PAGES["large"])
    stops = "[...document.querySelectorAll('svg.chart-wide a')].filter((a) => a.tabIndex === 0).length"
    assert page.evaluate(stops) == 1
    page.focus("svg.chart-wide a[tabindex='0']")
    first = page.evaluate("document.activeElement.closest('.row').dataset.row")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.closest('.row').dataset.row")
    assert first != second and page.evaluate(stops) == 1
    before = page.inner_text("#tooltip")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#tooltip") != before, (
        "the row tells the step that the keys chose"
    )
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "layers=" in url or "loss" in url)


STOPS = """[...document.querySelectorAll("a[href],button,input,select,summary,[tabindex]")]
  .filter((e) => e.tabIndex >= 0 && e.getBoundingClientRect().width).length"""


def test_the_table_of_all_rows_is_one_stop_whose_rows_the_arrow_keys_reach(large):
    """135 rows of a model with 30 layers were 135 stops of the tab key."""
    page = large
    page.press(".table-fold summary", "Enter")
    links = ".table-fold tbody a"
    stops = f"[...document.querySelectorAll('{links}')].filter((a) => a.tabIndex === 0).length"
    assert page.is_visible(".table-fold p:has-text('Arrow keys go from row to row.')")
    assert page.locator(links).count() > 70 and page.evaluate(stops) == 1
    step = page.inner_text("#now-step")
    for _ in range(2):
        page.press(".table-fold th button >> nth=0", "Enter")
    order = page.locator(links).all_inner_texts()
    page.focus(f"{links}[tabindex='0']")
    for key, place in (
        ("Home", 0),
        ("ArrowDown", 1),
        ("ArrowDown", 2),
        ("ArrowUp", 1),
        ("End", -1),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == order[place]
        assert page.evaluate(stops) == 1
    assert page.inner_text("#now-step") == step


def tuned_tree():
    tree = short_tree([*range(0, 61, 12)], 30, examples.CONTROLS)
    return tree.filter(lambda node: node.name not in ("words", "plane", "spectra"))


def test_a_page_of_a_model_with_30_layers_and_few_checkpoints_has_few_screens_and_stops(
    visit,
):
    page = visit("tuned", tuned_tree, width=1440)
    page.wait_for_selector("html[data-room]")
    assert page.evaluate("document.documentElement.scrollHeight") <= 12_000
    assert page.evaluate(STOPS) <= 200


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_of_any_size_and_state_has_no_fault(visit, kind):
    page = visit(kind, PAGES[kind], width=1440)
    for width in (1440,) if kind == "tall" else (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        draw_all(page)
        assert faults(page) == [], width


def test_scrolling_tables_can_be_scrolled_by_keys(visit):
    page = visit("controlled", examples.controlled_tree, width=390)
    page.press(".table-fold summary", "Enter")
    table = page.wait_for_selector(
        ".table-fold .table-scroll[tabindex='0'][aria-label]"
    )
    assert table.evaluate("(box) => box.scrollWidth > box.clientWidth")
    table.focus()
    page.keyboard.press("ArrowRight")
    until(page, "(box) => box.scrollLeft > 0", table)


def test_at_400_percent_the_bar_leaves_two_thirds_and_nothing_overflows(visit):
    page = visit("controlled", examples.controlled_tree, width=320, height=256)
    page.evaluate("scrollTo(0, 900)")
    assert (
        page.evaluate("document.getElementById('bar').getBoundingClientRect().bottom")
        < 80
    )
    assert page.is_visible("#slider") and page.is_visible("#now-step")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_step_is_followed_by_what_is_in_view_alone(visit):
    page = visit("developing", examples.developing_tree, height=700)
    page.evaluate("document.querySelector('#section-loss .fold').open = true")
    page.locator("[id='loss/loss'] .plot").scroll_into_view_if_needed()
    page.wait_for_selector("[id='loss/loss'][data-drawn]")
    figures = page.evaluate("document.querySelectorAll('figure[data-drawn]').length")
    page.focus("#slider")
    before = page.inner_text("[id='loss/loss'] .readout")
    page.locator("[id='loss/loss'] .plot").scroll_into_view_if_needed()
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("[id='loss/loss'] .readout") != before
    assert (
        page.evaluate("document.querySelectorAll('figure[data-drawn]').length")
        == figures
        < 8
    )


def test_paper_has_few_pages_with_numbers_and_the_table(visit):
    page = visit("controlled", examples.controlled_tree)
    assert pages(page, "A4") <= 4
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.is_visible(".table-fold table") and page.is_visible(
        "[id='loss/loss'] .readout"
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".table-fold[open]").count() == 0


def test_tab_reaches_the_chart_s_rows_and_the_layers_are_one_stop(visit):
    page = visit("large", PAGES["large"])
    page.focus("#scale button:last-child")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "all"
    step = page.inner_text("#now-step")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert (
        page.get_attribute("#layers button:has-text('1') >> nth=0", "aria-pressed")
        == "true"
    )
    assert page.inner_text("#now-step") == step, "the keys of the layers move no step"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#layers')") is None
    page.focus("#chart-view button:last-child")
    page.keyboard.press("Tab")
    assert (
        page.evaluate("document.activeElement.closest('.row')?.dataset.row") is not None
    )


def whole_tree():
    tree = large_tree(6, examples.STEPS)
    tree["concepts-ica"] = xr.DataTree(
        tree["concepts-ica"].to_dataset().drop_vars("status")
    )
    return tree


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_first_printed_page_holds_the_first_screen_the_verdict_and_the_chart(
    visit, paper
):
    page = visit.once("small", whole_tree, width=1440)
    later = "main > section:not(#verdict, #chart), .table-fold, footer { display: none !important; }"
    page.add_style_tag(content=later)
    assert pages(page, paper) == 1


def pages(page, paper):
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format=paper)))
