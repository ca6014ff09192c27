"""The developmental chart: order, places, shades and marks say what the rows say."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny import report
from ontogeny.claims import Reason
from ontogeny.figures import Section, attach
from ontogeny.report.chart.canvas import NARROW, WIDE
from ontogeny.report.chart.draw import draw_chart
from ontogeny.report.chart.groups import MAX_ROWS, arrange
from ontogeny.report.colours import LEVELS
from ontogeny.report.page.html import render_page
from ontogeny.report.scales import StepScale
from ontogeny.words.content import read_content
from ontogeny.words.row_words import is_news, standing_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tree, layout=WIDE):
    content = read_content(tree)
    drawing = draw_chart(content, layout)
    return content, drawing, ElementTree.fromstring(drawing.svg)


def chart_rows(root):
    return [g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("row ")]


def parts(root, tag, kind="log"):
    """Elements of the chart, those on the step axis on one kind of axis."""
    other = {"log": "on-linear", "linear": "on-log"}[kind]
    for child in root:
        if child.get("class") != other:
            if child.tag == f"{SVG}{tag}":
                yield child
            yield from parts(child, tag, kind)


def cells(group):
    """Left and right edges of the cells of each class or hatch in a row."""
    found = {}
    for path in parts(group, "path"):
        kind = path.get("class", "")
        if re.fullmatch(r"q\d+|hatched|missing", kind):
            numbers = re.findall(r"M([\d.-]+) [\d.-]+H([\d.-]+)", path.get("d"))
            found[kind] = [(float(a), float(b)) for a, b in numbers]
    return found


def outline(shape):
    """The points of a path of M, L, H and V, shape (n, 2)."""
    points = []
    for command, rest in re.findall(r"([MLHV])([\d. -]+)", shape):
        numbers = [float(n) for n in rest.split()]
        x, y = points[-1] if points else (0.0, 0.0)
        points.append(
            {"H": [numbers[0], y], "V": [x, numbers[0]]}.get(command, numbers)
        )
    return np.array(points)


def one_row_tree(progress, distinct, steps, developed=True, **variables):
    data = xr.Dataset(
        {
            "progress": (("row", "step"), [progress]),
            "distinct": (("row", "step"), [distinct]),
            "changed": ("row", [developed]),
            **{name: ("row", [value]) for name, value in variables.items()},
        },
        coords={
            "step": steps,
            "row": ["layers.3.mlp · concepts"],
            "row_layer": ("row", ["layers.3.mlp"]),
            "row_name": ("row", ["concepts"]),
        },
    )
    return xr.DataTree.from_dict({"one": attach(data, Section("One", "One."), [])})


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_rows_are_ordered_by_half_way_step_within_their_groups(layout):
    content, _, root = drawn(examples.developing_tree(), layout)
    shown = [content.rows[int(g.get("data-row"))] for g in chart_rows(root)]
    assert len(shown) == sum(r.changed and r.role != "motion" for r in content.rows) + 2
    folded = [text for text in root.itertext() if re.match(r"\d+ measures: ", text)]
    assert len(folded) == 1 and "half-way at" in folded[0], (
        "one line for the rows of weights"
    )
    kinds = [r.changed for r in shown]
    assert kinds == sorted(kinds, reverse=True)
    halves = [row.half_step for row in shown if row.changed and row.role != "motion"]
    assert halves == sorted(halves) and len(halves) == 17


def test_cells_tile_the_axis_and_shade_by_progress():
    steps = [0, 1, 2, 4, 8, 16, 32]
    progress = [0.0, 0.1, 0.3, math.nan, 0.7, 1.4, 1.0]
    distinct = [False, False, True, True, True, True, True]
    _, _, root = drawn(one_row_tree(progress, distinct, steps))
    found = cells(chart_rows(root)[0])
    step_30, step_70 = round(0.3 * (LEVELS - 1)), round(0.7 * (LEVELS - 1))
    assert set(found) == {
        "hatched",
        "missing",
        f"q{step_30}",
        f"q{step_70}",
        f"q{LEVELS - 1}",
    }
    assert len(found["hatched"]) == 2, "step 0 stands apart"
    assert len(found[f"q{LEVELS - 1}"]) == 1, (
        "neighbours of one shade are joined; 1.4 is clipped"
    )
    edges = sorted(pair for pairs in found.values() for pair in pairs)
    assert edges[0][0] == pytest.approx(WIDE.left, abs=0.1)
    assert edges[-1][1] == pytest.approx(WIDE.left + WIDE.plot_width, abs=0.1)
    assert all(b[0] == pytest.approx(a[1], abs=0.11) for a, b in pairwise(edges[1:]))
    assert edges[1][0] - edges[0][1] > 5


def test_rows_that_did_not_develop_are_hatched_throughout():
    steps = list(range(10))
    tree = one_row_tree(np.linspace(0, 1, 10), [True] * 10, steps, developed=False)
    _, _, root = drawn(tree)
    assert set(cells(chart_rows(root)[0])) == {"hatched"}


def test_rows_that_were_not_judged_keep_their_colour_beyond_noise():
    """They were hatched, which is explained as no larger than noise and chance would give."""
    distinct = [False, False, True, True, True]
    course = [0, 0.1, 0.5, 1.5, 1], distinct, [0, 10, 20, 30, 40]
    content, _, root = drawn(one_row_tree(*course, developed=False, judgeable=False))
    assert standing_of(content.rows[0]).reason is Reason.FEW_CHECKPOINTS
    shades = cells(chart_rows(root)[0])
    assert set(shades) == {"hatched", f"q{round(0.5 * (LEVELS - 1))}", f"q{LEVELS - 1}"}
    assert "over" in {path.get("class") for path in parts(chart_rows(root)[0], "path")}
    page = render_page(content)
    (row,) = Page(page).data["rows"]
    assert row["told"] is None and row["state"] == "open: too few checkpoints"
    words = "A row that was not judged has colour beyond its noise"
    judged, _, _ = drawn(one_row_tree(*course, developed=False, judgeable=True))
    assert words in page and words not in render_page(judged)
    assert Page(render_page(judged)).data["rows"][0]["told"] is False


def test_half_way_mark_lies_at_its_step_with_its_interval():
    steps = [0, 1, 10, 100, 1000]
    marks = {"half_step": 100.0, "half_step_low": 10.0, "half_step_high": 1000.0}
    content, drawing, root = drawn(
        one_row_tree([0, 0, 0.2, 0.5, 1], [True] * 5, steps, **marks)
    )
    left, width, low, high = drawing.plot

    def x(step):
        place = StepScale(content.steps).positions([step])[0]
        return left + width * (place - low) / (high - low)

    row = chart_rows(root)[0]
    dot = next(c for c in parts(row, "circle") if c.get("class") == "dot")
    assert float(dot.get("cx")) == pytest.approx(x(100), abs=0.06)
    whisker = next(p for p in parts(row, "path") if p.get("class") == "whisker")
    ends = re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)", whisker.get("d")).groups()
    assert [float(e) for e in ends] == pytest.approx([x(10), x(1000)], abs=0.06)
    assert "100 (10–1,000)" in "".join(row.itertext())


def test_another_run_in_the_folder_is_a_break_before_its_first_step():
    tree = examples.developing_tree()
    at, step = 3, int(examples.STEPS[3])
    seam = examples.finding([step], "another run") | {"kind": "restart"}
    tree.attrs["findings"] = json.dumps([seam])
    content, drawing, root = drawn(tree)
    left, width, low, high = drawing.plot
    between = np.mean(
        StepScale(content.steps).positions(examples.STEPS[at - 1 : at + 1])
    )
    (line,) = (p for p in parts(root, "path") if p.get("class") == "restart")
    place = float(re.match(r"M([\d.]+)", line.get("d")).group(1))
    assert place == pytest.approx(
        left + width * (between - low) / (high - low), abs=0.06
    )
    assert "Another run" in "".join(line.itertext())


def test_loss_findings_and_boundaries_are_on_the_step_axis():
    tree = examples.developing_tree()
    tree.attrs["boundaries"] = json.dumps([32, {"step": 500, "low": 450}])
    content, drawing, root = drawn(tree)
    left, width, low, high = drawing.plot
    scale = StepScale(content.steps)

    def x(step):
        return left + width * (scale.positions([step])[0] - low) / (high - low)

    paths = list(parts(root, "path"))
    triangles = [p for p in paths if p.get("class") == "finding"]
    starts = [float(re.match(r"M([\d.]+)", p.get("d")).group(1)) + 5 for p in triangles]
    assert starts == pytest.approx([x(550), x(600)], abs=0.06)
    assert all("identical weights" in "".join(p.itertext()) for p in triangles)
    lines = [p for p in paths if p.get("class") == "boundary"]
    assert [
        float(re.match(r"M([\d.]+)", p.get("d")).group(1)) for p in lines
    ] == pytest.approx([x(32), x(500)], abs=0.06)
    curve = next(p for p in paths if p.get("class") == "curve")
    points = outline(curve.get("d"))
    assert points[:, 0] == pytest.approx([x(s) for s in examples.STEPS], abs=0.06)
    loss = tree["loss"]["loss"].values.astype(float)
    drop = (loss.max() - loss) / np.ptp(loss)
    assert (points[:, 1] - points[:, 1].min()) / np.ptp(points[:, 1]) == pytest.approx(
        drop, abs=3e-3
    )


def test_many_rows_are_thinned_evenly_with_a_notice():
    content, drawing, root = drawn(examples.huge_tree(heads=2))
    shown = [content.rows[int(g.get("data-row"))] for g in chart_rows(root)]
    assert len(content.rows) == 129 and MAX_ROWS * 0.8 <= len(shown) <= MAX_ROWS + 2
    assert f"{len(shown)} measures of " in drawing.notices[0]
    quantities = {row.quantity for row in content.rows if is_news(row)}
    assert {row.quantity for row in shown} == quantities
    for quantity in quantities - {"attention entropy", "Loss on held-out text"}:
        layers = [int(r.layer.split(".")[2]) for r in shown if r.quantity == quantity]
        assert min(layers) == 0 and max(layers) == 31
        assert np.ptp(np.diff(sorted(layers))) <= 1


def test_few_rows_are_all_kept():
    content = read_content(examples.developing_tree())
    kept = [row for group in arrange(content.rows) for row in group.rows]
    assert sorted(map(id, kept)) == sorted(map(id, content.rows))


def test_long_runs_draw_no_more_cells_than_can_be_seen():
    steps = list(range(1000))
    progress = np.tile([0.2, 0.8], 500)
    _, drawing, root = drawn(one_row_tree(progress, [True] * 1000, steps))
    assert sum(len(pairs) for pairs in cells(chart_rows(root)[0]).values()) <= 220
    assert any("of 1,000 steps shown as cells" in n for n in drawing.notices)


def test_standalone_chart_is_valid_and_carries_its_colours():
    text = report.chart_svg(examples.developing_tree())
    root = ElementTree.fromstring(text)
    assert root.get("width") and root.get("viewBox")
    assert not list(root.iter(f"{SVG}a")) and not list(root.iter(f"{SVG}script"))
    style = next(root.iter(f"{SVG}style")).text
    assert "prefers-color-scheme: dark" in style and "var(" not in style
    used = {c for e in root.iter() for c in (e.get("class") or "").split()}
    missing = {c for c in used if re.fullmatch(r"q\d+", c) and f".{c}{{" not in style}
    assert len(used & {f"q{i}" for i in range(LEVELS)}) == LEVELS and not missing


def test_hostile_labels_stay_text_in_the_chart():
    for text in (
        report.chart_svg(examples.hostile_tree()),
        drawn(examples.hostile_tree(), NARROW)[1].svg,
    ):
        root = ElementTree.fromstring(text)
        tags = {e.tag.removeprefix(SVG) for e in root.iter()}
        assert not tags & {"script", "img", "image", "b", "foreignObject", "iframe"}
        assert any(
            examples.HOSTILE[0] in (e.text or "") for e in root.iter(f"{SVG}title")
        )


def test_labels_are_text_in_their_own_script():
    text = report.chart_svg(examples.hostile_tree())
    assert "مرحبا 世界 🙂" in text
