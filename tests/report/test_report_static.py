"""Figures for papers: drawn from the same tables as the page, the same bytes each time."""

import json
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle

from helpers import report_examples as examples
from helpers.paths import environment
from helpers.planted_runs import controlled
from ontogeny import report
from ontogeny.cli import main
from ontogeny.errors import ArgumentError
from ontogeny.figures import Band, Curves, Heatmap, Section, attach
from ontogeny.report.kinds import draw_figure, figure_notes, read_drawables
from ontogeny.report.paper import draw_chart_figure, style
from ontogeny.report.paper.chart import PAPER
from ontogeny.report.scales import StepScale
from ontogeny.study.results.result_files import write_result
from ontogeny.words.content import read_content

pytestmark = pytest.mark.slow

SIGNATURES = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}


def drawn(tree, path, key):
    """The figure `key` of the node `path`, and what was taken of dimensions left over."""
    content = read_content(tree)
    (one,) = (
        d for d in read_drawables(content) if (d.node.path, d.figure.id) == (path, key)
    )
    with style():
        figure, chosen = draw_figure(one, content), figure_notes(one, content)
        figure.canvas.draw()
    return figure, chosen


def long_lines(axes):
    return [line for line in axes.get_lines() if len(line.get_ydata()) > 2]


def one_node(data, figures, steps):
    tree = xr.DataTree.from_dict({"node": attach(data, Section("Node", ""), figures)})
    tree.attrs = {"steps": "[" + ",".join(map(str, steps)) + "]"}
    return tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("figures")
    report.write_figures(examples.developing_tree(), place)
    return place


def test_every_figure_and_the_chart_are_written_in_every_format(folder):
    tables = {p.stem for p in folder.glob("*.csv")}
    assert len(tables) == 10 and {"chart", "half-change-steps"} <= tables
    for suffix, start in SIGNATURES.items():
        pictures = list(folder.glob(f"*{suffix}"))
        assert {p.stem for p in pictures} == tables | {"first-screen"}
        for path in pictures:
            expected = b"<svg" if path.name == "chart.svg" else start
            assert path.read_bytes().startswith(expected)


def test_same_tree_gives_the_same_bytes_in_another_process(folder, tmp_path):
    code = (
        "import sys\n"
        "import matplotlib; matplotlib.rcParams.update({'font.size': 30, 'lines.linewidth': 9})\n"
        "from helpers import report_examples as examples\n"
        "from ontogeny import report\n"
        "tree = examples.developing_tree()\n"
        "keep = ['loss', 'attention-entropy', 'variance-rank']\n"
        "tree = tree.filter(lambda n: not n.path.strip('/') or n.name in keep)\n"
        "report.write_figures(tree, sys.argv[1])\n"
    )
    env = environment(PYTHONHASHSEED="7")
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=env)
    of_all = ("chart", "half-change-steps", "first-screen", "captions")
    mine = [p for p in sorted(tmp_path.iterdir()) if p.stem not in of_all]
    assert len(mine) == 4 * 4
    for path in mine:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_settings_of_the_reader_are_given_back(tmp_path):
    with matplotlib.rc_context({"font.size": 31, "pdf.fonttype": 3}):
        before = dict(matplotlib.rcParams)
        report.write_figures(examples.plain_tree(), tmp_path, formats=["pdf"])
        assert dict(matplotlib.rcParams) == before


def test_neither_pyplot_nor_matplotlib_is_imported_before_it_is_needed(tmp_path):
    code = (
        "import sys, numpy as np, xarray as xr\n"
        "from ontogeny import report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "data = xr.Dataset({'loss': ('step', [2.0, 1.0])}, coords={'step': [0, 9]})\n"
        "report.write_figures(xr.DataTree.from_dict({'loss': data}), sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_fonts_are_truetype_and_text_in_svg_is_text(folder):
    pdf = (folder / "loss-loss.pdf").read_bytes()
    assert b"/TrueType" in pdf or b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    texts = ElementTree.parse(folder / "attention-entropy-mean.svg").iter(
        "{http://www.w3.org/2000/svg}text"
    )
    words = {"".join(t.itertext()) for t in texts}
    assert {"training step", "layer 0", "uniform attention", "audit finding"} <= words


def test_pictures_are_one_or_two_columns_wide(folder):
    widths = {}
    for path in folder.glob("*.svg"):
        if path.stem != "chart":
            width = ElementTree.parse(path).getroot().get("width")
            widths[path.stem] = float(width.removesuffix("pt")) / 72
    assert widths["loss-loss"] == pytest.approx(3.35)
    assert widths["concepts-ica-distance"] == pytest.approx(6.9)
    assert set(np.round(list(widths.values()), 2)) == {3.35, 6.9}


def test_lines_are_the_results_values_with_gaps_where_they_are_missing():
    tree = examples.developing_tree()
    figure, _ = drawn(tree, "concepts-ica", "distance")
    node = tree["concepts-ica"].to_dataset()
    value = node["distance_relative"].transpose("distance", "layer", "step")
    places = StepScale(tuple(examples.STEPS)).positions(examples.STEPS)
    assert np.isnan(value).any()
    for axes, expected in zip(figure.axes, value.values, strict=True):
        lines = [line for line in long_lines(axes) if line.get_linestyle() != "None"][
            :6
        ]
        np.testing.assert_array_equal([line.get_ydata() for line in lines], expected)
        np.testing.assert_allclose(lines[0].get_xdata(), places, atol=1e-5)
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_cells_are_the_results_values_and_missing_ones_are_hatched():
    values = np.arange(12.0).reshape(3, 4)
    values[1, 2] = np.nan
    data = xr.Dataset(
        {"value": (("head", "step"), values)},
        coords={"step": [0, 1, 10, 100], "head": [3, 5, 8]},
    )
    tree = one_node(
        data, [Heatmap("heat", "Heat", value="value", y="head")], [0, 1, 10, 100]
    )
    axes = drawn(tree, "node", "heat")[0].axes[0]
    (mesh,) = (c for c in axes.collections if isinstance(c, QuadMesh))
    cells = np.ma.filled(mesh.get_array().reshape(3, -1), np.nan)
    # The empty column is the gap between step 0, which stands apart, and the later steps.
    np.testing.assert_array_equal(np.delete(cells, 1, axis=1), values)
    assert np.isnan(cells[:, 1]).all()
    (hatched,) = (
        c for c in axes.collections if isinstance(c, PolyCollection) and c.get_hatch()
    )
    assert len(hatched.get_paths()) == 1
    assert [t.get_text() for t in axes.get_yticklabels()] == ["3", "5", "8"]


def test_values_below_a_middle_are_grey_and_both_halves_as_long():
    data = xr.Dataset(
        {"right": (("group", "step"), [[0.4, 0.5], [0.5, 1.0]])},
        coords={"step": [0, 10], "group": ["a", "b"]},
    )
    heat = Heatmap("heat", "Heat", value="right", y="group", middle=0.5)
    axes = drawn(one_node(data, [heat], [0, 10]), "node", "heat")[0].axes[0]
    (mesh,) = (c for c in axes.collections if isinstance(c, QuadMesh))
    assert mesh.get_clim() == (0.0, 1.0)

    def chroma(value):
        colour = mesh.cmap(mesh.norm(value))[:3]
        return max(colour) - min(colour)

    assert chroma(0.4) < 0.02 < chroma(0.6)
    assert mesh.cmap(0.0)[:3] < mesh.cmap(0.45)[:3], "darker, the further below"


def test_dots_are_filled_only_outside_every_null():
    tree = examples.developing_tree()
    axes = drawn(tree, "variance-rank", "rank")[0].axes[0]
    node = tree["variance-rank"].to_dataset()
    value = node["variance_rank"].values
    (dots,) = (c for c in axes.collections if len(c.get_offsets()) == len(value) > 1)
    np.testing.assert_array_equal(dots.get_offsets()[:, 0], value)
    outside = np.ones(len(value), bool)
    for name in ("walk", "shuffled"):
        low, high = node[f"{name}_low"].values, node[f"{name}_high"].values
        outside &= (value < low) | (value > high)
    filled = [tuple(c) != (1, 1, 1, 1) for c in dots.get_facecolors()]
    np.testing.assert_array_equal(filled, outside)


def test_findings_and_boundaries_are_marked_in_every_panel():
    tree = examples.developing_tree()
    tree.attrs["boundaries"] = "[100]"
    figure, _ = drawn(tree, "concepts-ica", "distance")
    scale = StepScale(tuple(examples.STEPS))
    for axes in figure.axes:
        (mark,) = (
            line for line in axes.get_lines() if line.get_label() == "audit finding"
        )
        np.testing.assert_allclose(mark.get_xdata(), scale.positions([550, 600]))
        dotted = [
            line.get_xdata()[0]
            for line in axes.get_lines()
            if line.get_linestyle() == ":"
        ]
        assert scale.positions([100])[0] in dotted


def test_bands_without_a_relative_form_are_scaled_as_the_value_is():
    data = xr.Dataset(
        {
            "value": ("step", [4.0, 2.0, 8.0]),
            "share": ("step", [1.0, 0.5, 2.0]),
            "low": ((), 2.0),
            "high": ((), 4.0),
        },
        coords={"step": [1, 2, 3]},
    )
    curves = Curves(
        "c",
        "C",
        value="value",
        relative="share",
        series=None,
        bands=[Band("low", "high", "null")],
    )
    axes = drawn(one_node(data, [curves], [1, 2, 3]), "node", "c")[0].axes[0]
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(0.5) and corners.max() == pytest.approx(1.0)


def test_the_controls_of_every_line_are_drawn_apart_in_its_colour():
    """In one band a layer lay within the controls of another, far above its own."""
    figure, _ = drawn(controlled([0.1, 0.7], own=0.9), "entropy", "entropy")
    axes = figure.axes[0]
    bands = [c for c in axes.collections if isinstance(c, PolyCollection)]
    lines = long_lines(axes)
    assert len(bands) == len(lines) == 3
    for i, (band, line) in enumerate(zip(bands, lines, strict=True)):
        np.testing.assert_allclose(band.get_edgecolor()[0], to_rgba(line.get_color()))
        assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(i / 2 + 0.1)
    words = [
        text.get_text() for legend in figure.legends for text in legend.get_texts()
    ]
    assert "control runs (turned), in the colour of their line" in words


def test_more_lines_than_can_be_labelled_have_a_colour_bar():
    tree = examples.developing_tree(layers=9)
    figure, _ = drawn(tree, "attention-entropy", "mean")
    assert len(figure.axes) == 2 and figure.axes[1].get_title(loc="left") == "layer"
    colours = {line.get_color() for line in long_lines(figure.axes[0])}
    assert len(colours) == 9


def test_what_was_taken_of_a_leftover_dimension_is_said(folder):
    captions = (folder / "captions.txt").read_text(encoding="utf-8")
    assert (
        "matrix-between\nDistance of every step to every other\nShown: extractor svd."
        in captions
    )


def test_names_that_look_like_mathematics_or_markup_stay_text(tmp_path):
    name = "$\\frac{a}{b}$ <b>&amp; 概念 $"
    data = xr.Dataset(
        {"value": ("step", [1.0, 2.0, 3.0], {"long_name": name})}, {}
    ).assign_coords(step=[1, 2, 3])
    figure = Curves("c", name, value="value", series=None, caption=name)
    tree = one_node(data, [figure], [1, 2, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report.write_figures(tree, tmp_path)
    texts = ElementTree.parse(tmp_path / "node-c.svg").iter(
        "{http://www.w3.org/2000/svg}text"
    )
    assert name in {"".join(t.itertext()) for t in texts}
    assert name in (tmp_path / "captions.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "make", [examples.hostile_tree, examples.odd_tree, examples.still_tree]
)
def test_odd_results_are_drawn_without_complaint(make, tmp_path):
    written = report.write_figures(make(), tmp_path, formats=["png"])
    assert all(path.stat().st_size > 0 for path in written)


def test_chart_holds_what_the_pages_chart_holds():
    content = read_content(examples.developing_tree())
    with style():
        axes = draw_chart_figure(content).axes[0]
    words = [t.get_text() for t in axes.texts]
    for row in content.rows:
        assert row.quantity[: PAPER["cells"].label_characters - 12] in " ".join(words)
    # One line stands for these.
    drawn = [row for row in content.rows if row.role != "motion"]
    assert words.count("layer 0") == sum(row.short_layer == "layer 0" for row in drawn)
    assert len(axes.patches) > 5 * len(content.rows)
    left = [t.get_window_extent().x0 for t in axes.texts]
    assert min(left) >= 0


@pytest.mark.parametrize(
    ("formats", "words"), [(["jpeg"], "'pdf', 'svg', 'png'"), ("pdf", "list")]
)
def test_unknown_formats_are_refused_before_anything_is_written(
    tmp_path, formats, words
):
    with pytest.raises(ArgumentError, match=re.escape(words)):
        report.write_figures(examples.plain_tree(), tmp_path / "new", formats=formats)
    assert not (tmp_path / "new").exists()


def test_the_command_names_the_formats_it_knows_before_it_opens_anything(
    tmp_path, capsys
):
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "report",
                str(tmp_path),
                "--figures",
                str(tmp_path / "f"),
                "--formats",
                "pdf,jpeg",
            ]
        )
    assert stop.value.code == 1
    assert "'pdf', 'svg', 'png'; got 'jpeg'" in capsys.readouterr().err


def test_control_runs_and_lines_are_told_apart_in_pictures(tmp_path):
    tree = examples.controlled_tree()
    node = tree["loss"].to_dataset().assign(blind=8.3, words=6.3)
    figures = json.loads(node.attrs["figures"])
    figures[0]["bands"] += [
        {"lower": name, "upper": name, "label": label}
        for name, label in (("blind", "uniform guess"), ("words", "word frequencies"))
    ]
    tree["loss"] = xr.DataTree(node.assign_attrs(figures=json.dumps(figures)))
    report.write_figures(tree, tmp_path, formats=["svg"])
    words = re.findall(
        r"<text[^>]*>([^<]*)</text>", (tmp_path / "loss-loss.svg").read_text()
    )
    assert {"control runs (turned)", "uniform guess", "word frequencies"} <= set(words)
    rows = read_content(tree).rows
    marks = sum(len(row.controls) for row in rows if row.changed)
    (drawing,) = draw_chart_figure(read_content(tree)).axes
    open_dots = [
        p for p in drawing.patches if isinstance(p, Circle) and p.get_linewidth() > 0
    ]
    assert len(open_dots) == marks + 2  # and two in the legend


def test_the_command_writes_one_figure_and_no_page(tmp_path, capsys):
    folder = tmp_path / "study"
    folder.mkdir()
    write_result(folder, examples.controlled_tree())
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "report",
                str(folder / "result.zarr"),
                "--figure",
                "loss/loss",
                "--figures",
                str(tmp_path / "one"),
                "--formats",
                "svg",
            ]
        )
    assert not stop.value.code
    assert {path.name for path in (tmp_path / "one").iterdir()} == {
        "loss-loss.svg",
        "loss-loss.csv",
    }
    assert not (folder / "report.html").exists()
    with pytest.raises(SystemExit) as stop:
        main(["report", str(folder / "result.zarr"), "--figure", "loss/los"])
    assert stop.value.code == 1 and "Nearest: 'loss/loss'" in capsys.readouterr().err
