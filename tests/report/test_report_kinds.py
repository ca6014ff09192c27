"""Points, clouds, matrices over steps and regimes: what the page and the pictures are given."""

import base64
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection, QuadMesh

from helpers import report_examples as examples
from helpers import report_kinds as kinds
from ontogeny import report
from ontogeny.errors import ArgumentError
from ontogeny.figures import Boundary, Curves, Heatmap, Scatter, Section, Words, attach
from ontogeny.figures.words import show_token
from ontogeny.report.figures.drawable import STEP_PANELS
from ontogeny.report.figures.words import COUNT, WORDS_SHOWN, preorder
from ontogeny.report.kinds import draw_figure, figure_notes, read_drawables
from ontogeny.report.page.html import render_page
from ontogeny.report.paper import style
from ontogeny.report.scales import StepScale
from ontogeny.words.content import read_content

SVG = "{http://www.w3.org/2000/svg}"


def tree_with(node, steps=(0, 10, 100)):
    return kinds.tree_of({"node": node}, list(steps), "T")


def payload(tree, **options):
    page = render_page(read_content(tree), **options)
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def figure_of(data, name):
    (figure,) = (f for f in data["figures"] if f["id"].endswith(f"/{name}"))
    return figure, data["nodes"][figure["node"]]


def array_of(figure, node, name):
    """An array of a figure, by the name of its variable."""
    return decoded(node["arrays"][figure["arrays"][name][0]])


def decoded(array):
    kind = {"f4": "<f4", "f8": "<f8", "i4": "<i4"}[array["dtype"]]
    values = np.frombuffer(base64.b64decode(array["bdata"]), kind).reshape(
        array["shape"]
    )
    return (
        np.array(array["texts"], dtype=object)[values] if "texts" in array else values
    )


def drawn(tree, path, key):
    """A figure as it is drawn for papers, with what its caption must say."""
    content = read_content(tree)
    (one,) = (
        d for d in read_drawables(content) if (d.node.path, d.figure.id) == (path, key)
    )
    assert not one.problem, one.problem
    with style():
        figure, notes = draw_figure(one, content), figure_notes(one, content)
        FigureCanvasAgg(figure).draw()
    return figure, notes


def problem_of(node, **change):
    """Why a figure whose specification another program changed is not drawn."""
    figure = json.loads(node.attrs["figures"])[0] | change
    node = node.assign_attrs(figures=json.dumps([figure]))
    return read_drawables(read_content(tree_with(node)))[0].problem


# Points


def test_points_of_the_page_are_the_results():
    tree = kinds.kinds_tree()
    figure, node = figure_of(payload(tree), "space")
    data = tree["points"].to_dataset()
    for role, name in (("x", "a"), ("y", "b"), ("z", "c")):
        np.testing.assert_array_equal(
            array_of(figure, node, figure[role]), data[name].values
        )
    assert array_of(figure, node, figure["label"])[0] == "#word0"
    assert figure["colour_dimension"] == "step"


def test_many_points_are_a_fixed_sample_with_a_notice():
    data = payload(kinds.sparse_kinds_tree())
    figure, node = figure_of(data, "many")
    chosen = figure["drawn"]
    assert len(chosen) == 3000 == len(set(chosen)) and max(chosen) < 10_000
    assert chosen == figure_of(payload(kinds.sparse_kinds_tree()), "many")[0]["drawn"]
    assert figure["notice"] == "3,000 of 10,000 points shown, drawn at random."
    assert len(array_of(figure, node, figure["value"])) == 10_000  # the CSV keeps all
    # Evenly over the whole: a sample of 3 in 10 of every tenth, within five deviations.
    counts = np.histogram(chosen, bins=10, range=(0, 10_000))[0]
    assert np.all(np.abs(counts - 300) < 5 * math.sqrt(1000 * 0.3 * 0.7))


def test_points_on_paper_are_the_results_and_share_a_unit_in_space():
    tree = kinds.kinds_tree()
    data = tree["points"].to_dataset()
    axes = drawn(tree, "points", "plane")[0].axes[0]
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    expected = np.stack([data["a"].values.ravel(), data["b"].values.ravel()], axis=1)
    np.testing.assert_allclose(dots.get_offsets(), expected)
    space = drawn(tree, "points", "space")[0].axes[0]
    spans = [
        np.ptp(limits)
        for limits in (space.get_xlim(), space.get_ylim(), space.get_zlim())
    ]
    np.testing.assert_allclose(spans, spans[0])


def test_names_stand_beside_few_points_and_kinds_in_a_legend():
    figure, _ = drawn(kinds.kinds_tree(), "points", "order")
    words = {text.get_text() for text in figure.axes[0].texts}
    assert {"#word0", "#word11"} <= words
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"digit", "noun", "verb"}


def test_logarithmic_axes_leave_out_what_they_cannot_show():
    data = xr.Dataset({"x": ("p", [1.0, -1.0, 10.0]), "y": ("p", [1.0, 2.0, math.nan])})
    figure = Scatter("s", "S", x="x", y="y", points="p", x_scale="log")
    axes = drawn(tree_with(attach(data, Section("S", "s"), [figure])), "node", "s")[
        0
    ].axes[0]
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    np.testing.assert_array_equal(dots.get_offsets(), [[1.0, 1.0]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": ""}, "x and y of the scatter 'plane' must name variables."),
        ({"points": "lost"}, "has no dimension 'lost'"),
        ({"x": "word"}, "'word' holds no numbers."),
        ({"label": "a"}, "'a' holds no texts."),
        ({"colour": "lost"}, "no variable 'lost'"),
        ({"facet": "concept"}, "used twice"),
    ],
)
def test_scatters_that_cannot_be_drawn_say_why(change, words):
    assert words in problem_of(kinds.points_node([0, 10, 100]), **change)


def test_scatters_are_checked_at_the_door():
    with pytest.raises(ArgumentError, match="x and y"):
        Scatter("s", "S", x="a")
    with pytest.raises(ArgumentError, match="x_scale must be one of"):
        Scatter("s", "S", x="a", y="b", x_scale="ln")
    data = xr.Dataset({"a": ("p", [1.0])})
    with pytest.raises(ArgumentError, match=r"\['b', 'point'\]"):
        attach(data, Section("S", "s"), [Scatter("s", "S", x="a", y="b")])


# Clouds


def test_clouds_hold_the_heaviest_words_in_order():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, 3, 100))
    texts = np.array(
        [[[f"w{g}-{s}-{i}" for i in range(100)] for s in range(3)] for g in range(2)]
    )
    weights[0, 0, :70] = math.nan
    texts[0, 0, 99] = ""
    data = xr.Dataset(
        {
            "weight": (("group", "step", "rank"), weights),
            "word": (("group", "step", "rank"), texts),
        },
        coords={"group": ["a", "b"], "step": [0, 10, 100]},
    )
    node = attach(
        data, Section("W", "w"), [Words("w", "W", value="weight", words="word")]
    )
    figure, stored = figure_of(payload(tree_with(node)), "w")
    words, shown, counts = (
        array_of(figure, stored, n) for n in ("word", "weight", COUNT)
    )
    assert words.shape == (2, 3, WORDS_SHOWN) and figure["choose"] == ["step"]
    assert counts[0, 0] == 29 and counts[1, 2] == 100
    for group, step in np.ndindex(2, 3):
        real = np.isfinite(weights[group, step]) & (texts[group, step] != "")
        order = np.argsort(-np.abs(weights[group, step][real]), kind="stable")[
            :WORDS_SHOWN
        ]
        good = np.isfinite(shown[group, step])
        assert good.sum() == min(real.sum(), WORDS_SHOWN)
        np.testing.assert_array_equal(
            shown[group, step][good], weights[group, step][real][order]
        )
        np.testing.assert_array_equal(
            words[group, step][good], texts[group, step][real][order]
        )


def test_clouds_without_groups_and_contexts_in_the_words_order():
    data = xr.Dataset(
        {
            "w": ("rank", [0.1, 0.9]),
            "t": ("rank", np.array(["small", "large"])),
            "c": ("rank", np.array(["a small one", "a large one"])),
        }
    )
    words = Words("w", "W", value="w", words="t", groups=None, context="c")
    figure, node = figure_of(
        payload(tree_with(attach(data, Section("W", "w"), [words]))), "w"
    )
    arrays = [array_of(figure, node, figure[role]) for role in ("words", "context")]
    assert [list(array) for array in arrays] == [
        ["large", "small"],
        ["a large one", "a small one"],
    ]
    assert figure["tree"] == [[0, 0]]


def test_words_that_are_their_own_context_stay_as_they_are_shown():
    data = xr.Dataset(
        {"w": ("rank", [0.1, 0.9]), "t": ("rank", np.array(["Ġa", "b\n"]))}
    )
    words = Words("w", "W", value="w", words="t", groups=None, context="t")
    figure, node = figure_of(
        payload(tree_with(attach(data, Section("W", "w"), [words]))), "w"
    )
    shown = array_of(figure, node, "t")
    assert list(shown) == ["b\\n", "#a"]


def test_of_very_many_clouds_the_first_are_shown_with_a_notice():
    many = {f"g{g}": [f"word{g}"] for g in range(300)}
    figure, _ = figure_of(
        payload(tree_with(kinds.words_node(many, nested=False))), "clouds"
    )
    assert len(figure["tree"]) == 200
    assert figure["notice"] == "The first 200 of 300 clouds shown."


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.text("abc", max_size=3))
)
def test_trees_hold_every_group_once_and_parents_first(parent_of):
    labels, parents = list(parent_of), list(parent_of.values())
    order = preorder(labels, parents)
    assert sorted(i for i, _ in order) == list(range(len(labels)))
    depth = {labels[i]: d for i, d in order}
    place = {labels[i]: k for k, (i, _) in enumerate(order)}
    for label, parent in parent_of.items():
        if depth[label]:
            assert depth[parent] == depth[label] - 1 and place[parent] < place[label]


@pytest.mark.slow
def test_words_in_scripts_without_glyphs_are_listed_with_the_caption(tmp_path):
    figure, notes = drawn(kinds.kinds_tree(), "words", "clouds")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"#cat", "naïve", "monday", "no words", "\\u202eevil"} <= set(texts)
    assert (
        "世界" not in texts
        and "4 more in other scripts, listed with the caption" in texts
    )
    (asian, _) = (note for note in notes if "scripts" not in note)
    assert all(word in asian for word in ("世界", "漢字", "ことば", "한국어"))
    report.write_figures(kinds.kinds_tree(), tmp_path, formats=["svg"])
    assert "世界" in (tmp_path / "captions.txt").read_text(encoding="utf-8")


def test_clouds_on_paper_lie_inside_the_picture_and_apart():
    many = {f"g{g}": [f"word{g}{i}" for i in range(60)] for g in range(12)}
    figure, _ = drawn(tree_with(kinds.words_node(many, nested=False)), "node", "clouds")
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    whole = figure.bbox
    assert figure.get_size_inches()[1] <= 9.0
    for box in boxes:
        assert box.x0 >= whole.x0 and box.x1 <= whole.x1 + 1
        assert box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1
    rows = {}
    for box in boxes:
        rows.setdefault(round(box.y0), []).append((box.x0, box.x1))
    for row in rows.values():
        row.sort()
        assert all(left[1] <= right[0] + 1 for left, right in pairwise(row))


@given(st.text())
def test_shown_tokens_have_no_hidden_characters(text):
    shown = show_token(text)
    assert shown.isprintable() or set(
        filter(lambda c: not c.isprintable(), shown)
    ) <= set("\u200c\u200d\u00a0\u3000") | {c for c in shown if c.isspace()}
    assert not set(shown) & set("\n\r\t\x00\u202a\u202e\u2066\u2028\u2029\u200b\ufeff")
    json.dumps(shown).encode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rank": "lost"}, "has no dimension 'lost'"),
        ({"groups": "lost"}, "has no dimension 'lost'"),
        ({"words": "typicality"}, "'typicality' holds no texts."),
        ({"value": "token"}, "'token' holds no numbers."),
        ({"parent": "token"}, "must have the dimension 'orthant' alone"),
    ],
)
def test_clouds_that_cannot_be_drawn_say_why(change, words):
    assert words in problem_of(kinds.words_node(), **change)


# Matrices over steps


def test_matrices_over_steps_have_few_square_panels_and_one_scale():
    tree = kinds.kinds_tree()
    figure, _ = figure_of(payload(tree), "confusion")
    panels = figure["panels"]
    assert (
        len(panels) == STEP_PANELS
        and panels[0] == 0
        and panels[-1] == len(examples.STEPS) - 1
    )
    assert figure["notice"] == "8 of 26 steps shown, evenly chosen."
    picture, notes = drawn(tree, "matrices", "confusion")
    assert notes == ["8 of 26 steps shown, evenly chosen."]
    meshes = [
        c
        for axes in picture.axes[:8]
        for c in axes.collections
        if isinstance(c, QuadMesh)
    ]
    value = tree["matrices"]["confusion"].values
    assert len({mesh.get_clim() for mesh in meshes}) == 1
    for mesh, place in zip(meshes, panels, strict=True):
        cells = np.ma.filled(mesh.get_array().reshape(5, 5), np.nan)
        np.testing.assert_array_equal(cells, value[place])
    box = picture.axes[0].get_window_extent()
    assert box.width == pytest.approx(box.height, rel=1e-3)
    assert picture.axes[0].get_title(loc="left") == "step 0"


# Regimes and theory


def test_boundaries_are_placed_on_both_kinds_of_axis():
    figure, node = figure_of(payload(kinds.kinds_tree()), "joint")
    (regime,) = figure["boundaries"]
    for kind in ("log", "linear"):
        expected = StepScale(tuple(examples.STEPS), kind).positions(
            [200.0, 150.0, 320.0]
        )
        places = [
            figure["placed"][regime[end]][kind] for end in ("step", "low", "high")
        ]
        found = [decoded(node["arrays"][place]) for place in places]
        np.testing.assert_allclose(np.array(found, dtype=float), expected)
    assert array_of(figure, node, regime["noise_ratio"]) == 6.0


def test_names_of_two_boundaries_and_of_a_long_axis_stay_apart_on_paper():
    steps = np.array([0, 1, 10, 45, 100, 1260, 2000])
    long = "score of the strongest head (share of attention)"
    data = xr.Dataset(
        {
            "v": ("step", np.linspace(1, 0, 7), {"long_name": long}),
            "a": 45.0,
            "b": 1260.0,
        },
        {"step": steps},
    )
    boundaries = [Boundary("a"), Boundary("b", label="second boundary"), Boundary("b")]
    figures = [Curves("c", "C", value="v", series=None, boundaries=boundaries)]
    node = attach(data, Section("R", "r"), figures)
    picture, _ = drawn(tree_with(node, steps.tolist()), "node", "c")
    (axes,) = picture.axes
    words = [text for text in axes.texts if "boundary" in text.get_text()]
    assert sorted(text.get_text() for text in words) == [
        "regime boundary",
        "second boundary",
    ]
    one, other = (text.get_window_extent() for text in words)
    assert not one.overlaps(other)
    label = axes.yaxis.label
    assert "\n" in label.get_text() and label.get_text().replace("\n", " ") == long
    assert picture.bbox.y0 <= label.get_window_extent().y0
    assert label.get_window_extent().y1 <= picture.bbox.y1


def test_boundaries_of_a_node_of_regimes_go_through_the_whole_run():
    tree = kinds.kinds_tree()
    (mark,) = read_content(tree).boundaries
    assert (mark.step, mark.low, mark.high) == (200.0, 150.0, 320.0)
    assert mark.label == "smooth to noisy"
    svg = ElementTree.fromstring(report.chart_svg(tree))
    (line,) = (p for p in svg.iter(f"{SVG}path") if p.get("class") == "boundary")
    assert line.find(f"{SVG}title").text == "Smooth to noisy at step 200 (150–320)"
    (bar,) = (
        p for p in svg.iter(f"{SVG}path") if p.get("class") == "boundary-interval"
    )
    assert bar.get("d").count("H") == 1
    node = kinds.regimes_node(examples.STEPS)
    other = xr.DataTree.from_dict({"regimes": node.assign_attrs(role="development")})
    assert not read_content(other).boundaries


def test_boundaries_stated_by_the_root_keep_their_interval():
    tree = examples.plain_tree(
        boundaries='[100, {"step": 300, "low": 250, "high": 420}, null]'
    )
    marks = read_content(tree).boundaries
    assert [mark.step for mark in marks] == [100.0, 300.0]
    assert math.isnan(marks[0].low) and (marks[1].low, marks[1].high) == (250.0, 420.0)


@pytest.mark.parametrize(
    ("ratio", "side"), [(6.0, "later"), (0.2, "earlier"), (math.nan, None)]
)
def test_the_noisier_side_is_shaded(ratio, side):
    node = kinds.regimes_node(examples.STEPS)
    node["ratio"] = ((), ratio)
    figure, _ = drawn(
        kinds.tree_of({"node": node}, examples.STEPS, "T"), "node", "joint"
    )
    axes = figure.axes[0]
    at = StepScale(tuple(examples.STEPS)).positions([200.0])[0]
    spans = [(p.get_x(), p.get_x() + p.get_width()) for p in axes.patches]
    sides = {"later": (at, 1.03), "earlier": (-0.03, at)}
    assert len(spans) == (1 if side is None else 2)
    if side:
        assert spans[0] == pytest.approx(sides[side])


def test_boundaries_of_lines_have_their_colours_and_missing_ones_are_not_drawn():
    figure, _ = drawn(kinds.kinds_tree(), "regimes", "each")
    axes = figure.axes[0]
    colours = [
        line.get_color() for line in axes.get_lines() if len(line.get_xdata()) == 26
    ]
    upright = [line for line in axes.get_lines() if list(line.get_ydata()) == [0, 1]]
    own = [line for line in upright if line.get_linestyle() == "-"]
    places = StepScale(tuple(examples.STEPS)).positions([180.0, 240.0])
    np.testing.assert_allclose([line.get_xdata()[0] for line in own], places)
    assert [line.get_color() for line in own] == colours[:2]


def test_theory_is_dashed_in_the_colour_of_what_it_is_about():
    tree = kinds.kinds_tree()
    axes = drawn(tree, "regimes", "each")[0].axes[0]
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) == 26]
    solid = [line for line in lines if line.get_linestyle() == "-"]
    dashed = [line for line in lines if line.get_linestyle() == "--"]
    data = tree["regimes"].to_dataset()
    np.testing.assert_array_equal(
        [line.get_ydata() for line in solid], data["distance"].values
    )
    np.testing.assert_array_equal(
        [line.get_ydata() for line in dashed], data["closed_form"].values
    )
    assert [line.get_color() for line in solid] == [line.get_color() for line in dashed]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"boundaries": [{"step": "distance"}]}, "cannot differ from step to step"),
        ({"boundaries": [{"step": "lost"}]}, "no variable 'lost'"),
        ({"boundaries": [{}]}, "Its specification lacks 'step'."),
        ({"reference": "lost"}, "no variable 'lost'"),
    ],
)
def test_regimes_that_cannot_be_drawn_say_why(change, words):
    assert words in problem_of(kinds.regimes_node([0, 10, 100]), **change)


def test_boundaries_need_both_ends_and_steps():
    with pytest.raises(ArgumentError, match="both or not at all"):
        Boundary("step", low="low")
    node = kinds.regimes_node([0, 10, 100])
    assert "need training steps along x" in problem_of(node, x="layer", series="step")


# All kinds


@pytest.mark.slow
def test_new_kinds_are_written_in_every_format_and_twice_the_same(tmp_path):
    nodes = {
        "words": kinds.words_node(nested=False),
        "scores": kinds.scores_node(),
        "points": kinds.points_node([0, 10]),
    }
    tree = kinds.tree_of(nodes, [0, 10], "T")
    first = report.write_figures(tree, tmp_path / "a")
    second = report.write_figures(tree, tmp_path / "b", formats=["svg"])
    names = {p.name for p in first}
    assert {"words-clouds.pdf", "points-space.png", "scores-windows.tex"} <= names
    assert "scores-windows.png" not in names
    first = [p for p in first if (tmp_path / "b" / p.name).exists()]
    assert [p.name for p in first] == [p.name for p in second]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name


@pytest.mark.parametrize("make", [kinds.hostile_kinds_tree, kinds.sparse_kinds_tree])
def test_odd_results_of_new_kinds_are_drawn_without_complaint(make, tmp_path):
    written = report.write_figures(make(), tmp_path, formats=["svg"])
    assert all(path.stat().st_size > 0 for path in written)
    assert not [f for f in payload(make())["figures"] if "problem" in f]


def test_hostile_texts_of_new_kinds_stay_text():
    page = render_page(read_content(kinds.hostile_kinds_tree()))
    assert (
        page.count("<script") == 3
        and "<img" not in page
        and "onerror=alert(1)>" not in page
    )
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert "<" not in data
    tables = json.loads(data)["tables"]
    assert all("\\begin{tabular}" in table["tex"] for table in tables.values())


def test_large_clouds_and_scatters_stay_within_the_budget():
    steps = list(range(0, 1200, 20))
    rng = np.random.default_rng(0)
    weights = rng.random((len(steps), 32, 60))
    texts = np.char.add("w", rng.integers(0, 5000, weights.shape).astype(str))
    clouds = xr.Dataset(
        {"w": (("step", "g", "rank"), weights), "t": (("step", "g", "rank"), texts)},
        coords={"step": steps},
    )
    node = attach(
        clouds, Section("W", "w"), [Words("w", "W", value="w", words="t", groups="g")]
    )
    data = payload(tree_with(node, steps), budget=100_000)
    figure, stored = figure_of(data, "w")
    total = sum(math.prod(array["shape"]) for array in stored["arrays"])
    assert total <= 100_000 and "along step" in figure["notice"]
    value = stored["arrays"][figure["arrays"]["w"][0]]
    shape = dict(zip(value["dims"], value["shape"], strict=True))
    assert shape["g"] == 32 and WORDS_SHOWN in shape.values()  # clouds stay whole


def test_figures_of_one_node_keep_their_own_arrays():
    """Two figures that show other parts of the same variables must not share them."""
    data = xr.Dataset(
        {
            "w": (("k", "rank"), [[1.0, 2.0], [4.0, 3.0]]),
            "t": (("k", "rank"), np.array([["a", "b"], ["c", "d"]])),
        },
        coords={"k": ["one", "two"]},
    )
    shared = {"value": "w", "words": "t", "groups": None}
    figures = [Words(k, k, select={"k": k}, **shared) for k in ("one", "two")]
    figures.append(Heatmap("h", "H", value="w", x="rank", y="k"))
    stored = payload(tree_with(attach(data, Section("W", "w"), figures)))
    found = []
    for name in ("one", "two"):
        figure, node = figure_of(stored, name)
        found.append(array_of(figure, node, "t").tolist())
    assert found == [["b", "a"], ["c", "d"]]
    figure, node = figure_of(stored, "h")
    np.testing.assert_array_equal(array_of(figure, node, "w"), data["w"].values)


def test_reference_in_relative_form_is_scaled_as_the_value_is():
    data = xr.Dataset(
        {
            "v": ("step", [4.0, 2.0]),
            "share": ("step", [1.0, 0.25]),
            "theory": ("step", [2.0, 4.0]),
        },
        coords={"step": [1, 2]},
    )
    curves = Curves(
        "c",
        "C",
        value="v",
        relative="share",
        series=None,
        reference="theory",
        reference_label="law",
    )
    axes = drawn(tree_with(attach(data, Section("C", "c"), [curves])), "node", "c")[
        0
    ].axes[0]
    (dashed,) = (line for line in axes.get_lines() if line.get_linestyle() == "--")
    np.testing.assert_allclose(dashed.get_ydata(), [0.5, 0.5])
