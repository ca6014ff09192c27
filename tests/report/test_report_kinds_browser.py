"""Tables, points, clouds, matrices and regimes in a browser: shown, moved, inert, downloadable."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from helpers import report_examples as examples
from helpers import report_kinds as kinds
from helpers.report_browser import browser, draw_all, hover, quiet, traces, until, visit
from ontogeny import report
from ontogeny.report.scales import StepScale

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared(visit):
    page = visit("kinds", kinds.kinds_tree)
    draw_all(page)
    return page


@pytest.fixture
def page(shared):
    """The shared page at its last step."""
    shared.focus("#slider")
    shared.keyboard.press("End")
    return shared


def figure(name):
    return f"[id='{name}']"


def downloaded(page, name, action):
    with page.expect_download() as download:
        page.press(f"{figure(name)} [data-action={action}]", "Enter")
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_tables_sort_and_download_what_the_files_hold(page, tmp_path):
    head = f"{figure('scores/windows')} thead tr:last-child th:nth-child(4) button"
    cells = f"{figure('scores/windows')} tbody td:nth-child(4)"
    page.press(head, "Enter")
    shown = page.locator(cells).all_inner_texts()
    numbers = [float(text.split(" ")[0]) for text in shown]
    assert numbers == sorted(numbers) and len(numbers) == 4
    page.press(
        f"{figure('scores/windows')} thead tr:last-child th:nth-child(3) button",
        "Enter",
    )
    missing = f"{figure('scores/windows')} tbody tr:last-child td:nth-child(3)"
    assert page.get_attribute(missing, "title") == "not measured"
    report.write_figures(kinds.kinds_tree(), tmp_path, formats=[])
    for kind in ("csv", "tex"):
        expected = (tmp_path / f"scores-windows.{kind}").read_text(encoding="utf-8")
        assert downloaded(page, "scores/windows", kind) == expected


def test_points_are_the_results_and_the_current_step_is_ringed(page):
    data = kinds.kinds_tree()["points"].to_dataset()
    (points,) = traces(page, "points/plane", "points")
    np.testing.assert_array_equal(points["x"], data["a"].values.ravel())
    np.testing.assert_array_equal(points["y"], data["b"].values.ravel())
    (ring,) = traces(page, "points/plane", "now")
    np.testing.assert_array_equal(ring["x"], data["a"].values[-1])
    page.keyboard.press("Home")
    until(
        page,
        """([id, x]) => document.querySelector(`[id="${id}"] .plot`).data
          .find((t) => t.meta.part === "now").x[0] === x""",
        arg=["points/plane", float(data["a"].values[0, 0])],
    )


def test_hover_names_a_point_and_click_goes_to_its_step(page):
    data = kinds.kinds_tree()["points"].to_dataset()
    spot = page.evaluate(
        """([id, x, y]) => {
          const plot = document.querySelector(`[id="${id}"] .plot`);
          const box = plot.getBoundingClientRect();
          const along = (axis, v, size) => {
            const [a, b] = axis.domain.map((d) => d * size);
            return a + ((v - axis.range[0]) / (axis.range[1] - axis.range[0])) * (b - a);
          };
          const { xaxis, yaxis } = plot.layout;
          return [box.left + along(xaxis, x, box.width), box.bottom - along(yaxis, y, box.height)];
        }""",
        [
            "points/plane",
            float(data["a"].values[10, 4]),
            float(data["b"].values[10, 4]),
        ],
    )
    page.mouse.move(*spot)
    words = page.inner_text("#tooltip")
    assert "Step " in words and "component 2: " in words
    page.mouse.click(*spot)
    said = words.split("\n")[0].split(" · ")[0].removeprefix("Step ")
    assert page.inner_text("#now-step") == said


def test_words_are_selectable_text_sized_by_weight_in_their_own_direction(page):
    clouds = page.locator(f"{figure('words/clouds')} .cloud")
    texts = [cloud.locator("bdi").all_inner_texts() for cloud in clouds.all()]
    assert texts[0][:3] == ["ﬁn", "naïve", "über"] and "#cat" in texts[0]
    assert "مرحبا" in texts[1] and "\\u202eevil" in texts[1]
    assert texts[2][-1] == "世界" and texts[4] == []
    sizes = page.evaluate(
        """(id) => [...document.querySelectorAll(`[id="${id}"] .cloud:first-child bdi`)]
          .map((e) => parseFloat(getComputedStyle(e).fontSize))""",
        "words/clouds",
    )
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 1.5 * sizes[-1]
    ways = page.evaluate(
        """(id) => [...document.querySelectorAll(`[id="${id}"] bdi`)]
          .filter((e) => e.textContent === "مرحبا").map((e) => getComputedStyle(e).direction)""",
        "words/clouds",
    )
    assert ways == ["rtl"]
    page.hover(f"{figure('words/clouds')} bdi:text-is('naïve')")
    assert page.inner_text("#tooltip").split("\n")[2].startswith("typicality: 0.")
    selected = page.evaluate(
        """(id) => { const range = document.createRange();
          range.selectNodeContents(document.querySelector(`[id="${id}"] .cloud p`));
          getSelection().addRange(range); return getSelection().toString(); }""",
        "words/clouds",
    )
    assert selected.startswith("ﬁn naïve über")


def test_refinements_are_indented_under_their_parents(page):
    heads = page.locator(f"{figure('words/tree')} h4").all_inner_texts()
    assert [head.strip() for head in heads] == ["+", "++", "+-", "-", "--"]
    lefts = page.evaluate(
        """(id) => [...document.querySelectorAll(`[id="${id}"] .cloud`)]
          .map((e) => e.getBoundingClientRect().left)""",
        "words/tree",
    )
    assert lefts[0] == lefts[3] < lefts[1] == lefts[2] == lefts[4]


def test_words_download_as_they_are_shown(page):
    rows = list(csv.DictReader(io.StringIO(downloaded(page, "words/clouds", "csv"))))
    first = [row["token"] for row in rows if row["orthant"] == "+"]
    assert first[:3] == ["ﬁn", "naïve", "über"]


def test_matrices_have_square_cells_and_the_click_goes_to_their_step(page):
    panels = traces(page, "matrices/confusion", "heatmap")
    steps = [f"step {examples.STEPS[i]:,}" for i in (0, 4, 7, 11, 14, 18, 21, 25)]
    assert [panel["meta"]["facet"] for panel in panels] == steps
    sizes = page.evaluate(
        """(id) => { const plot = document.querySelector(`[id="${id}"] .plot`);
          const { xaxis, yaxis } = plot.layout;
          return [(xaxis.domain[1] - xaxis.domain[0]) * plot.clientWidth,
                  (yaxis.domain[1] - yaxis.domain[0]) * plot.clientHeight]; }""",
        "matrices/confusion",
    )
    assert sizes[0] == pytest.approx(sizes[1], abs=1.5)
    hover(page, "matrices/confusion", 2, 0.5)
    assert page.inner_text("#tooltip").startswith("Step 0 · digit 2")
    page.mouse.down()
    page.mouse.up()
    assert page.inner_text("#now-step") == "0"


def test_boundaries_are_lines_with_shades_in_figures_and_chart(page):
    scale = StepScale(tuple(examples.STEPS))
    at, low, high = scale.positions([200.0, 150.0, 320.0])
    shapes = page.evaluate(
        """(id) => document.querySelector(`[id="${id}"] .plot`).layout.shapes
          .map((s) => [s.type, s.x0, s.x1, s.line.dash ?? null])""",
        "regimes/joint",
    )
    rects = sorted(tuple(s[1:3]) for s in shapes if s[0] == "rect")
    expected = sorted([(at, scale.span[1]), (low, high)])
    assert [value for rect in rects for value in rect] == pytest.approx(
        [value for rect in expected for value in rect], abs=1e-9
    )
    lines = [s[1] for s in shapes if s[0] == "line" and s[3] is None]
    assert lines == pytest.approx([at], abs=1e-9)
    hover(page, "regimes/joint", at, 0.5)
    assert "smooth to noisy at step 200 (150–320)" in page.inner_text("#tooltip")
    assert page.locator("svg.chart-wide .on-log .boundary").count() == 1


def test_theory_is_dashed_in_the_lines_colours(page):
    data = kinds.kinds_tree()["regimes"].to_dataset()
    dashed = traces(page, "regimes/each", "reference")
    np.testing.assert_array_equal([t["y"] for t in dashed], data["closed_form"].values)
    colours = page.evaluate(
        """(id) => ["line", "reference"].map((part) => document.querySelector(`[id="${id}"] .plot`)
          .data.filter((t) => t.meta.part === part).map((t) => t.line.color))""",
        "regimes/each",
    )
    assert colours[0] == colours[1] and len(set(colours[0])) == 3


def test_hostile_texts_stay_text_in_tables_points_and_words(visit):
    page = visit("hostile-kinds", kinds.hostile_kinds_tree)
    draw_all(page)
    assert page.evaluate("document.querySelectorAll('script').length") == 3
    assert (
        page.locator("img, iframe, object, .plot b, .plot a, table b, bdi *").count()
        == 0
    )
    for selector in (
        "td",
        "bdi",
        ".plot .annotation-text",
        ".plot .textpoint, .plot text",
    ):
        texts = page.evaluate(
            "(s) => [...document.querySelectorAll(s)].map((e) => e.textContent)",
            selector,
        )
        assert any("<img" in text for text in texts), selector
    page.hover("[id^='words/'] bdi >> nth=1")
    assert examples.HOSTILE[1] in page.inner_text("#tooltip")


@pytest.mark.parametrize(
    ("name", "make", "width"),
    [("sparse-kinds", kinds.sparse_kinds_tree, 1200), ("kinds", kinds.kinds_tree, 390)],
)
def test_every_result_is_drawn_without_complaint_or_sideways_scroll(
    visit, name, make, width
):
    page = visit(name, make, width=width, color_scheme="dark")
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name == "kinds":  # the other has one step, and so no axis to switch
        page.press("#scale button[data-scale=linear]", "Enter")
    draw_all(page)
    assert (
        page.evaluate(
            "document.querySelectorAll('[data-figure]:not([data-drawn])').length"
        )
        == 0
    )
