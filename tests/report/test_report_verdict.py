"""What the page says of a run: only what its controls, checkpoints and intervals bear out."""

import json
import re

import numpy as np
import pytest
import xarray as xr
from ontogeny.words.overview import overview

from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny import report
from ontogeny.report.chart.groups import arrange
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content
from ontogeny.words.row_words import facts, journey, spoken, state_words


def said(tree):
    return overview(read_content(tree))


def changed(tree, node, **variables):
    """The tree with variables of a node's rows replaced."""
    data = tree[node].to_dataset()
    for name, values in variables.items():
        data[name] = ("row", np.broadcast_to(values, data.sizes["row"]))
    tree[node] = xr.DataTree(data)
    return tree


def test_learned_rows_head_the_page_with_size_direction_and_controls():
    found = said(examples.controlled_tree())
    assert found.heading == (
        "Loss on held-out text was learned; 10 of 12 further rows changed beyond their motion"
    )
    assert found.lead.startswith(
        "The loss on held-out text fell from 8.34 to 5.02 nats/token; in control runs it went from "
        "8.34 to 8.00 on average; half of the run’s fall was over by step 140 (120–165), in "
        "control runs by step "
    )
    assert (found.learned, found.beyond, found.changed, found.judged) == (1, 11, 11, 13)
    assert found.direction == "falls"


def test_rows_that_their_controls_alone_show_to_change_are_counted():
    tree = examples.controlled_tree()
    assert not any("difference from the control runs" in words for words in said(tree).details)
    weak = changed(tree, "loss", p_value=0.5)
    words = "1 of them changed by their difference from the control runs alone, not by their order"
    assert any(words in each for each in said(weak).details)


def test_controls_that_went_the_other_way_have_no_half_of_the_fall():
    tree = examples.controlled_tree()
    rising = tree["loss"].to_dataset()
    rising["control_last"] = rising["control_first"] + 0.4
    tree["loss"] = xr.DataTree(rising)
    lead = said(tree).lead
    assert "half of the run’s fall was over by step 140" in lead
    assert "in control runs by step" not in lead


def test_a_run_that_learned_nothing_says_so_however_far_it_moved():
    found = said(examples.controlled_tree(learned=False))
    assert found.heading == "Nothing here was learned"
    assert "; in control runs it went from 8.34 to 8.53 on average." in (found.lead)
    assert "11 of 13 rows changed, none of them beyond its motion." in found.lead
    assert (found.learned, found.beyond) == (0, 0)


def test_performance_within_noise_is_said_to_be():
    tree = changed(examples.controlled_tree(learned=False), "loss", changed=False)
    assert "went from 8.34 to 8.53 nats/token, which is within its noise" in said(tree).lead


def test_page_of_a_random_walk_calls_nothing_developed_or_learned():
    tree = examples.controlled_tree(learned=False)
    page = Page(render_page(read_content(tree)))
    shown = page.words + " ".join(
        str(attrs.get(name, ""))
        for _, attrs in page.tags
        for name in ("aria-label", "title", "data-state")
    )
    rows = " ".join(" ".join([row["state"], *row["facts"]]) for row in page.data["rows"])
    assert "Nothing here was learned" in shown
    rest = (shown + rows + report.chart_svg(tree)).replace("Nothing here was learned", "")
    assert not re.search(r"developed|learn", rest, re.IGNORECASE)


def test_without_controls_the_page_says_that_motion_may_look_the_same():
    found = said(examples.controlled_tree(controls=[]))
    assert found.heading == "11 of 13 rows changed; no control was run"
    assert found.lead.startswith("A run that moved as far and learned nothing may look the same.")
    rows = examples.controlled_tree(controls=[])
    assert {r.state.kind for r in read_content(rows).rows} == {"uncontrolled", "none", "motion"}


def test_all_quantities_are_counted_as_all():
    tree = examples.controlled_tree(controls=[])
    del tree["attention-entropy"]
    assert said(tree).heading == "7 of 7 rows changed; no control was run"


def test_controls_without_performance_do_not_measure_learning():
    tree = examples.controlled_tree()
    del tree["loss"]
    assert said(tree).heading == (
        "Learning was not measured here: 10 of 12 rows changed beyond their motion"
    )


def test_performance_that_was_not_compared_leaves_learning_open():
    tree = changed(examples.controlled_tree(learned=False), "loss", p_control=np.nan)
    assert said(tree).heading.startswith("Learning could not be judged: 0 of 12 rows")


def test_too_few_controls_are_no_verdict():
    tree = examples.controlled_tree(learned=False)
    for name in ("loss", "concepts-ica", "attention-entropy"):
        tree = changed(tree, name, p_control=np.nan)
    assert said(tree).heading == ("11 of 13 rows changed; too few control runs to compare with")


def test_rows_without_controls_are_not_said_to_be_unjudged():
    """Of a classifier 2 rows "could not be judged" above "1 row was not judged"."""
    tree = changed(examples.controlled_tree(), "attention-entropy", p_control=np.nan)
    found = said(tree)
    assert found.heading.endswith(", 2 more could not be compared")
    assert any("2 rows were not compared with them." in text for text in found.details)
    assert not any("not judged" in text for text in found.details)


def test_rows_that_could_not_be_judged_are_counted_apart():
    tree = changed(examples.controlled_tree(controls=[]), "attention-entropy", judgeable=False)
    found = said(tree)
    of_all = "7 of 7 rows changed, 6 more could not be judged"
    assert found.heading == f"{of_all}; no control was run"
    few = "too few checkpoints to tell a change from chance"
    assert f"6 rows were not judged: {few}." in found.details
    memory, unknown = np.arange(6) < 3, np.arange(6) == 5
    tree = changed(tree, "attention-entropy", only_memory=memory, noise_known=~unknown)
    noise = "noise that is correlated between checkpoints could look the same"
    assert f"3 rows were not judged: {noise}." in said(tree).details
    assert f"2 rows were not judged: {few}." in said(tree).details
    assert "1 row was not judged: the noise was not measured." in said(tree).details
    words = [state_words(row) for row in read_content(tree).rows]
    assert words.count(f"not judged, {noise}") == 3 and words.count(f"not judged, {few}") == 2


def test_nothing_judged_is_not_called_no_change():
    tree = examples.controlled_tree(controls=[])
    for name in ("loss", "concepts-ica", "attention-entropy"):
        tree = changed(tree, name, judgeable=False, changed=False)
    assert said(tree).heading == "Too few checkpoints to judge 13 rows"


def test_order_is_said_within_a_quantity_of_its_own_value_and_in_this_run():
    lead = said(examples.controlled_tree()).lead
    (sentence,) = re.findall(r"In this run[^.]*\.", lead)
    said_first = "layer\N{NO-BREAK SPACE}1 had changed by half by step 72 (62–85), sooner than in "
    assert said_first in sentence
    assert "ICA" not in sentence  # a distance to a reference step, whose order follows it


@pytest.mark.parametrize(
    "variables",
    [
        {"own_value": False},
        {"half_step_low": 50.0, "half_step_high": 110.0},  # intervals that overlap or are wide
        {"beyond": False},
    ],
)
def test_order_that_the_run_does_not_bear_out_is_not_said(variables):
    tree = changed(examples.controlled_tree(), "attention-entropy", **variables)
    assert "half-way" not in said(tree).lead


def test_a_row_within_its_null_is_not_named():
    tree = examples.controlled_tree()
    data = tree["attention-entropy"].to_dataset()
    data["uniform_low"][...], data["uniform_high"][...] = 0.0, 9.0
    tree["attention-entropy"] = xr.DataTree(data)
    assert all(r.within_null for r in read_content(tree).rows if "entropy" in r.quantity)
    assert "half-way" not in said(tree).lead


def test_rows_that_are_named_are_never_thinned():
    tree = examples.controlled_tree(layers=40)
    content = read_content(tree)
    named = overview(content).named
    assert len(named) >= 2 and len(content.rows) > 60
    keep = [i for i, row in enumerate(content.rows) if any(row is each for each in named)]
    shown = [row for group in arrange(content.rows, keep=keep) for row in group.rows]
    assert all(any(row is each for each in shown) for row in named)
    assert len(shown) < len(content.rows)


def test_rows_say_from_what_to_what_in_every_place(tmp_path):
    tree = examples.controlled_tree()
    content = read_content(tree)
    loss = content.rows[0]
    assert journey(loss) == "8.34 → 5.02 nats/token, falls"
    assert state_words(loss) == "learned"
    said = content.voice.fill(spoken(loss))
    assert "half-change step 140 (120–165)" in said and journey(loss) in said
    page = Page(render_page(content))
    assert list(map(content.voice.fill, facts(loss))) == page.data["rows"][0]["facts"]
    assert "8.34 → 5.02 nats/token, falls" in page.words
    report.write_figures(tree, tmp_path, formats=[])
    (line, *_) = (tmp_path / "chart.csv").read_text().splitlines()[1:]
    assert ",learned,falls,nats/token,8.34,5.02," in line and "turned 0; turned 1" in line


def test_a_row_within_noise_has_values_and_no_direction():
    row = next(r for r in read_content(examples.controlled_tree()).rows if r.state.kind == "none")
    assert journey(row) == "4.2 → 2.9 nats" or journey(row) == "4.20 → 2.90 nats"


def test_groups_of_the_chart_are_the_verdicts():
    titles = [g.title for g in arrange(read_content(examples.controlled_tree()).rows)]
    assert titles == [
        "Learned",
        "Changed beyond its motion",
        "Not distinguishable from chance and noise",
        "Weight change (need not change what the model does)",
    ]
    walk = [g.title for g in arrange(read_content(examples.controlled_tree(learned=False)).rows)]
    assert walk[0] == "Changed, no more than controls"


def test_developed_of_this_version_is_learned_and_of_an_earlier_one_changed():
    now = read_content(examples.controlled_tree(learned=False)).rows
    before = read_content(examples.developing_tree()).rows
    assert not any(row.learned for row in (*now, *before))
    assert sum(row.changed for row in before) == 23


def test_marks_of_controls_stand_beside_every_half_change_mark():
    svg = report.chart_svg(examples.controlled_tree())
    rows = re.findall(r'<g class="row told".*?</g>', svg)
    marked = [row.count('class="control-dot"') for row in rows]
    assert marked == [3] * 11
    assert "of controls" in svg
    assert "control-dot" not in report.chart_svg(examples.developing_tree()).split("</style>")[1]


def test_control_band_is_told_apart_from_other_nulls():
    page = Page(render_page(read_content(examples.controlled_tree())))
    bands = {b["label"]: b["control"] for f in page.data["figures"] for b in f["bands"]}
    assert bands["control runs (turned)"] and not bands["uniform attention"]


def test_section_marks_do_not_call_motion_learned():
    page = Page(render_page(read_content(examples.controlled_tree(learned=False))))
    assert "6 of 6 rows changed, no more than controls" in page.words
    page = Page(render_page(read_content(examples.controlled_tree())))
    assert "1 of 1 row learned" in page.words
    assert "4 of 6 rows changed beyond their motion" in page.words


def test_controls_of_the_root_are_counted_and_explained_once():
    tree = examples.controlled_tree()
    assert json.loads(tree.attrs["controls"])[0]["kind"] == "turned"
    details = said(tree).details
    assert "There are 3 control runs." in details
    assert any("move as far at every step, in random directions" in line for line in details)
    assert not any(
        "as far" in line for line in overview(read_content(tree), introduced=True).details
    )


def test_a_single_control_run_is_no_plural():
    found = said(examples.controlled_tree(controls=examples.CONTROLS[:1]))
    assert "; in the control run it went from" in found.lead
    assert "There is 1 control run." in found.details
