"""The page in a browser: it opens without a network, shows the result's numbers, and obeys."""

import csv
import io
import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.report_browser import (
    browser,
    draw_all,
    hover,
    listen,
    quiet,
    traces,
    until,
    visit,
    wait_for_answer,
)
from ontogeny import report
from ontogeny.report.scales import StepScale

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared(visit):
    """The developing run's page with every figure drawn, for all tests of this module."""
    page = visit("developing", examples.developing_tree)
    draw_all(page)
    return page


@pytest.fixture
def page(shared):
    """The shared page, set back to how it opens."""
    shared.press("#scale button[data-scale=log]", "Enter")
    if shared.get_attribute("#layers button.all", "aria-pressed") == "false":
        shared.press("#layers button.all", "Enter")
    shared.focus("#slider")
    shared.keyboard.press("End")
    for button in shared.locator(
        ".controls button[aria-pressed=false]:text('relative')"
    ).all():
        button.press("Enter")
    return shared


def hairline(page, figure, panel=0):
    """Place of a figure's hairline on its step axis, between 0 and 1."""
    return page.evaluate(
        """([id, panel]) => {
          const plot = document.querySelector(`[id="${id}"] .plot`);
          const axis = plot.layout[panel ? `xaxis${panel + 1}` : "xaxis"];
          const line = plot.querySelectorAll(".hairline")[panel].getBoundingClientRect();
          const x = line.left + line.width / 2 - plot.getBoundingClientRect().left;
          const [a, b] = axis.domain.map((d) => d * plot.clientWidth);
          const [low, high] = plot.layout.xaxis.range;
          return low + ((x - a) / (b - a)) * (high - low);
        }""",
        [figure, panel],
    )


def floats(values):
    return np.array([math.nan if v is None else v for v in values], dtype=float)


def test_plotted_lines_equal_the_result(page):
    tree = examples.developing_tree()
    node = tree["concepts-ica"].to_dataset()
    shown = traces(page, "concepts-ica/distance", "line")
    assert len(shown) == 12
    places = StepScale(tuple(examples.STEPS)).positions(examples.STEPS)
    for trace in shown:
        one = node["distance_relative"].sel(
            layer=trace["meta"]["series"], distance=trace["meta"]["facet"]
        )
        np.testing.assert_array_equal(floats(trace["y"]), one.values.astype(float))
        np.testing.assert_array_equal(trace["steps"], one["step"].values)
        np.testing.assert_allclose(trace["x"], places, atol=1e-5)
    loss = traces(page, "loss/loss", "line")[0]
    np.testing.assert_array_equal(
        floats(loss["y"]), tree["loss"]["loss"].values.astype(float)
    )


def test_plotted_cells_equal_the_result(page):
    entropy = examples.developing_tree()["attention-entropy"]["entropy"]
    panels = traces(page, "attention-entropy/heads", "heatmap")
    assert len(panels) == 6
    for i, panel in enumerate(panels):
        z = np.array(
            [[math.nan if v is None else v for v in row] for row in panel["z"]]
        )
        columns = ~np.isnan(z).all(axis=0)
        assert z.shape[1] - columns.sum() == 1, "one empty column sets step 0 apart"
        np.testing.assert_array_equal(z[:, columns], entropy.isel(layer=i).values.T)
        assert len(panel["x"]) == z.shape[1] + 1


def test_plotted_dots_and_bands_equal_the_result(page):
    node = examples.developing_tree()["variance-rank"].to_dataset()
    dots = traces(page, "variance-rank/rank", "dots")[0]
    np.testing.assert_array_equal(dots["x"], node["variance_rank"].values)
    walk = traces(page, "variance-rank/rank", "band")[0]
    np.testing.assert_array_equal(walk["x"][0::3], node["walk_low"].values)
    np.testing.assert_array_equal(walk["x"][1::3], node["walk_high"].values)


def test_absolute_values_are_one_click_away(page):
    figure = "concepts-pca/distance"
    page.press(f"[id='{figure}'] .controls button:has-text('absolute')", "Enter")
    node = examples.developing_tree()["concepts-pca"].to_dataset()
    for trace in traces(page, figure, "line"):
        one = node["distance_to_last"].sel(
            layer=trace["meta"]["series"], distance=trace["meta"]["facet"]
        )
        np.testing.assert_array_equal(floats(trace["y"]), one.values.astype(float))


def test_relative_bands_keep_their_proportion(page):
    page.press("#layers button:has-text('3')", "Enter")
    draw_all(page)
    node = examples.developing_tree()["concepts-pca"].to_dataset().isel(layer=3)
    band = traces(page, "concepts-pca/distance", "band")[0]
    # 0 of 0 at the reference.
    one = node.sel(distance="frobenius").isel(step=slice(0, -1))
    scale = one["distance_relative"].astype(float) / one["distance_to_last"].astype(
        float
    )
    expected = (one["floor_high"] * scale).values
    assert floats(band["y"])[: len(expected)] == pytest.approx(expected, rel=1e-6)


def test_keys_move_the_step_in_slider_chart_and_figures(page):
    scale = StepScale(tuple(examples.STEPS))
    page.focus("#slider")
    page.keyboard.press("Home")
    assert page.get_attribute("#slider", "aria-valuenow") == "0"
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    step = examples.STEPS[7]
    assert page.get_attribute("#slider", "aria-valuenow") == str(step)
    assert page.inner_text("#now-step") == str(step)
    assert f"step {step}" in page.get_attribute("#slider", "aria-valuetext")
    place = scale.positions([step])[0]
    for figure, panels in (("loss/loss", 1), ("concepts-ica/distance", 2)):
        for panel in range(panels):
            assert hairline(page, figure, panel) == pytest.approx(place, abs=2e-3)
    left, width, low, high = json.loads(page.text_content("#data"))["charts"]["wide"][
        "plot"
    ]
    x = float(page.get_attribute("svg.chart-wide .now", "x1"))
    assert x == pytest.approx(left + width * (place - low) / (high - low), abs=0.01)
    value = examples.developing_tree()["loss"]["loss"].sel(step=step).item()
    assert f"{value:.3f}" in page.inner_text("[id='loss/loss'] .readout")


def seldom():
    """Return a run whose loss was not measured at every second checkpoint."""
    tree = examples.developing_tree()
    data = tree["loss"].to_dataset()
    tree["loss"] = xr.DataTree(data.isel(step=slice(None, None, 2)))
    return tree


def test_between_measured_steps_a_figure_tells_the_last_one(visit):
    page = visit("seldom", seldom)
    draw_all(page)
    page.focus("#slider")
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    before, now = (f"{examples.STEPS[i]:,}" for i in (4, 5))
    told = page.inner_text("[id='loss/loss'] .readout")
    assert told.startswith(f"Step {before}, the last one measured before {now}")


def test_dragging_and_playing_move_the_step(page):
    box = page.query_selector("#slider").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"] + 20)
    page.mouse.up()
    assert page.inner_text("#now-step") == "0"
    page.press("#play", "Enter")
    page.wait_for_selector("#slider:not([aria-valuenow='0'])")
    page.press("#play", "Enter")
    assert page.get_attribute("#play", "aria-pressed") == "false"


def test_step_axis_can_be_switched_to_linear(page):
    page.press("#scale button[data-scale=linear]", "Enter")
    draw_all(page)
    figure = "concepts-ica/distance"
    expected = np.array(examples.STEPS) / examples.STEPS[-1]
    assert traces(page, figure, "line")[0]["x"] == pytest.approx(expected, abs=1e-5)
    page.focus("#slider")
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    assert hairline(page, figure) == pytest.approx(expected[5], abs=2e-3)


def test_layer_chips_filter_figures_and_chart(page):
    page.press("#layers button:has-text('2')", "Enter")
    page.press("#layers button:has-text('4')", "Enter")
    draw_all(page)
    series = {
        t["meta"]["series"] for t in traces(page, "concepts-ica/distance", "line")
    }
    assert series == {"model.layers.2.mlp", "model.layers.4.mlp"}
    assert len(traces(page, "attention-entropy/heads", "heatmap")) == 2
    assert len(traces(page, "variance-rank/rank", "dots")[0]["x"]) == 6
    dimmed = page.evaluate(
        "document.querySelectorAll('svg.chart-wide .row.dim').length"
    )
    shown = page.evaluate(
        "document.querySelectorAll('svg.chart-wide .row:not(.dim)').length"
    )
    assert (dimmed, shown) == (12, 7)  # rows of weights are one line
    page.press("#layers button:has-text('all')", "Enter")
    assert page.evaluate("document.querySelectorAll('.row.dim').length") == 0


def test_hover_gives_exact_numbers_with_their_interval(page):
    figure = "loss/loss"
    place = StepScale(tuple(examples.STEPS)).positions([250])[0]
    hover(page, figure, place, 0.5)
    loss = examples.developing_tree()["loss"].to_dataset().sel(step=250)
    words = page.inner_text("#tooltip")
    assert "Step 250" in words and f"{loss['loss'].item():.3f} nats/token" in words
    assert (
        f"interval {loss['loss_low'].item():.3f} to {loss['loss_high'].item():.3f}"
        in words
    )


def test_missing_cells_tell_their_reason_on_hover(page):
    figure = "concepts-ica/distance"
    hover(page, figure, StepScale(tuple(examples.STEPS)).positions([128])[0], 0.98)
    words = page.inner_text("#tooltip")
    assert "Step 128" in words and "layer 1" in words and "model.layers" not in words
    assert "failed: ICA did not converge in 400 iterations" in words
    crosses = traces(page, figure, "missing")
    assert all(len(t["x"]) == 1 for t in crosses)


def test_audit_findings_are_marked_in_figures_and_told_on_hover(page):
    figure = "loss/loss"
    scale = StepScale(tuple(examples.STEPS))
    marks = page.evaluate(
        """(id) => document.querySelector(`[id="${id}"] .plot`).layout.shapes
          .filter((s) => s.fillcolor).map((s) => s.xanchor)""",
        figure,
    )
    assert marks == pytest.approx(scale.positions([550, 600]), abs=1e-5)
    hover(page, figure, scale.positions([600])[0], 0.5)
    assert "Audit: Steps 550 and 600 hold identical weights." in page.inner_text(
        "#tooltip"
    )


def test_click_in_a_figure_sets_the_step(page):
    figure = "loss/loss"
    hover(page, figure, StepScale(tuple(examples.STEPS)).positions([32])[0], 0.4)
    page.mouse.down()
    page.mouse.up()
    assert page.inner_text("#now-step") == "32"


def test_rows_of_the_chart_lead_to_their_figure_and_layer(page):
    page.click("svg.chart-wide .row[data-row='3'] a .name")
    page.wait_for_url(lambda url: "#concepts-ica/distance?" in url)
    assert page.locator("#layers button[aria-pressed=true]").all_text_contents() == [
        "2"
    ]
    assert linked(page) == ["concepts-ica/distance"]
    page.hover("svg.chart-wide .row[data-row='3'] .hit", position={"x": 700, "y": 4})
    assert "ICA concepts" in page.inner_text("#tooltip")


def test_choice_of_a_leftover_dimension_changes_the_figure(page):
    figure = "matrix/between"
    page.select_option(f"[id='{figure}'] select", label="ica")
    between = (
        examples.developing_tree()["matrix"]["between"].sel(extractor="ica").values
    )
    z = np.array(traces(page, figure, "heatmap")[0]["z"], dtype=float)
    keep = ~np.isnan(z).all(axis=0)
    np.testing.assert_array_equal(z[keep][:, keep], between.T)


def test_downloads_hold_the_data_and_open_as_pictures(page, tmp_path):
    files = {}
    for action in ("csv", "svg", "png"):
        for owner in ("[id='concepts-ica/distance']", "#chart"):
            with page.expect_download() as download:
                page.press(f"{owner} [data-action={action}]", "Enter")
            files[owner, action] = Path(download.value.path()).read_bytes()
    report.write_figures(examples.developing_tree(), tmp_path, formats=[])
    for owner, name in (
        ("[id='concepts-ica/distance']", "concepts-ica-distance.csv"),
        ("#chart", "chart.csv"),
    ):
        one = list(csv.reader(io.StringIO(files[owner, "csv"].decode())))
        two = list(
            csv.reader(io.StringIO((tmp_path / name).read_text(encoding="utf-8")))
        )
        assert one[0] == two[0] and len(one) == len(two)
        assert [list(map(plain, row)) for row in one] == [
            list(map(plain, row)) for row in two
        ]
        assert ElementTree.fromstring(files[owner, "svg"]).tag.endswith("svg")
        assert files[owner, "png"].startswith(b"\x89PNG")


def plain(cell):
    """A cell as a number where it is one, so that 1 and 1.0, true and True agree."""
    try:
        return float(cell)
    except ValueError:
        return cell.lower()


def test_no_text_in_a_download_is_a_formula_for_a_spreadsheet(visit):
    page = visit("formulas", examples.formula_tree)
    figure = page.locator("[id='concepts-ica/distance']")
    figure.evaluate("(each) => { each.closest('details').open = true; }")
    with page.expect_download() as download:
        page.press("[id='concepts-ica/distance'] [data-action=csv]", "Enter")
    lines = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    layers = {line[lines[0].index("layer")][:2] for line in lines[1:]}
    assert layers == {"'=", "'@"}


def test_hostile_names_stay_text_everywhere(visit):
    page = visit("hostile", examples.hostile_tree)
    draw_all(page)
    assert page.evaluate("document.querySelectorAll('script').length") == 3
    markup = (
        "img, iframe, object, .plot b, .plot a, figcaption b, h1 *:not(a), h2 *:not(a)"
    )
    assert page.locator(markup).count() == 0
    titles = page.evaluate(
        "[...document.querySelectorAll('.plot .annotation-text')].map((e) => e.textContent)"
    )
    assert examples.HOSTILE[2] in titles and examples.HOSTILE[1] in titles
    assert page.inner_text("h1") == examples.HOSTILE[0]
    hover(page, "rank/script-alert-1-script", 1.5, 0.05)
    assert examples.HOSTILE[0] in page.inner_text("#tooltip")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("still", examples.still_tree),
        ("one-step", lambda: examples.plain_tree(steps=[0])),
        ("odd", examples.odd_tree),
        ("thousand-steps", lambda: examples.plain_tree(steps=range(1000))),
        ("huge", lambda: examples.huge_tree(heads=4)),
    ],
)
def test_every_result_is_drawn_without_complaint(visit, name, make):
    page = visit(name, make)
    draw_all(page)
    if name != "one-step":  # which has no axis to switch
        page.press("#scale button[data-scale=linear]", "Enter")
    page.focus("#slider")
    page.keyboard.press("Home")
    draw_all(page)
    assert (
        page.evaluate(
            "document.querySelectorAll('[data-figure]:not([data-drawn])').length"
        )
        == 0
    )


def test_figures_out_of_sight_have_room_and_are_drawn_when_they_come_into_view(visit):
    page = visit("developing", examples.developing_tree)
    page.wait_for_selector("html[data-room]")
    assert page.evaluate("typeof Plotly") == "undefined"
    height = page.evaluate("document.body.scrollHeight")
    page.locator("[id='matrix/between'] .plot").scroll_into_view_if_needed()
    page.wait_for_selector("[id='matrix/between'][data-drawn]")
    assert page.evaluate("document.body.scrollHeight") == pytest.approx(height, abs=40)


def test_no_development_is_said_plainly(visit):
    page = visit("still", examples.still_tree)
    assert "open" in page.inner_text("#first-heading")
    assert "learned" not in page.inner_text("#first-heading")
    assert "open" in page.inner_text("#verdict")


def test_a_run_with_controls_says_and_shows_what_they_did(visit):
    page = visit.once("controlled", examples.controlled_tree)
    assert page.inner_text("#first-heading").startswith(
        "Loss on held-out text improved by learning"
    )
    assert page.locator(".three li[data-direction=falls]").count() == 1
    row = page.locator("svg.chart-wide .row").first
    assert row.locator(".on-log .control-dot").count() == 3
    assert "half-change step of controls" in row.locator("a").get_attribute(
        "aria-label"
    )
    row.locator(".name").hover()
    words = page.inner_text("#tooltip")
    assert "learned" in words and "8.34 → 5.02 nats/token, falls" in words
    assert "mean of 3 control runs 8.34 → 8.00" in words
    draw_all(page)
    (control,) = traces(page, "loss/loss", "control")
    assert control["meta"]["label"] == "control runs (turned)"
    hover(page, "loss/loss", 0.5, 0.5)
    assert "control runs (turned): 8.200 to 8.700" in page.inner_text("#tooltip")


def overshooting():
    """A run whose attention entropy first goes the other way, and then further than it ends."""
    tree = examples.controlled_tree()
    data = tree["attention-entropy"].to_dataset()
    data["progress"][:, 8], data["progress"][:, 15] = -0.12, 1.25
    tree["attention-entropy"] = xr.DataTree(data)
    return tree


def test_overshoot_is_said_with_its_direction(visit):
    page = visit("overshooting", overshooting)
    row = page.locator("svg.chart-wide .row", has_text="attention entropy").first
    row.scroll_into_view_if_needed()
    box = row.locator(".hit").bounding_box()
    scale = StepScale(tuple(examples.STEPS))
    left, width, low, high = page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).charts.wide.plot"
    )
    shown = page.evaluate(
        "document.querySelector('svg.chart-wide').viewBox.baseVal.width"
    )
    for place, words in (
        (8, "12 % beyond its first value, in the other direction"),
        (15, "25 % beyond its last value"),
    ):
        at = scale.positions([examples.STEPS[place]])[0]
        x = (left + width * (at - low) / (high - low)) / shown * box["width"]
        page.mouse.move(box["x"] + x, box["y"] + 4)
        assert words in page.inner_text("#tooltip")


def test_files_of_the_page_hold_the_same_rows_as_those_of_the_command(visit, tmp_path):
    page = visit.once("controlled", examples.controlled_tree)
    with page.expect_download() as waited:
        page.press("[data-chart] button[data-action=csv]", "Enter")
    lines = list(csv.reader(io.StringIO(Path(waited.value.path()).read_text())))
    report.write_figures(examples.controlled_tree(), tmp_path, formats=[])
    expected = list(csv.reader(io.StringIO((tmp_path / "chart.csv").read_text())))
    assert lines[0] == expected[0] and len(lines) == len(expected)
    names = ("verdict", "direction", "units", "controls", "control_half_step")
    for name in names:
        i = lines[0].index(name)
        assert [line[i] for line in lines] == [line[i] for line in expected]


def test_phone_has_a_menu_and_no_sideways_scroll(visit):
    page = visit("developing", examples.developing_tree, width=390, height=844)
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.is_visible("svg.chart-narrow") and not page.is_visible("svg.chart-wide")
    assert not page.is_visible("#rail")
    page.evaluate("scrollTo(0, 0)")
    page.press("#menu", "Enter")
    under = """() => document.getElementById("rail").getBoundingClientRect().top
      - document.getElementById("bar").getBoundingClientRect().bottom"""
    assert abs(page.evaluate(under)) < 1, "the bar covers no entry"
    page.click("#rail a[href='#section-matrix']")
    assert not page.is_visible("#rail")
    assert (
        page.evaluate("document.querySelectorAll('.notes details[open]').length") == 0
    )


def test_dark_setting_changes_page_and_figures(visit, shared):
    light, dark = (
        shared,
        visit("developing", examples.developing_tree, color_scheme="dark"),
    )
    draw_all(dark)
    papers = [
        p.evaluate("getComputedStyle(document.body).backgroundColor")
        for p in (light, dark)
    ]
    assert papers == ["rgb(255, 255, 255)", "rgb(20, 22, 26)"]
    colour = "document.querySelector('.plot').data.find((t) => t.meta.part === 'line').line.color"
    lines = [p.evaluate(colour) for p in (light, dark)]
    assert lines[0] != lines[1]


def test_paper_shows_every_figure_and_note(visit):
    page = visit("developing", examples.developing_tree, color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert (
        page.evaluate(
            "document.querySelectorAll('[data-figure]:not([data-drawn])').length"
        )
        == 0
    )
    page.emulate_media(media="print")
    assert (
        page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert not page.is_visible("#bar")
    # Two figures of a fold share a line, from one side of the sheet to the other.
    page.set_viewport_size({"width": 726, "height": 900})
    one, other = page.evaluate(
        """() => {
          const fold = Object.assign(document.createElement("details"), { className: "fold" });
          const figures = [...document.querySelectorAll(".figure:not(.broad)")].slice(0, 2);
          fold.append(document.createElement("summary"), ...figures);
          document.querySelector("main").append(fold);
          fold.open = true;
          return figures.map((figure) => figure.getBoundingClientRect().toJSON());
        }"""
    )
    assert one["top"] == other["top"] and one["right"] < other["left"]
    assert one["left"] < 30 and other["right"] > 700


def test_table_sorts_by_number(page):
    page.press(".table-fold summary", "Enter")
    page.press(".sortable th:has-text('Half-change step') button", "Enter")
    cells = page.locator(".sortable tbody td:nth-child(4)").all_text_contents()
    numbers = [float(c.split(" ")[0].replace(",", "")) for c in cells if c]
    assert numbers == sorted(numbers) and len(numbers) == 23
    assert cells[-2:] == ["", ""]


LINK = "concepts-ica/distance?step=100&layers=0,3"


def linked(browser_page):
    return browser_page.evaluate(
        "[...document.querySelectorAll('.linked')].map((e) => e.id || e.dataset.row)"
    )


def test_link_restores_place_step_and_layers(visit):
    page = visit("developing", examples.developing_tree, fragment=f"#{LINK}")
    assert page.inner_text("#now-step") == "100"
    pressed = page.locator("#layers button[aria-pressed=true]").all_text_contents()
    assert pressed == ["0", "3"]
    assert linked(page) == ["concepts-ica/distance"]
    until(  # figures that are drawn meanwhile may move it
        page,
        """() => {
          const y = document.getElementById("concepts-ica/distance").getBoundingClientRect().y;
          return 0 <= y && y < 450;
        }""",
    )
    page.mouse.click(5, 450)
    assert linked(page) == []


def test_address_follows_the_view_and_copied_links_lead_back(visit, shared):
    page = visit("developing", examples.developing_tree)
    page.focus("#slider")
    page.keyboard.press("Home")
    page.press("#layers button[title='Layer 2']", "Enter")
    page.press("#scale button[data-scale=linear]", "Enter")
    page.wait_for_url(lambda url: url.endswith(".html#?step=0&layers=2&axis=linear"))
    # The page's own clipboard: that of a browser may ask a person, whom nobody would answer.
    page.evaluate(
        """() => Object.defineProperty(navigator, "clipboard", {
          value: { writeText: async (text) => { window.copied = text; } },
        })"""
    )
    button = "button[data-link='loss/loss']"
    listen(page, button)
    page.evaluate("document.querySelector('#section-loss .fold').open = true")
    # By the keyboard: figures that open here may still move the button under a pressed mouse.
    page.focus(button)
    page.keyboard.press("Enter")
    wait_for_answer(page, button, "Link copied")
    copied = page.evaluate("window.copied")
    address = shared.url.split("#")[0]
    assert copied == f"{address}#loss/loss?step=0&layers=2&axis=linear"
    page.press("a[href='#audit'] >> nth=0", "Enter")
    page.wait_for_url(
        lambda url: url.endswith(".html#audit?step=0&layers=2&axis=linear")
    )
    page.evaluate("location.hash = '#loss/loss?step=32'")
    page.wait_for_selector("#now-step:text-is('32')")
    assert page.get_attribute("#scale button[data-scale=log]", "aria-pressed") == "true"
    assert page.get_attribute("#layers button.all", "aria-pressed") == "true"


def test_rows_of_the_chart_can_be_linked(visit):
    page = visit("developing", examples.developing_tree)
    data = json.loads(page.locator("#data").text_content())
    row = data["rows"][4]
    page.evaluate("(id) => { location.hash = id; }", row["id"])
    page.wait_for_selector("svg.chart-wide .row.linked")
    assert page.get_attribute("svg.chart-wide .row.linked", "data-row") == "4"
    assert row["id"] in linked(page)


@pytest.mark.parametrize(
    "fragment", ["#nowhere?step=x&layers=", "#%E0%A4%A?layers=%E0", "#?&&=&step"]
)
def test_broken_links_open_the_page_as_it_is(visit, fragment):
    page = visit("developing", examples.developing_tree, fragment=fragment)
    assert page.inner_text("#now-step") == "1,000", "the last step"
    assert page.get_attribute("#layers button.all", "aria-pressed") == "true"


def test_step_against_step_has_a_hairline_along_both_axes(page):
    figure = "matrix/between"
    page.keyboard.press("Home")
    spots = page.evaluate(
        """(id) => [...document.querySelectorAll(`[id="${id}"] .hairline`)].map((line) => {
          const box = line.getBoundingClientRect();
          const plot = line.parentElement.getBoundingClientRect();
          return [box.left - plot.left, box.bottom - plot.top, box.width, box.height];
        })""",
        figure,
    )
    assert len(spots) == 2
    upright, across = spots
    assert upright[3] > 90 and across[2] > 90
    assert abs(upright[0] - across[0]) < 0.1 * across[2]  # at the left end
    assert abs(upright[1] - across[1]) < 0.1 * upright[3]  # at the lower end


def test_a_tap_tells_numbers_until_the_next_touch(browser, tmp_path):
    path = report.write(examples.developing_tree(), tmp_path / "page.html")
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    plot = page.locator("[id='concepts-ica/distance'] .plot")
    plot.evaluate("(each) => { each.closest('details').open = true; }")
    plot.scroll_into_view_if_needed()
    until(
        page,
        "() => document.querySelector(\"[id='concepts-ica/distance'][data-drawn]\")",
    )
    plot.tap(position={"x": 150, "y": 80})
    page.wait_for_selector("#tooltip:not([hidden])")
    assert "layer" in page.inner_text("#tooltip") and "Step" in page.inner_text(
        "#tooltip"
    )
    page.touchscreen.tap(5, 5)
    page.wait_for_selector("#tooltip", state="hidden")
    context.close()
