"""The forest plot in a browser: the same rows, keys, links and step axis as the cells."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import ontogeny as og
from helpers import report_examples as examples
from helpers.compared_runs import seeds
from helpers.report_browser import browser, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

CHART = "svg.chart-wide"


@pytest.fixture
def page(visit):
    """The page with cells on a logarithmic axis, whatever another test has chosen."""
    page = visit.once("controlled", examples.controlled_tree, width=1440)
    page.press("#chart-view [data-view=cells]", "Enter")
    page.press("#scale [data-scale=log]", "Enter")
    return page


@pytest.fixture
def runs(visit):
    return visit.once("runs", lambda: og.compare(seeds(3, controls=True)), width=1440)


def shown(page, selector):
    return page.evaluate(
        """(s) => [...document.querySelectorAll(s)]
          .filter((e) => e.getClientRects().length).length""",
        f"{CHART} {selector}",
    )


def focused(page):
    return page.evaluate("document.activeElement.closest('.row')?.dataset.row")


def test_one_click_shows_intervals_instead_of_cells(page):
    assert shown(page, ".in-cells path") and not shown(page, ".in-intervals *")
    names = page.locator(f"{CHART} .row .name").all_inner_texts()
    marks = shown(page, ".row .dot, .row .open-dot")
    page.press("#chart-view [data-view=intervals]", "Enter")
    assert not shown(page, ".in-cells path") and shown(page, ".in-intervals *")
    assert page.locator(f"{CHART} .row .name").all_inner_texts() == names
    assert shown(page, ".row .dot, .row .open-dot") >= marks
    assert (
        page.get_attribute("#chart-view [data-view=intervals]", "aria-pressed")
        == "true"
    )
    page.press("#chart-view [data-view=cells]", "Enter")
    assert shown(page, ".in-cells path") and not shown(page, ".in-intervals *")


def test_the_address_keeps_the_view(visit):
    page = visit(
        "controlled", examples.controlled_tree, fragment="#chart?chart=intervals"
    )
    assert shown(page, ".in-intervals *") and not shown(page, ".in-cells path")
    page.press("#chart-view [data-view=cells]", "Enter")
    page.wait_for_url(lambda url: "chart=intervals" not in url)


def test_the_hairline_and_the_dots_follow_the_step_axis_of_the_slider(page):
    page.press("#chart-view [data-view=intervals]", "Enter")
    for _ in range(2):
        apart = page.evaluate(
            f"""() => {{
              const hair = document.querySelector("{CHART} .now").getBoundingClientRect();
              const knob = document.querySelector("#slider .knob").getBoundingClientRect();
              return hair.x + hair.width / 2 - knob.x - knob.width / 2;
            }}"""
        )
        assert abs(apart) < 1.5
        page.press("#scale [data-scale=linear]", "Enter")
    assert shown(page, ".on-linear .dot") and not shown(page, ".on-log .dot")


def test_keys_go_from_row_to_row_and_tell_every_half_change_step(visit):
    page = visit("controlled", examples.controlled_tree, width=1440)
    page.press("#chart-view [data-view=intervals]", "Enter")
    stops = f"[...document.querySelectorAll('{CHART} a')].filter((a) => a.tabIndex === 0).length"
    page.focus(f"{CHART} a[tabindex='0']")
    first = focused(page)
    page.keyboard.press("ArrowDown")
    assert focused(page) != first and page.evaluate(stops) == 1
    page.keyboard.press("ArrowUp")
    assert focused(page) == first
    told = page.inner_text("#tooltip")
    assert re.search(r"half-change step [\d,]+", told)
    controls = examples.CONTROLS
    assert all(re.search(rf"{name}: ([\d,]+|not recorded)", told) for name in controls)
    step = page.inner_text("#now-step")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#now-step") != step and page.inner_text("#tooltip") == told
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "#chart" not in url)


def test_hovering_a_row_tells_its_half_change_step_anywhere(page):
    page.press("#chart-view [data-view=intervals]", "Enter")
    row = page.locator(f"{CHART} .row").first
    for x in (300, 700):
        row.locator(".hit").hover(position={"x": x, "y": 5})
        assert "half-change step" in page.inner_text("#tooltip")


def test_the_picture_holds_the_view_that_is_shown(page, tmp_path):
    page.press("#chart-view [data-view=intervals]", "Enter")
    with page.expect_download() as saved:
        page.press("[data-chart] [data-action=svg]", "Enter")
    saved.value.save_as(tmp_path / "chart.svg")
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    kinds = [element.get("class") or "" for element in root.iter()]
    assert (
        "in-intervals" in kinds and "in-cells" not in kinds and "on-linear" not in kinds
    )
    assert not any(re.fullmatch(r"q\d+", kind) for kind in kinds)


def test_one_run_of_several_is_chosen_and_drawn_last(runs):
    assert not runs.locator("#chart-view").count()
    assert shown(runs, ".of-run.chosen .whisker") and not shown(
        runs, ".of-run:not(.chosen) .whisker"
    )
    runs.select_option("#chart-run", "2")
    chosen = runs.evaluate(
        f"[...document.querySelectorAll('{CHART} .of-run.chosen')].map((e) => e.dataset.run)"
    )
    assert set(chosen) == {"2"}
    last = runs.evaluate(
        f"""[...document.querySelectorAll('{CHART} .of-run.chosen')]
          .every((e) => e === e.parentElement.lastElementChild)"""
    )
    assert last
    runs.locator(f"{CHART} .row").first.locator(".hit").hover(
        position={"x": 500, "y": 5}
    )
    told = runs.inner_text("#tooltip")
    assert all(f"seed {i}: half-change step" in told for i in range(3))


def test_several_runs_save_their_half_change_steps(runs, tmp_path):
    with runs.expect_download() as saved:
        runs.press("[data-chart] [data-action=csv]", "Enter")
    assert saved.value.suggested_filename == "half-change-steps.csv"
    saved.value.save_as(tmp_path / "marks.csv")
    head, *lines = (tmp_path / "marks.csv").read_text().splitlines()
    assert head.startswith("row,quantity,layer,kind,run,half_step") and len(lines) == 12


def test_nothing_overflows_on_a_phone(visit):
    for name, make in (
        ("controlled", examples.controlled_tree),
        ("runs", lambda: og.compare(seeds(3, controls=True))),
    ):
        page = visit(
            name, make, width=390, height=844, fragment="#chart?chart=intervals"
        )
        assert page.evaluate(
            "document.documentElement.scrollWidth <= window.innerWidth"
        )
        outside = page.evaluate(
            """() => {
              const svg = document.querySelector("svg.chart-narrow");
              const box = svg.getBoundingClientRect();
              return [...svg.querySelectorAll("text")]
                .map((t) => t.getBoundingClientRect())
                .filter((b) => b.width)
                .filter((b) => b.left < box.left - 1 || b.right > box.right + 1).length;
            }"""
        )
        assert outside == 0
