"""Several runs in one figure: planted differences, gaps, controls, words and files."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import t

import ontogeny as og
from helpers.compared_runs import seeds
from helpers.planted_runs import LAYERS, READ, STEPS, compared, controlled, curve
from helpers.report_page import Page
from ontogeny import figures, report
from ontogeny.quantities import Quantity
from ontogeny.report.chart.canvas import NARROW, WIDE
from ontogeny.report.first_screen.runs import run_curves
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.kinds import read_drawables
from ontogeny.report.kinds.base import thinned
from ontogeny.report.page.html import render_page
from ontogeny.report.page.life import life_picture
from ontogeny.report.run_differences import difference_of
from ontogeny.report.run_words import captions
from ontogeny.summary.controls import with_controls
from ontogeny.summary.summarise import summarise
from ontogeny.words.content import read_content
from ontogeny.words.landmarks import read_loss


def drawable(tree):
    found, *_ = read_drawables(read_content(tree))  # many layers have a map as well
    return found


def difference(tree):
    return difference_of(drawable(tree)).node.dataset


def test_the_difference_of_a_planted_offset_is_that_offset():
    data = difference(compared([3.0, 1.0, 2.0]))
    assert (data.entropy_difference == 1.5).all()
    np.testing.assert_array_equal(data.entropy_of_others, curve() + 1.5)
    half = np.std([1.0, 2.0], ddof=1)
    np.testing.assert_allclose(data.entropy_difference_high, half)
    np.testing.assert_allclose(data.entropy_difference_low, -half)


def test_the_band_is_the_planted_spread_of_the_others():
    rng = np.random.default_rng(0)
    data = difference(compared([0.0, *(0.7 * rng.normal(size=400))]))
    assert float(data.entropy_difference_high.max()) == pytest.approx(0.7, rel=0.1)


def test_a_step_that_a_run_lacks_is_a_gap_and_nothing_is_filled_in():
    data = difference(compared([3.0, 1.0, 2.0], missing=[(1, 2), (0, 5)]))
    known = np.isfinite(data.entropy_difference).all("layer").values
    assert known.tolist() == [True, True, False, True, True, False, True, True]
    assert not np.isfinite(data.entropy_difference_high.values[2]).any()


def test_two_runs_take_the_intervals_of_both_and_say_so():
    tree = compared([3.0, 1.0], interval=[3.0, 4.0])
    data = difference(tree)
    np.testing.assert_allclose(data.entropy_difference_high, 5.0)
    np.testing.assert_allclose(data.entropy_difference_low, -5.0)
    caption = difference_of(drawable(tree)).figure.caption
    assert (
        "seed 0 minus seed 1 at the same step. Grey band: the 95 % intervals of both"
        in caption
    )
    bare = difference_of(drawable(compared([3.0, 1.0])))
    assert (
        not bare.figure.bands
        and "No band is drawn: two runs give no spread" in bare.figure.caption
    )


def test_the_difference_from_controls_stands_where_they_were_read():
    data = difference(controlled([1.0, 2.0, 3.0], own=7.0))
    assert data.step.values.tolist() == [STEPS[i] for i in READ]
    assert (data.entropy_difference == 5.0).all()
    half = t.ppf(0.975, 2) * np.sqrt(1 + 1 / 3)
    np.testing.assert_allclose(data.entropy_difference_control_high, half)


@pytest.mark.slow
def test_a_run_that_is_one_of_its_controls_lies_within_the_band():
    rng = np.random.default_rng(1)
    outside, total = 0, 0
    for _ in range(300):
        own, *offsets = rng.normal(size=4)
        data = difference(controlled(offsets, own=own))
        one = data.isel(step=0, layer=0)
        outside += abs(float(one.entropy_difference)) > float(
            one.entropy_difference_control_high
        )
        total += 1
    assert outside / total <= 0.08  # 5 % by construction
    same = difference(controlled([2.0, 2.0, 2.0], own=2.0))
    assert (same.entropy_difference == 0).all() and (
        same.entropy_difference_control_high == 0
    ).all()


def test_controls_that_end_trained_are_shown_and_not_counted():
    tree = controlled(
        [1.0, 2.0, 90.0], own=5.0, names=["turned 0", "turned 1", "line 0"]
    )
    found = drawable(tree)
    assert found.runs.names[3] == "control: line 0" and list(found.runs.others) == [
        1,
        2,
    ]
    assert (difference(tree).entropy_difference == 3.5).all()
    assert (
        "1 control run of a kind that ends trained is left out"
        in difference_of(found).figure.caption
    )
    assert drawable(controlled([1.0], names=["line 0"])).runs is None


def test_one_control_gives_no_band():
    found = difference_of(drawable(controlled([1.0], own=2.0)))
    assert (
        not found.figure.bands
        and "one control run gives no spread" in found.figure.caption
    )


def test_lines_of_numbered_things_are_not_compared():
    tree = controlled([1.0, 2.0])
    node = tree["entropy"].to_dataset().rename(layer="concept")
    spec = json.loads(node.attrs["figures"])
    spec[0]["series"] = "concept"
    tree["entropy"] = xr.DataTree(node.assign_attrs(figures=json.dumps(spec)))
    assert drawable(tree).runs is None


def test_views_give_panels_to_layers_or_runs_and_menus_to_the_rest():
    views = drawable(compared([0.0, 1.0, 2.0])).runs.views
    axes = {name: view.axes for name, view in views.items()}
    assert axes == {
        "overlay": {"x": "step", "series": "run", "facet": "layer"},
        "side by side": {"x": "step", "series": "layer", "facet": "run"},
        "difference": {"x": "step", "facet": "layer"},
    }
    many = drawable(compared(list(range(13)))).runs.views["side by side"]
    assert many.axes == {"x": "step", "series": "layer"} and list(many.choose) == [
        "run"
    ]
    deep = controlled([0.0, 1.0], layers=[f"model.layers.{i}.mlp" for i in range(13)])
    assert list(drawable(deep).runs.views["difference"].choose) == ["layer"]


def test_captions_say_of_a_view_only_what_it_shows(tmp_path):
    path = report.write(
        compared([0.0, 1.0, 2.0], interval=[1.0] * 3), tmp_path / "page.html"
    )
    (figure,) = Page(path.read_text(encoding="utf-8")).data["figures"]
    words = figure["runs"]["captions"]
    assert not any("One line per layer" in text for text in words.values())
    assert "Shade: ±1.96" in words["overlay"] and "Shade" not in words["difference"]
    assert "{run} minus the mean of the other 2 runs" in words["difference"]
    assert all("Low: few are attended to." in text for text in words.values())


def test_steps_of_controls_survive_thinning():
    steps = list(range(200))
    run = np.zeros((200, 3))
    control = np.full((2, 200, 3), np.nan)
    control[:, [0, 77, 199]] = 1.0
    data = xr.Dataset(
        {
            "x": (("step", "layer"), run),
            "x_control": (("run", "step", "layer"), control),
        },
        {"step": steps, "layer": list(LAYERS), "run": ["turned 0", "turned 1"]},
    )
    section = figures.Section("X", "X.")
    node = figures.attach(data, section, [figures.Curves("x", "X", value="x")])
    tree = xr.DataTree.from_dict({"x": node})
    (found,) = thinned(read_drawables(read_content(tree)), budget=90)
    kept = found.axis("step").values
    assert len(kept) < 40 and {0, 77, 199} <= set(kept)


def test_every_figure_of_a_value_with_controls_has_their_band():
    values = {"x": (("step", "layer"), np.ones((3, 2)))}
    coords = {"step": [0, 1, 2], "layer": ["a", "b"]}
    run = xr.Dataset({**values, "y": ("step", [1.0, 2.0, 3.0])}, coords)
    control = run.isel(step=[0, 2]) + 1
    quantity = Quantity("x", "x", figure=False)
    both = {"turned 0": control, "turned 1": control + 1}
    data = with_controls(run, both, [quantity], compared=("y",))
    assert data.y_control.sizes == {"run": 2, "step": 3}
    np.testing.assert_array_equal(data.y_control.isel(run=0), [2.0, np.nan, 4.0])
    own = [
        figures.Curves("x", "X", value="x"),
        figures.Curves("y", "Y", value="y", series=None),
        figures.NullComparison("n", "N", value="x", rows="layer"),
        figures.Heatmap("m", "M", value="x"),
    ]
    found = summarise(
        data, [quantity], figures.Section("X", "X."), figures=lambda _: own
    )
    bands = [each.get("bands") for each in json.loads(found.attrs["figures"])]
    names = [[band["lower"] for band in each or ()] for each in bands]
    assert names == [["x_control_low"], ["y_control_low"], ["x_control_low"], []]
    np.testing.assert_array_equal(found.y_control_low, [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(found.y_control_high, [3.0, 4.0, 5.0])
    drawn = read_drawables(read_content(xr.DataTree.from_dict({"x": found})))
    views = [list(each.runs.views) if each.runs else [] for each in drawn]
    assert views == [
        ["overlay", "side by side", "difference"],
        ["overlay", "side by side", "difference"],
        [],
        ["run", "side by side", "difference"],
    ]
    said = captions(drawn[3], drawn[3].runs)  # nothing is laid over a heat map
    assert said["run"] == "" and said["difference"].startswith("Colour: the run minus")


def test_files_hold_the_difference_with_its_terms(tmp_path):
    written = report.write_figures(
        controlled([1.0, 2.0, 3.0], own=7.0), tmp_path, ["svg"]
    )
    names = {path.name for path in written}
    assert {"entropy-entropy-difference.csv", "entropy-entropy-difference.svg"} <= names
    table = pd.read_csv(tmp_path / "entropy-entropy-difference.csv")
    assert list(table.columns) == [
        "step",
        "layer",
        "entropy",
        "entropy_of_controls",
        "entropy_difference",
        "entropy_difference_control_low",
        "entropy_difference_control_high",
    ]
    assert len(table) == len(READ) * len(LAYERS)
    np.testing.assert_array_equal(table.entropy - table.entropy_of_controls, 5.0)
    captions = (tmp_path / "captions.txt").read_text(encoding="utf-8")
    assert (
        "Entropy: difference\nLine: the run minus the mean of its 3 control runs."
        in captions
    )
    assert "Control runs were read at 4 of 8 steps." in captions


def test_code_of_a_view_gives_its_numbers(tmp_path):
    for tree, name in (
        (compared([3.0, 1.0, 2.5]), "others"),
        (controlled([1.0, 2.0, 4.0]), "controls"),
    ):
        data = difference(tree)
        code = Page(report.write(tree, tmp_path / "page.html").read_text()).data[
            "figures"
        ][0]
        text = code["runs"]["code"]["difference"]
        text = text.replace("{value}", "entropy").replace("{run}", '"seed 0"')
        text = re.sub(r"^tree = .*$", "", text, flags=re.MULTILINE)
        held = {"tree": tree}
        exec(text, held)  # as a reader would run it
        low = (
            "entropy_difference_low"
            if name == "others"
            else "entropy_difference_control_low"
        )
        np.testing.assert_allclose(
            held["difference"], data.entropy_difference, atol=1e-9
        )
        np.testing.assert_allclose(held["half_band"], -data[low], rtol=1e-5)


def test_comparisons_have_one_figure_for_each_curve():
    tree = og.compare(seeds(3, controls=True))
    specs = json.loads(tree["attention-entropy"].attrs["figures"])
    assert [spec["id"] for spec in specs] == ["entropy"]
    assert specs[0]["runs"] == "run" and specs[0]["series"] == "layer"


def test_several_runs_begin_with_a_first_screen_over_all_their_losses():
    tree = og.comparison.compare(seeds(3))
    content = read_content(tree)
    first, node = first_screen(content), content.track_node
    assert first is not None and node is not None
    assert "3 of 3 runs" in first.heading and "3 of 3 runs" in first.sentences[0].lead
    losses = node.dataset["loss"].transpose("run", "step").values.tolist()
    assert [*run_curves(content).values()] == losses
    html = render_page(content)
    sent = Page(html).data["first"]
    assert sent["names"] == [*seeds(3)] and len(sent["runs"]) == 3
    assert "mean" not in sent["title"] and "mean of the runs" not in html
    picture = life_picture(content, first, [WIDE, NARROW]).drawings[0]
    assert all(name in picture for name in seeds(3)) and "mean" not in picture


def test_a_mean_is_drawn_of_seeds_alone():
    """Of two recipes it is the loss of no model."""
    content = read_content(og.compare(seeds(3), seeds=True))
    html = render_page(content)
    sent = Page(html).data["first"]
    assert sent["of"] == "mean" and sent["names"] == []
    assert "mean" in sent["title"] and "mean of the runs" in html
    picture = life_picture(content, first_screen(content), [WIDE, NARROW]).drawings[0]
    assert "mean" in picture and "seed 0" not in picture


def test_lines_under_the_loss_are_those_that_all_runs_share():
    content = read_content(og.comparison.compare(seeds(2)))
    node = content.track_node
    costs = {"unigram": [5.5, 5.5], "bigram": [4.5, 4.25], "uniform": [8.0, np.nan]}
    costs["best"] = [1.25, 1.25]
    data = node.dataset.drop_vars([f"loss_{name}" for name in costs], errors="ignore")
    data = data.assign({f"loss_{name}": ("run", cost) for name, cost in costs.items()})
    nodes = [replace(n, dataset=data) if n is node else n for n in content.nodes]
    levels = read_loss(replace(content, nodes=nodes)).levels
    assert levels == {"word frequencies": 5.5, "best possible": 1.25}
