"""The forest plot: marks stand at the half-change steps of the result, and claim no more."""

import dataclasses
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ontogeny as og
from helpers import compared_runs
from helpers import report_examples as examples
from ontogeny import report
from ontogeny.claims import Certainty, Kind
from ontogeny.dynamics.reasons import Reason as RowReason
from ontogeny.figures import Section, attach
from ontogeny.report.chart.canvas import NARROW, WIDE
from ontogeny.report.chart.draw import draw_chart, lay_chart, views_of
from ontogeny.report.chart.groups import MAX_ROWS, arrange
from ontogeny.report.files.overview import write_overview
from ontogeny.report.scales import StepScale
from ontogeny.words.content import read_content
from ontogeny.words.row_words import (
    control_half_words,
    controls_along,
    facts,
    half_facts,
    is_news,
    spoken,
    standing_of,
)
from ontogeny.words.rows import ControlRow
from ontogeny.words.sections import mark

SVG = "{http://www.w3.org/2000/svg}"


def standalone(content, view="intervals", layout=WIDE):
    """One view of the rows as SVG."""
    canvas, _ = lay_chart(content, layout, (view,))
    return f'<svg xmlns="http://www.w3.org/2000/svg">{canvas.svg}</svg>'


def forest(tree, view="intervals", layout=WIDE):
    """Rows of the result and, beside each, its group of the standalone drawing."""
    content = read_content(tree)
    root = ElementTree.fromstring(standalone(content, view, layout))
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("row ")]
    return content, [(content.rows[int(g.get("data-row"))], g) for g in groups]


def dots(group, *classes):
    """Places of the dots of these classes, from left to right."""
    circles = (c for c in group.iter(f"{SVG}circle") if c.get("class") in classes)
    return sorted(float(c.get("cx")) for c in circles)


def places(content, steps, layout=WIDE):
    canvas, _ = lay_chart(content, layout, views_of(content))
    known = [step for step in steps if math.isfinite(step)]
    return sorted(canvas.x_of_step(step) for step in known)


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_marks_stand_at_the_half_change_steps_of_the_result(layout):
    content, drawn = forest(examples.controlled_tree(), layout=layout)
    news = {row.name for row in content.rows if is_news(row)}
    assert news and news <= {row.name for row, _ in drawn}
    for row, group in drawn:
        own = dots(group, "dot", "open-dot")
        assert own == pytest.approx(places(content, [row.half_step], layout), abs=0.06)
        (bar,) = [
            p for p in group.iter(f"{SVG}path") if p.get("class") == "whisker"
        ] or [None]
        if bar is not None:
            low, high = map(float, re.findall(r"[MH]([\d.]+)", bar.get("d")))
            ends = places(content, [row.half_step_low, row.half_step_high], layout)
            assert [low, high] == pytest.approx(ends, abs=0.06)
        controls = [each.half_step for each in row.controls]
        assert dots(group, "control-dot") == pytest.approx(
            places(content, controls, layout), abs=0.06
        )


def test_both_views_have_the_same_rows_in_the_same_places():
    tree = examples.controlled_tree()
    (_, cells), (_, marks) = forest(tree, "cells"), forest(tree)
    assert [row.name for row, _ in cells] == [row.name for row, _ in marks]
    shades = r"q\d+|hatched|missing"
    for (_, one), (_, other) in zip(cells, marks, strict=True):
        kinds = [{p.get("class") for p in g.iter(f"{SVG}path")} for g in (one, other)]
        assert any(re.fullmatch(shades, kind) for kind in kinds[0])
        assert not any(re.fullmatch(shades, kind) for kind in kinds[1])


def test_the_page_holds_both_views_once_and_shows_one():
    content = read_content(examples.controlled_tree())
    root = ElementTree.fromstring(draw_chart(content).svg)
    groups = [g.get("class") for g in root.iter(f"{SVG}g")]
    assert {"in-cells", "in-intervals"} <= set(groups)
    moved = [row for row in content.rows if row.changed and is_news(row)]
    dotted = [
        c for c in root.iter(f"{SVG}circle") if c.get("class") in ("dot", "open-dot")
    ]
    # Marks of rows that changed belong to both views and are there once for each kind of axis.
    assert len(dotted) >= 2 * len(moved)


def test_what_lies_within_a_null_has_an_open_mark():
    tree = examples.controlled_tree(learned=False)
    content, drawn = forest(tree)
    judged = [(row, group) for row, group in drawn if row.role != "motion"]
    assert judged and not any(row.firm for row, _ in judged)
    for row, group in judged:
        assert not dots(group, "dot")
        assert len(dots(group, "open-dot")) == math.isfinite(row.half_step)
    svg = standalone(content)
    assert "not shown to exceed noise, chance or controls" in svg
    assert not re.search("learned|developed|changed beyond", svg, re.IGNORECASE)


def test_rows_that_did_not_change_have_marks_in_this_view_only():
    tree = examples.still_tree()
    content, drawn = forest(tree)
    still = [(row, group) for row, group in drawn if not row.changed]
    for row, group in still:
        assert len(dots(group, "open-dot")) == math.isfinite(row.half_step)
        assert not dots(group, "dot")
    for row, group in forest(tree, "cells")[1]:
        assert bool(dots(group, "dot", "open-dot")) <= row.changed
    assert content.rows


def one_step_tree():
    data = xr.Dataset(
        {"loss": ("step", [8.0])}, coords={"step": [5]}, attrs={"role": "track"}
    )
    return xr.DataTree.from_dict({"loss": data})


def unmoved_tree():
    data = xr.Dataset(
        {
            "progress": (("row", "step"), np.full((1, 3), np.nan)),
            "half_step": ("row", [np.nan]),
        },
        coords={"step": [0, 1, 2], "row": ["nothing"]},
    )
    return xr.DataTree.from_dict({"one": attach(data, Section("One", "One."), [])})


@pytest.mark.parametrize("make", [one_step_tree, unmoved_tree])
def test_without_a_half_change_step_there_is_no_such_view_and_no_file(make, tmp_path):
    assert views_of(read_content(make())) == ("cells",)
    names = {
        path.name for path in report.write_figures(make(), tmp_path, formats=["png"])
    }
    assert not {name for name in names if name.startswith("half-change")}
    page = report.write(make(), tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="chart-view"' not in page


def test_hovering_names_every_control_and_what_was_not_recorded():
    content = read_content(examples.controlled_tree())
    row = next(row for row in content.rows if len(row.controls) == 3)
    ends = enumerate([(1.0, 40), (1.0, 50), (2.0, math.nan)])
    controls = tuple(
        ControlRow(f"walk {i}", 2.0, *last_and_half, -1.5) for i, last_and_half in ends
    )
    told = half_facts(dataclasses.replace(row, controls=controls))
    assert told[1:] == ["walk 0: 40", "walk 1: 50", "walk 2: not recorded"]
    told = half_facts(dataclasses.replace(row, controls=controls * 4))
    assert told[1:] == ["8 control runs: 40–50", "4 control runs: not recorded"]


def test_controls_that_go_another_way_have_no_step_to_compare():
    row = next(
        row for row in read_content(examples.controlled_tree()).rows if row.controls
    )
    ends = {"along": 7.0, "rises": 9.0, "hardly": 7.9}
    controls = tuple(
        ControlRow(n, 8.0, last, 40.0 + last, -3.0) for n, last in ends.items()
    )
    row = dataclasses.replace(row, controls=controls)
    apart = "went another way, or far less"
    assert control_half_words(row) == "47"
    assert half_facts(row)[1:] == ["along: 47", f"rises: {apart}", f"hardly: {apart}"]
    many = half_facts(dataclasses.replace(row, controls=controls * 3))[1:]
    assert many == ["3 control runs: 47", f"6 control runs: {apart}"]
    assert "of controls 47;" in f"{spoken(row)};"
    assert "of controls" not in spoken(dataclasses.replace(row, controls=controls[1:]))


def test_controls_that_two_steps_alone_were_read_of_have_no_half_change_step():
    """Half-way between two steps is the same of all of them: eight controls stood at exactly 10."""
    why = "not known: read at two usable steps"
    content = read_content(examples.controlled_tree())
    row = next(
        row for row in content.rows if row.beyond and row.has_half and row.controls
    )
    twice = tuple(
        ControlRow(f"turned {i}", 1.0, 1.0 + row.change, math.nan) for i in range(8)
    )
    row = dataclasses.replace(row, controls=twice)
    fill = content.voice.fill
    assert fill(control_half_words(row)) == why
    assert f"half-change step of controls {why}" in map(fill, facts(row))
    assert list(map(fill, half_facts(row)[1:])) == [f"8 control runs: {why}"]
    assert len(controls_along(row)) == 8, "they went along, at no step that is known"
    known = ControlRow("turned 8", 1.0, 1.0 + row.change, 40.0)
    row = dataclasses.replace(row, controls=(*twice, known))
    assert control_half_words(row) == "40"


# Several runs.


@pytest.fixture(scope="module")
def seeds():
    """Three seeds; in one of them the entropy of a layer is no more than its motion."""
    runs = compared_runs.seeds(3, controls=True)
    node = runs["seed 1"]["attention-entropy"].to_dataset()
    node["beyond"].values[1] = False
    runs["seed 1"]["attention-entropy"].dataset = node
    return og.compare(runs)


def test_each_run_has_a_dot_at_its_half_change_step(seeds):
    content, drawn = forest(seeds)
    assert [run.name for run in content.rows[0].runs] == ["seed 0", "seed 1", "seed 2"]
    nodes = [seeds[name].to_dataset() for name in ("loss", "attention-entropy")]
    halves = {
        str(label): node.half_step.transpose("row", "run").values[i]
        for node in nodes
        for i, label in enumerate(node.row.values)
    }
    assert len(drawn) == len(halves) == 4
    for row, group in drawn:
        kinds = ("dot", "open-dot", "run-dot", "run-open-dot")
        assert dots(group, *kinds) == pytest.approx(
            places(content, halves[row.label]), abs=0.06
        )
        assert len(dots(group, "dot", "open-dot")) == 1, "one run is drawn in ink"
        own = halves[row.label]
        assert row.half_step == np.median(own)
        assert (row.half_step_low, row.half_step_high) == (own.min(), own.max())


def test_rows_of_runs_stand_by_what_is_shown_in_how_many_of_them(seeds):
    content, drawn = forest(seeds)
    stand = {row.label: standing_of(row) for row, _ in drawn}
    loss = stand.pop("loss")
    assert (loss.kind, loss.where) == (Kind.LEARNED, "every")
    shapes = {node.path: mark(content, node)[0] for node in content.nodes if node.rows}
    assert shapes.pop("loss") == "all" and set(shapes.values()) <= {"all", "some"}
    assert sorted(one.where for one in stand.values()) == ["every", "every", "some"]
    every = [one for one in stand.values() if one.where == "every"]
    assert {(one.kind, one.certainty) for one in every} == {
        (Kind.BEYOND_MOTION, Certainty.SURE)
    }
    (some,) = [(row, group) for row, group in drawn if standing_of(row).where == "some"]
    assert len(dots(some[1], "run-open-dot")) == 1
    assert [run.firm for run in some[0].runs] == [True, False, True]
    told = content.voice.fill(half_facts(some[0])[1])
    assert (
        told.startswith("seed 1: half-change step") and "no control was run" not in told
    )
    assert views_of(content) == ("intervals",)


def test_without_controls_runs_only_changed():
    content, _ = forest(og.compare(compared_runs.seeds(2)))
    stand = {(s.kind, s.certainty, s.where) for s in map(standing_of, content.rows)}
    assert stand == {(Kind.BEYOND_MOTION, Certainty.NOT_TESTED, "every")}
    assert not re.search("learned|control runs", standalone(content), re.IGNORECASE)


def test_control_runs_of_all_runs_are_grey_dots():
    runs = compared_runs.seeds(2, controls=True)
    for k, tree in enumerate(runs.values()):
        node = tree["loss"].to_dataset()
        halves = ("row", "run"), [[30.0 + k, 60.0 + k]]
        change = float((node.last_value - node.first_value).item())
        ends = {
            f"control_{end}": (("row", "run"), [[8.0 + part, 8.0 + part]])
            for end, part in (("first", 0.0), ("last", change))
        }
        tree["loss"].dataset = node.assign(
            control_half_step=halves, **ends
        ).assign_coords(run=["turned 0", "turned 1"])
    content, drawn = forest(og.compare(runs))
    (group,) = [group for row, group in drawn if row.label == "loss"]
    assert dots(group, "control-dot") == pytest.approx(
        places(content, [30.0, 31.0, 60.0, 61.0]), abs=0.06
    )
    (row,) = [row for row, _ in drawn if row.label == "loss"]
    assert {each.name for each in row.controls} == {
        f"turned {i} of seed {k}" for i in (0, 1) for k in (0, 1)
    }


def test_runs_along_the_loss_have_no_half_change_steps():
    tree = og.compare(compared_runs.seeds(2, controls=True), align="loss")
    assert read_content(tree).rows == []
    kinds = {figure["kind"] for figure in json.loads(tree["runs"].attrs["figures"])}
    assert "marks" in kinds


# Files.


def test_files_hold_a_line_for_each_mark(seeds, tmp_path):
    one, three = tmp_path / "one", tmp_path / "three"
    one.mkdir(), three.mkdir()
    content = read_content(examples.controlled_tree())
    names = {path.name for path in write_overview(content, one, ["svg"], [])}
    assert {"half-change-steps.csv", "half-change-steps.svg", "chart.svg"} <= names
    table = pd.read_csv(one / "half-change-steps.csv")
    rows = content.rows
    own = table[table["kind"] == "run"]
    assert own["half_step"].tolist() == pytest.approx(
        [r.half_step for r in rows], nan_ok=True
    )
    assert own["filled"].tolist() == [row.firm for row in rows]
    assert (table["kind"] == "control").sum() == sum(len(row.controls) for row in rows)

    captions = []
    written = write_overview(read_content(seeds), three, ["pdf"], captions)
    names = {
        path.name
        for path in (*written, *report.write_figures(seeds, three, formats=[]))
    }
    assert {"half-change-steps.csv", "half-change-steps.pdf"} <= names
    assert not {"chart.csv", "runs-runs.csv"} & names
    table = pd.read_csv(three / "half-change-steps.csv")
    half = table[(table["row"] == "loss") & (table["kind"] == "run")].set_index("run")[
        "half_step"
    ]
    expected = seeds["loss"].half_step.isel(row=0).to_series()
    assert half.to_dict() == pytest.approx(expected.to_dict())
    pdf = (three / "half-change-steps.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Subtype /Image" not in pdf
    assert "In ink, with its interval: seed 0" in "".join(captions)


def test_the_step_axis_is_that_of_the_slider():
    content = read_content(examples.controlled_tree())
    canvas, _ = lay_chart(content, WIDE, ("intervals",))
    scale = StepScale(content.steps)
    assert (canvas.low, canvas.high) == scale.span


@pytest.mark.parametrize(
    ("stand", "folded"),
    [
        ({"learned": 1, "open": 3}, [False, True]),
        ({"learned": 1, "open": 2}, [False, False]),
        ({"open": 9}, [False]),
        ({"open": 9, "motion": 3}, [False, True]),
        ({"motion": 9}, [False]),
    ],
)
def test_groups_without_news_are_a_line_while_something_stays_open(stand, folded):
    rows = [made_row(how, i) for how, count in stand.items() for i in range(count)]
    assert [group.folded for group in arrange(rows)] == folded


HOW = {
    "learned": {"learned": True, "beyond": True, "changed": True},
    "open": {
        "learned": False,
        "beyond": False,
        "changed": False,
        "reason": RowReason.WITHIN,
    },
    "motion": {"role": "motion"},
}


@cache
def some_row():
    return read_content(examples.controlled_tree()).rows[0]


def made_row(how, number, quantity="q", section="s"):
    row = some_row()
    row = dataclasses.replace(
        row, quantity=quantity, kind=quantity, section=section, half_step=math.nan
    )
    return dataclasses.replace(row, label=str(number), **HOW[how])


def test_a_line_for_folded_rows_counts_all_of_them():
    """Rows were thinned before they were folded: a line said "41 rows" of 75."""
    rows = [made_row("learned", 0)] + [made_row("open", i) for i in range(75)]
    assert arrange(rows)[1].summary == "75 measures: q"


def test_without_news_some_rows_of_every_section_stay_open_and_weights_are_a_line():
    """Of a fine-tuning with 30 layers the chart showed two rows of weights, and nothing else."""
    layers = [made_row("open", i, "entropy", "attention") for i in range(30)]
    groups = [made_row("open", i, f"ability {i}", "abilities") for i in range(24)]
    weights = [made_row("motion", i, "weights", "weights") for i in range(60)]
    shown, folded = arrange([*layers, *groups, *weights])
    assert {row.section for row in shown.rows} == {"attention", "abilities"}
    assert not shown.folded and len(shown.rows) <= MAX_ROWS // 2
    assert [shown.rows[0].label, shown.rows[7].label] == ["0", "29"], (
        "evenly over the layers"
    )
    assert folded.folded and len(folded.rows) == 60
