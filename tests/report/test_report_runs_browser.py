"""Several runs and control runs in the page: overlay, side by side and difference."""

import csv
import io

import numpy as np
import pytest

import ontogeny as og
from helpers.compared_runs import run as made_up
from helpers.compared_runs import seeds
from helpers.planted_runs import LAYERS, READ, STEPS, compared, controlled, tree_of
from helpers.report_browser import browser, draw_all, hover, quiet, traces, visit
from ontogeny import report
from ontogeny.report.colours import BASE, palettes
from ontogeny.report.kinds import read_drawables
from ontogeny.report.run_differences import difference_of
from ontogeny.words.content import read_content

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

FIGURE = "entropy/entropy"
OVERLAY, SIDE, DIFFERENCE = VIEWS = ("overlay", "side by side", "difference")


def three():
    """Three runs with offsets of awkward fractions, one step of the second run missing."""
    return compared([0.1, 1 / 3, -0.7], interval=[0.5] * 3, missing=[(1, 2)])


def with_controls():
    return controlled([0.1, 1 / 3, 0.7], own=2.0)


def opened(visit, name, make, **options):
    page = visit(name, make, **options)
    draw_all(page)
    return page


def show(page, view, figure=FIGURE):
    page.press(f"[id='{figure}'] .segments button:text-is('{view}')", "Enter")


@pytest.fixture(scope="module")
def drawn_runs(visit):
    return opened(visit, "three", three)


@pytest.fixture(scope="module")
def drawn_controls(visit):
    return opened(visit, "controls", with_controls)


@pytest.fixture
def runs(drawn_runs):
    """The page of three runs, set back to how it opens."""
    drawn_runs.mouse.move(0, 0)
    show(drawn_runs, OVERLAY)
    drawn_runs.select_option(
        f"[id='{FIGURE}'] select[data-dimension=run]", label="seed 0"
    )
    return drawn_runs


@pytest.fixture
def controls(drawn_controls):
    """The page of a run and its controls, set back to how it opens."""
    drawn_controls.mouse.move(0, 0)
    show(drawn_controls, OVERLAY)
    return drawn_controls


def pressed(page, figure=FIGURE):
    buttons = page.locator(f"[id='{figure}'] .segments[aria-label=Runs] button")
    return [
        b.inner_text()
        for b in buttons.all()
        if b.get_attribute("aria-pressed") == "true"
    ]


def colours(page, figure=FIGURE):
    return page.evaluate(
        """(id) => document.querySelector(`[id="${id}"] .plot`).data
          .filter((t) => t.meta && t.meta.part === "line")
          .map((t) => [t.meta.series, t.meta.facet, t.line.color, t.line.width])""",
        figure,
    )


def caption(page, figure=FIGURE):
    return page.inner_text(f"[id='{figure}/caption']")


def known(values):
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def numbers(row):
    """Labels and numbers of a line of a file; what is missing stands apart from every number."""
    return [cell if cell.startswith("model") else float(cell or "inf") for cell in row]


def test_one_control_of_three_views_opens_with_the_overlay(visit):
    runs = opened(visit, "three", three)
    found = runs.locator(f"[id='{FIGURE}'] .segments[aria-label=Runs] button")
    assert found.all_inner_texts() == list(VIEWS)
    assert pressed(runs) == [OVERLAY]
    ink, grey = BASE["light"]["ink"], BASE["light"]["null"]
    lines = colours(runs)
    assert len(lines) == 3 * len(LAYERS)
    for series, _, colour, width in lines:
        assert (colour, width > 1.5) == (
            (ink, True) if series == "seed 0" else (grey, False)
        )
    # Of the chosen run alone.
    assert len(traces(runs, FIGURE, "interval")) == len(LAYERS)
    words = "Dark line: seed 0. Thin grey lines: the other runs. The shade is that of seed 0."
    assert caption(runs).endswith(words)


def test_the_menu_and_the_name_at_a_line_choose_the_run(runs):
    ink = BASE["light"]["ink"]
    runs.select_option(f"[id='{FIGURE}'] select[data-dimension=run]", label="seed 2")
    assert {line[0] for line in colours(runs) if line[2] == ink} == {"seed 2"}
    runs.locator(
        f"[id='{FIGURE}'] .plot .annotation-text", has_text="seed 1"
    ).first.click()
    assert {line[0] for line in colours(runs) if line[2] == ink} == {"seed 1"}
    chosen = f"[id='{FIGURE}'] select[data-dimension=run]"
    assert (
        runs.evaluate(
            "(s) => document.querySelector(s).selectedOptions[0].text", chosen
        )
        == "seed 1"
    )
    assert "Dark line: seed 1" in caption(runs)


def test_runs_stand_side_by_side_with_the_colours_of_layers(runs):
    show(runs, SIDE)
    assert pressed(runs) == [SIDE]
    lines = colours(runs)
    assert [line[1] for line in lines] == [
        f"seed {i}" for i in range(3) for _ in LAYERS
    ]
    assert [line[2] for line in lines[:3]] == palettes(3)["light"]["layers"]
    spans = runs.evaluate(
        """(id) => { const {layout} = document.querySelector(`[id="${id}"] .plot`);
          return ["yaxis", "yaxis2", "yaxis3"].map((a) => layout[a].range.join()); }""",
        FIGURE,
    )
    assert len(set(spans)) == 1
    assert not runs.locator(f"[id='{FIGURE}'] select[data-dimension=run]").count()
    assert np.isnan(traces(runs, FIGURE, "line")[3]["y"][2])  # a gap


@pytest.mark.parametrize("name", ["runs", "controls", "two"])
def test_the_page_and_the_files_agree_on_every_bit_of_a_difference(
    visit, tmp_path, name
):
    make = {
        "runs": three,
        "controls": with_controls,
        "two": lambda: compared([0.1, 1 / 3], interval=[0.3, 0.7]),
    }[name]
    page = opened(visit, f"same-{name}", make)
    show(page, DIFFERENCE)
    (found,) = read_drawables(read_content(make()))
    data = difference_of(found).node.dataset
    lines = traces(page, FIGURE, "line")
    assert [line["meta"]["facet"] for line in lines] == [f"layer {i}" for i in range(3)]
    for i, line in enumerate(lines):
        own = data.entropy_difference.isel(layer=i)
        assert line["steps"] == own.step.values.tolist()
        np.testing.assert_array_equal(known(line["y"]), own.values)
    report.write_figures(make(), tmp_path, ["svg"])
    with page.expect_download() as download:
        page.press(f"[id='{FIGURE}'] button[data-action=csv]", "Enter")
    assert download.value.suggested_filename == "entropy-entropy-difference.csv"
    text = download.value.path().read_text()
    written = (tmp_path / "entropy-entropy-difference.csv").read_text()
    ours, theirs = (list(csv.reader(io.StringIO(each))) for each in (text, written))
    assert ours[0] == theirs[0] and sorted(map(numbers, ours[1:])) == sorted(
        map(numbers, theirs[1:])
    )


def test_the_band_of_a_difference_is_grey_and_lies_around_no_difference(runs):
    show(runs, DIFFERENCE)
    bands = traces(runs, FIGURE, "band")
    assert [band["meta"]["label"] for band in bands] == ["SD of the others"] * 3
    ends = known(bands[0]["y"])
    half = np.std([1 / 3, -0.7], ddof=1)
    assert sorted({round(abs(v), 12) for v in ends if np.isfinite(v)}) == [
        round(half, 12)
    ]
    assert (
        "Line: seed 0 minus the mean of the other 2 runs at the same step."
        in caption(runs)
    )
    code = runs.text_content(f"[id='{FIGURE}'] pre code")
    assert 'values.drop_sel(run="seed 0")' in code and '["entropy"]' in code


def test_a_missing_step_says_not_recorded(runs):
    show(runs, DIFFERENCE)
    place = traces(runs, FIGURE, "line")[0]["x"][2]
    hover(runs, FIGURE, place, 0.5)
    assert "not recorded: seed 1" in runs.inner_text("#tooltip")
    show(runs, OVERLAY)
    hover(runs, FIGURE, place, 0.5)
    assert "seed 1: not recorded" in runs.inner_text("#tooltip")


def test_hovering_a_difference_tells_its_terms(controls):
    show(controls, DIFFERENCE)
    place = traces(controls, FIGURE, "line")[0]["x"][1]
    hover(controls, FIGURE, place, 0.5)
    words = controls.inner_text("#tooltip")
    assert f"Step {STEPS[READ[1]]}" in words and "run: 2.750" in words
    assert (
        "mean of the controls: 1.128" in words
        and "95 % of further control runs: −" in words
    )


def test_controls_stand_beside_the_run_in_its_colours(controls):
    lines = traces(controls, FIGURE, "line")
    bands = traces(controls, FIGURE, "control")
    assert [b["meta"]["label"] for b in bands] == [
        one["meta"]["label"] for one in lines
    ]
    show(controls, SIDE)
    found = colours(controls)
    assert [line[1] for line in found[::3]] == [
        "run",
        *(f"control: turned {i}" for i in range(3)),
    ]
    assert [line[2] for line in found[:3]] == [line[2] for line in found[3:6]]
    shown = traces(controls, FIGURE, "line")
    assert shown[0]["steps"] == list(STEPS)
    assert shown[3]["steps"] == [STEPS[i] for i in READ]
    assert not traces(controls, FIGURE, "control")  # they have panels
    assert "Control runs were read at 4 of 8 steps." in caption(controls)


def test_a_control_band_is_that_of_each_line_and_not_of_all_together(controls):
    show(controls, OVERLAY)
    bands = traces(controls, FIGURE, "control")
    assert len(bands) == len(LAYERS) and all(
        sum(v is None for v in b["y"]) == 1 for b in bands
    )
    for i, band in enumerate(bands):  # at the first step a layer's value is i / 2
        assert np.nanmin(known(band["y"])) == pytest.approx(i / 2 + 0.1)
    looks = controls.evaluate(
        """(id) => ["control", "line"].map((part) => document.querySelector(`[id="${id}"] .plot`)
          .data.filter((t) => t.meta?.part === part).map((t) => t.line.color))""",
        FIGURE,
    )
    assert looks[0] == looks[1] and len(set(looks[0])) == len(LAYERS)
    key = controls.inner_html(f"[id='{FIGURE}'] .plot")
    assert "control runs (turned), in the colour of their line" in key
    place = bands[0]["x"][0]
    hover(controls, FIGURE, place, 0.02)
    words = controls.inner_text("#tooltip")
    assert "layer 2" in words or "mlp" in words
    # 1 for the layer, .1 to .7 by control.
    assert "control runs (turned): 1.100 to 1.700" in words


def test_keys_reach_the_views(runs):
    show(runs, OVERLAY)
    runs.focus(f"[id='{FIGURE}'] .segments[aria-label=Runs] button >> nth=0")
    runs.keyboard.press("ArrowRight")  # the views are one stop of the Tab key
    runs.keyboard.press("Enter")
    assert pressed(runs) == [SIDE]
    runs.keyboard.press("ArrowRight")
    runs.keyboard.press("Space")
    assert pressed(runs) == [DIFFERENCE]
    runs.keyboard.press("Tab")
    focused = "document.activeElement.dataset.dimension"
    assert runs.evaluate(focused) == "run"
    runs.keyboard.press("ArrowDown")
    assert "Line: seed 1 minus the mean of the other 2 runs" in caption(runs)


def test_of_many_runs_the_others_are_a_band_of_their_range(visit):
    page = opened(visit, "seven", lambda: compared([float(i) for i in range(7)]))
    assert len(traces(page, FIGURE, "line")) == len(LAYERS)
    band = traces(page, FIGURE, "band")[0]
    assert band["meta"]["label"] == "range of the others"
    ends = known(band["y"])
    assert (np.nanmin(ends), np.nanmax(ends)) == (1.0, 6.0 + (len(STEPS) - 1) / 4)
    assert "Grey band: range of the other runs." in caption(page)


def test_figures_without_several_runs_have_no_such_control(visit):
    page = opened(visit, "alone", lambda: made_up())
    assert not page.locator(".segments[aria-label=Runs]").count()


def test_a_phone_and_paper_show_every_view(visit):
    page = opened(
        visit,
        "by-tokens-runs",
        lambda: og.compare(seeds(2, controls=True)),
        width=390,
        height=844,
    )
    figure = "attention-entropy/entropy"
    for view in VIEWS:
        show(page, view, figure)
        assert page.evaluate(
            "document.documentElement.scrollWidth <= window.innerWidth"
        )
        for button in page.locator(f"[id='{figure}'] .segments button").all():
            assert button.bounding_box()["height"] >= 24
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert "seed 0 minus seed 1" in caption(page, figure)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")


def map_of_middle():
    heat = og.figures.Heatmap("map", "Map", value="entropy", middle=1.5)
    return tree_of(with_controls()["entropy"].to_dataset(), heat)


def test_a_difference_is_around_none_and_not_around_the_middle_of_the_values(visit):
    page, figure = opened(visit, "middle", map_of_middle), "entropy/map"
    middles = []
    for view in (SIDE, DIFFERENCE):
        show(page, view, figure)
        page.wait_for_function(
            "([id, view]) => document.querySelector(`[id='${id}'] .segments "
            "[aria-pressed=true]`).textContent === view",
            arg=[figure, view],
        )
        middles.append(
            page.evaluate(
                """(id) => {
                  const { cmin, cmax } = document.querySelector(`[id="${id}"] .plot`).layout.coloraxis;
                  return (cmin + cmax) / 2;
                }""",
                figure,
            )
        )
    assert middles == pytest.approx([1.5, 0])
