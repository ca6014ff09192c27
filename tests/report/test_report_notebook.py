"""A result's figures as objects: named, selected, drawn, as data, as files, and in a notebook."""

import base64
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import ontogeny as og
from helpers import compared_runs, report_kinds
from helpers import report_examples as examples
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.report.choosing import layer_path, layer_paths
from ontogeny.report.notebook.figure import ResultChart
from ontogeny.report.notebook.index import FigureIndex
from ontogeny.report.notebook.picture import INLINE_BYTES
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.study import StudyResult

STEPS = examples.STEPS
SIGNATURES = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}


@pytest.fixture(scope="module")
def result():
    return StudyResult(examples.controlled_tree())


@pytest.fixture(scope="module")
def kinds():
    return FigureIndex(report_kinds.kinds_tree())


def image_of(html):
    """Return the kind and the content of the one image in a piece of HTML."""
    ((kind, content),) = re.findall(r'src="data:image/([a-z+]+);base64,([^"]+)"', html)
    return kind, base64.b64decode(content)


def parts_of(html):
    """Return the names of all tags and attributes."""
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.extend([tag, *(name for name, _ in attrs)])

    Reader().feed(html)
    return found


def axes(**size):
    return Figure(**size).subplots()


def test_figures_are_listed_by_the_names_of_the_page(result, tmp_path):
    figures = result.figures()
    page = result.report(tmp_path / "page.html").read_text("utf-8")
    assert len(figures) > 3 and all(f'id="{name}"' in page for name in figures)
    assert figures.table.columns.tolist() == ["figure", "title", "kind"]
    assert "loss/loss" in figures and "loss/loss" in repr(figures)
    assert figures["loss/loss"].title == result.figure("loss/loss").title


def test_the_data_are_those_of_the_files(result, tmp_path):
    og.report.write_figures(result, tmp_path, formats=[])
    for name, figure in result.figures().items():
        written = pd.read_csv(tmp_path / f"{name.replace('/', '-')}.csv")
        pd.testing.assert_frame_equal(
            written, figure.data, check_dtype=False, check_categorical=False
        )
        assert figure.save(tmp_path / "own.csv").read_text("utf-8") == (
            tmp_path / f"{name.replace('/', '-')}.csv"
        ).read_text("utf-8")
    chart = pd.read_csv(tmp_path / "chart.csv")
    assert chart.columns.tolist() == result.chart().data.columns.tolist()
    assert len(chart) == len(result.chart().data)


@pytest.mark.slow
def test_pictures_are_those_of_the_files(tmp_path):
    tree = examples.controlled_tree()
    result = StudyResult(tree.filter(lambda node: node.name in (tree.name, "loss")))
    og.report.write_figures(result, tmp_path / "all", formats=["svg", "png", "pdf"])
    for kind, start in SIGNATURES.items():
        own = result.figure("loss/loss").save(tmp_path / "new" / f"loss.{kind}")
        content = own.read_bytes()
        assert content.startswith(start)
        assert content == (tmp_path / "all" / f"loss-loss.{kind}").read_bytes()
        chart = result.chart().save(tmp_path / f"chart.{kind}")
        assert chart.read_bytes() == (tmp_path / "all" / f"chart.{kind}").read_bytes()


@pytest.mark.parametrize("name", ["x.html", "x", "x.jpg", "x.csv.gz"])
def test_other_files_are_refused(result, tmp_path, name):
    with pytest.raises(
        ArgumentError, match=r"must end with one of \.pdf, \.svg, \.png, \.csv"
    ):
        result.figure("loss/loss").save(tmp_path / "new" / name)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_every_kind_is_drawn_alone_and_by_a_notebook(kinds):
    for name, figure in kinds.items():
        html = figure._repr_html_()
        assert "<script" not in html and "http" not in html.replace(
            "http://www.w3.org", ""
        )
        if figure.kind == "table":
            assert "<table>" in html and "<img" not in html
            with pytest.raises(ArgumentError, match="is a table"):
                figure.matplotlib()
            with pytest.raises(ArgumentError, match=r"a table is saved as \.csv"):
                figure.save("x.png")
            continue
        kind, content = image_of(html)
        assert kind in ("svg+xml", "png") and len(content) < 3 * INLINE_BYTES, name
        if kind == "svg+xml":
            assert ElementTree.fromstring(content).tag.endswith("svg")
        drawn = np.atleast_1d(figure.matplotlib())
        assert all(isinstance(each, Axes) for each in drawn)
        assert len(drawn) == figure._panels


def test_a_drawing_of_many_points_is_shown_as_png(monkeypatch, result):
    monkeypatch.setattr("ontogeny.report.notebook.picture.INLINE_BYTES", 1000)
    monkeypatch.setattr("ontogeny.report.notebook.figure.INLINE_BYTES", 1000)
    for picture in (result.figure("loss/loss"), result.chart()):
        assert image_of(picture._repr_html_())[0] == "png"


def test_a_figure_is_drawn_on_the_callers_axes(kinds):
    for name in ("loss/loss", "points/plane", "regimes/each"):
        mine = axes(figsize=(6, 4))
        assert kinds[name].matplotlib(mine) is mine and mine.has_data()
        assert mine.get_xlabel() and mine.figure.get_size_inches().tolist() == [6, 4]
    named = mine.get_legend().get_texts()
    assert {"layer 0", "layer 1", "layer 2"} <= {text.get_text() for text in named}
    space = Figure().add_subplot(projection="3d")
    assert kinds["points/space"].matplotlib(space) is space


@pytest.mark.parametrize(
    ("name", "ax", "words"),
    [
        ("matrices/confusion", None, "has 8 panels, one for each step"),
        ("words/clouds", None, "is a cloud of words"),
        (
            "points/space",
            None,
            "ax must have the projection '3d'; it has 'rectilinear'",
        ),
        ("scores/windows", None, "is a table"),
        ("loss/loss", "mine", "ax must be of type Axes"),
    ],
)
def test_axes_that_do_not_fit_are_refused(kinds, name, ax, words):
    with pytest.raises(ArgumentError, match=words):
        kinds[name].matplotlib(axes() if ax is None else ax)


def test_the_settings_of_the_caller_are_kept(result):
    with mpl.rc_context({"font.size": 23, "svg.fonttype": "none"}):
        before = dict(mpl.rcParams)
        result.figure("loss/loss")._repr_html_()
        result.chart("intervals")._repr_html_()
        result.figure("loss/loss").matplotlib()
        assert dict(mpl.rcParams) == before


def test_layers_are_chosen_as_in_the_result(result):
    whole = result.figure("concepts-ica/distance").data
    paths = [f"model.layers.{number}.mlp" for number in (0, 3)]
    for layers in ([0, 3], paths, ["layer 0", "layer 3"], [3, 0, 0], (0, -3)):
        chosen = result.figure("concepts-ica/distance", layers=layers).data
        expected = whole[whole.layer.isin(paths)].reset_index(drop=True)
        pd.testing.assert_frame_equal(chosen, expected)
    one = result.figure("concepts-ica/distance", layers=3)
    assert set(one.data.layer) == {paths[1]}


def test_steps_are_chosen_by_label_and_cut_the_axis(result):
    whole = result.figure("attention-entropy/heads").data
    for steps, kept in (
        (slice(2, 20), [s for s in STEPS if 2 <= s <= 20]),
        (slice(None, 1), [0, 1]),
        ([100, 0], [0, 100]),
        ([0, -1], [0, 1000]),
        (8, [8]),
        (np.array([1, 2]), [1, 2]),
    ):
        figure = result.figure("attention-entropy/heads", layers=[0], steps=steps)
        assert sorted(set(figure.data.step)) == kept
        assert len(figure.data) == len(whole) * len(kept) // len(STEPS) // 6
        assert image_of(figure._repr_html_())
    ticks = (
        result.figure("loss/loss", steps=slice(2, 20)).matplotlib().get_xticklabels()
    )
    shown = {int(text.get_text()) for text in ticks if text.get_text()}
    assert shown and min(shown) >= 2 and max(shown) <= 20


@pytest.mark.parametrize(
    ("name", "chosen", "words"),
    [
        (
            "loss/loss",
            {"layers": 0},
            "'loss/loss' has no layers; its dimensions are step",
        ),
        (
            "concepts-ica/distance",
            {"layers": [9]},
            "layer must be one of 'layer 0', 'layer 1'",
        ),
        ("concepts-ica/distance", {"layers": "layer 9"}, "Did you mean 'layer"),
        ("concepts-ica/distance", {"layers": []}, "at least one layer"),
        ("concepts-ica/distance", {"layers": 0.5}, "layers must be a list"),
        (
            "loss/loss",
            {"steps": [3]},
            "step must be one of the result's 26 steps.*nearest is 2",
        ),
        ("loss/loss", {"steps": []}, "at least one step"),
        (
            "loss/loss",
            {"steps": slice(2000, 3000)},
            "no step lies from 2000 to 3000; .* 0, 1, 2",
        ),
        ("loss/loss", {"steps": slice(0, 8, 2)}, "a slice of steps must go from one"),
        ("loss/loss", {"steps": "all"}, "steps must be a list"),
    ],
)
def test_a_choice_that_the_figure_does_not_have_is_refused(result, name, chosen, words):
    with pytest.raises(ArgumentError, match=words):
        result.figure(name, **chosen)


def test_a_wrong_name_is_answered_with_the_nearest(result):
    for wrong, near in (
        ("loss/lose", "Nearest: 'loss/loss'"),
        ("concepts-ica/procrustes", "Nearest: 'concepts-ica/distance'"),
        ("concept-ica", "Nearest: 'concepts-ica/distance'"),
        ("xyz", "there are 'loss/loss', "),
        (["loss/loss"], "there is no figure ['loss/loss']"),
    ):
        with pytest.raises(
            ArgumentError, match=re.escape(f"there is no figure {wrong!r}")
        ) as said:
            result.figure(wrong)
        assert near in str(said.value)
    node = xr.Dataset({"x": ("step", [1.0])}, {"step": [0]})
    bare = FigureIndex(xr.DataTree.from_dict({"a": node}))
    assert repr(bare) == "no figures"
    with pytest.raises(ArgumentError, match="the result has none"):
        bare["a/x"]


def test_a_figure_that_cannot_be_drawn_says_why():
    tree = examples.plain_tree()
    path, node = next((p, n) for p, n in tree.children.items() if "figures" in n.attrs)
    good = json.loads(node.attrs["figures"])[0]
    figure = good | {"value": "nothing", "id": "bad"}
    unknown = figure | {"kind": "hologram", "id": "new"}
    node.attrs["figures"] = json.dumps([figure, unknown, good])
    figures = FigureIndex(tree)
    with pytest.raises(
        ArgumentError, match=f"'{path}/bad' cannot be drawn: .*'nothing'"
    ):
        figures[f"{path}/bad"]
    with pytest.raises(
        ArgumentError, match=f"'{path}/new' cannot be drawn: This version draws"
    ):
        figures[f"{path}/new"]
    with pytest.warns(StudyWarning, match=r"^2 of \d+ figures.*/bad: .*; .*/new: "):
        drawn = dict(figures.items())
    assert f"{path}/{good['id']}" in drawn
    assert drawn.keys() == set(figures) - {f"{path}/bad", f"{path}/new"}
    with pytest.warns(StudyWarning):
        assert len(figures.values()) == len(drawn)


def test_negative_layers_count_depths_and_not_modules():
    paths = ["embed", "h.0.mlp", "h.0.attn", "h.1.mlp", "h.1.attn#2", "norm"]
    assert layer_paths(paths, -1) == layer_paths(paths, 1) == paths[3:5]
    assert layer_path([*paths[:2], "h.7.mlp", "norm"], -1) == "h.7.mlp"
    with pytest.raises(ArgumentError, match="layer must be one of"):
        layer_paths(paths, -3)


def test_a_figure_of_a_node_that_failed_is_not_answered_with_others():
    tree = examples.plain_tree()
    tree["lost"] = xr.DataTree(
        xr.Dataset(attrs={"failed": "no cell could be computed."})
    )
    tree["bare"] = xr.DataTree(xr.Dataset({"x": ("step", [1.0])}, {"step": [0]}))
    figures = FigureIndex(tree)
    with pytest.raises(
        ArgumentError, match=r"'lost' has none, because it failed: no cell could"
    ):
        figures["lost/x"]
    with pytest.raises(
        ArgumentError, match=r"there is no figure 'bare/x': 'bare' has none\.$"
    ):
        figures["bare/x"]


def test_what_sets_a_run_apart_is_a_figure_of_its_own(tmp_path):
    both = og.compare(compared_runs.seeds(3))
    own = both.figure("loss/loss").difference()
    og.report.write_figures(both, tmp_path, formats=[])
    written = pd.read_csv(tmp_path / "loss-loss-difference.csv")
    assert written.columns.tolist() == own.data.columns.tolist() and len(
        written
    ) == len(own.data)
    assert image_of(own._repr_html_()) and own.name == "loss/loss-difference"
    alone = FigureIndex(examples.plain_tree())
    with pytest.raises(ArgumentError, match="no other runs"):
        next(iter(alone.values())).difference()


def test_the_chart_has_the_views_of_the_page(result):
    assert result.chart().view == "cells"
    assert len(result.chart("intervals").data.run.unique()) > 1
    mine = axes(figsize=(8, 6))
    assert result.chart().matplotlib(mine) is mine and mine.texts
    assert og.compare(compared_runs.seeds(3)).chart().view == "intervals"
    with pytest.raises(
        ArgumentError, match="view must be one of 'cells', 'intervals'; got 'rows'"
    ):
        result.chart("rows")


def test_the_summary_has_the_sentences_of_the_page(result, tmp_path):
    summary = result.summary()
    page = result.report(tmp_path / "page.html").read_text("utf-8")
    words = re.sub(r"<[^>]+>", "", page).replace("&#39;", "'").replace("&amp;", "&")
    words = words.replace("&nbsp;", " ")
    assert summary.heading in words and len(summary.sentences) > 2
    for sentence in summary.sentences:
        # The page folds what names an option.
        for part in re.split(r"(?<=\.) ", sentence):
            assert part in words, part
        assert sentence.split(".")[0].split()[0] in str(summary)
    assert max(map(len, str(summary).splitlines())) <= 100
    # What failed comes before what was found.
    assert "1 of 26 cells failed" in str(summary)
    rows = summary.data
    assert rows.row.is_unique and {"verdict", "learned", "half_step"} <= set(
        rows.columns
    )


def test_a_comparison_is_summed_up_in_its_own_words():
    both = og.compare(compared_runs.seeds(3, controls=True))
    assert both.summary().heading == "Loss improved by learning in 3 of 3 runs"


def test_texts_of_a_result_are_escaped():
    tree = report_kinds.hostile_kinds_tree()
    tree.attrs["title"] = "<script>alert(1)</script>"
    figures = FigureIndex(tree)
    shown = [figures._repr_html_(), ResultSummary(tree)._repr_html_()]
    shown.append(ResultChart(tree)._repr_html_())
    for name in figures:
        try:
            shown.append(figures[name]._repr_html_())
        except ArgumentError:
            continue
    tags = {
        "figure",
        "b",
        "br",
        "img",
        "figcaption",
        "small",
        "table",
        "tr",
        "th",
        "td",
        "div",
        "p",
        "h4",
        "strong",
    }
    for html in shown:
        assert set(parts_of(html)) <= tags | {"style", "alt", "src"}
