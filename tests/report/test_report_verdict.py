"""What the page says of a run: only what its controls, checkpoints and intervals bear out."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny import report
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.report.chart.draw import _is_ordered
from ontogeny.report.chart.groups import arrange
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.words.basis import basis
from ontogeny.words.content import read_content
from ontogeny.words.row_words import facts, journey, spoken, standing_of, state_words
from ontogeny.words.sentences import OF_ROWS, standing_claims

SURE, AS_CONTROLS = Certainty.SURE, Certainty.AS_CONTROLS
OPEN, NOT_TESTED = Certainty.OPEN, Certainty.NOT_TESTED


def standing(tree):
    """How many rows stand how, by kind and certainty."""
    claims = standing_claims(read_content(tree).claims)
    return Counter((c.kind, c.certainty) for c in claims if c.kind in OF_ROWS)


def reasons(tree, kind):
    """Why claims of one kind are open, and of how many rows."""
    claims = standing_claims(read_content(tree).claims)
    return Counter(claim.reason for claim in claims if claim.kind is kind)


def said(tree):
    """All that the first screen says, and how sure it is said to be."""
    content = read_content(tree)
    screen = first_screen(content)
    lines = [f"{line.lead} {line.text}" for line in screen.sentences]
    return " ".join([screen.heading, *lines, *basis(content)])


def claim_of(tree, kind, node="loss"):
    (claim,) = [
        c
        for c in read_content(tree).claims
        if c.subject.node == node and c.kind is kind
    ]
    return claim


def changed(tree, node, **variables):
    """The tree with variables of a node's rows replaced."""
    data = tree[node].to_dataset()
    for name, values in variables.items():
        data[name] = ("row", np.broadcast_to(values, data.sizes["row"]))
    tree[node] = xr.DataTree(data)
    return tree


def test_what_was_learned_is_claimed_with_its_size_its_step_and_its_controls():
    tree = examples.controlled_tree()
    assert standing(tree) == {
        (Kind.LEARNED, SURE): 1,
        (Kind.BEYOND_MOTION, SURE): 10,
        (Kind.CHANGED, OPEN): 2,
    }
    loss = claim_of(tree, Kind.LEARNED)
    assert (loss.first, loss.last, loss.since) == pytest.approx((8.34, 5.02, 140))
    assert (loss.since_low, loss.since_high) == pytest.approx((140 * 0.86, 140 * 1.18))
    assert [beside.name for beside in loss.beside] == examples.CONTROLS
    assert all(-0.5 < beside.value < 0 for beside in loss.beside), (
        "a tenth of the run's fall"
    )
    screen = first_screen(read_content(tree))
    (line, *_) = screen.sentences
    assert line.direction == "falls"
    told = f"{screen.heading}. {line.lead} {line.text}"
    parts = ("8.34", "5.02", "Control runs changed by −0.3", "step 140 (120–165)")
    assert all(told.count(part) == 1 for part in parts)


@pytest.mark.parametrize(
    "open_kind",
    [{"p_learned": np.nan}, {"beyond": False, "can_learn": False, "controlled": False}],
)
def test_why_the_loss_is_open_stands_under_a_heading_too_short_for_it(open_kind):
    needed = {"learned": False, "controls_needed": 8.0, **open_kind}
    screen = first_screen(
        read_content(changed(examples.controlled_tree(), "loss", **needed))
    )
    assert screen.heading.endswith(" is open")
    told = f"{screen.sentences[0].lead} {screen.sentences[0].text}"
    assert told.lower().count("too few control runs (8 would do).") == 1
    assert "8.34 to 5.02" in told and not re.search(r"\. [a-z]", told)


def test_a_run_that_learned_nothing_has_no_sure_claim_however_far_it_moved():
    tree = examples.controlled_tree(learned=False)
    found = standing(tree)
    assert found[Kind.BEYOND_MOTION, SURE] == found[Kind.LEARNED, SURE] == 0
    assert sum(found.values()) == 13 and found[Kind.CHANGED, OPEN] == 2
    assert claim_of(tree, Kind.LEARNED).certainty is OPEN
    assert "improved by learning:" not in said(tree)


def test_performance_within_noise_is_open_for_that_reason():
    tree = changed(examples.controlled_tree(learned=False), "loss", changed=False)
    claim = claim_of(tree, Kind.CHANGED)
    assert claim.certainty is OPEN
    assert (claim.first, claim.last) == pytest.approx((8.34, 8.53))


def test_page_of_a_random_walk_calls_nothing_developed_or_learned():
    tree = examples.controlled_tree(learned=False)
    page = Page(render_page(read_content(tree)))
    shown = page.words + " ".join(
        str(attrs.get(name, ""))
        for _, attrs in page.tags
        for name in ("aria-label", "title", "data-state")
    )
    rows = " ".join(
        " ".join([row["state"], *row["facts"]]) for row in page.data["rows"]
    )
    everything = shown + rows + report.chart_svg(tree)
    asked = re.sub(
        r"[Ww]hether [^.:]* improved by learning( in [^:]*)? is open", "", everything
    )
    assert not re.search(r"developed|learn", asked, re.IGNORECASE)


def test_without_controls_motion_is_not_tested():
    tree = examples.controlled_tree(controls=[])
    assert standing(tree) == {
        (Kind.BEYOND_MOTION, NOT_TESTED): 11,
        (Kind.CHANGED, OPEN): 2,
    }
    assert reasons(tree, Kind.BEYOND_MOTION) == {Reason.NO_CONTROLS: 11}
    assert {r.role for r in read_content(tree).rows if standing_of(r) is None} == {
        "motion"
    }


def test_controls_without_performance_claim_no_learning():
    tree = examples.controlled_tree()
    del tree["loss"]
    assert not [c for c in read_content(tree).claims if c.kind is Kind.LEARNED]
    assert standing(tree)[Kind.BEYOND_MOTION, SURE] == 10
    assert "learned" not in said(tree)


def test_too_few_controls_are_no_verdict():
    tree = examples.controlled_tree(controls=examples.CONTROLS[:1], learned=False)
    for name in ("loss", "concepts-ica", "attention-entropy"):
        tree = changed(tree, name, p_control=np.nan)
    assert reasons(tree, Kind.BEYOND_MOTION) == {Reason.FEW_CONTROLS: 11}
    assert claim_of(tree, Kind.LEARNED).reason is Reason.NO_GAIN, "it rose"


def test_rows_without_controls_are_not_said_to_be_unjudged():
    """Of a classifier 2 rows "could not be judged" above "1 row was not judged"."""
    tree = changed(examples.controlled_tree(), "attention-entropy", p_control=np.nan)
    words = basis(read_content(tree))
    assert any("were not compared with control runs" in text for text in words)
    assert not any("too few checkpoints" in text for text in words)


def test_rows_that_could_not_be_judged_are_counted_by_their_reasons():
    tree = examples.controlled_tree(controls=[])
    memory, unknown = np.arange(6) < 3, np.arange(6) == 5
    unjudged = {"judgeable": False, "only_memory": memory, "noise_known": ~unknown}
    tree = changed(tree, "attention-entropy", changed=False, **unjudged)
    found = reasons(tree, Kind.CHANGED)
    assert found[Reason.NOISE_UNKNOWN] == 1 and sum(found.values()) == 6
    assert standing(tree)[Kind.BEYOND_MOTION, NOT_TESTED] == 7
    told = [text for text in basis(read_content(tree)) if "open:" in text]
    assert sum(int(text.split()[0]) for text in told) == 6, "each row once"
    words = [state_words(row) for row in read_content(tree).rows]
    assert sum(text.startswith("open: ") for text in words) == 6


def test_nothing_judged_is_not_called_no_change():
    tree = examples.controlled_tree(controls=[])
    for name in ("loss", "concepts-ica", "attention-entropy"):
        tree = changed(tree, name, judgeable=False, changed=False)
    assert reasons(tree, Kind.CHANGED) == {Reason.FEW_CHECKPOINTS: 13}
    assert "too few" in first_screen(read_content(tree)).heading


def orders(tree):
    return [claim for claim in read_content(tree).claims if claim.kind is Kind.BEFORE]


def test_order_is_claimed_within_a_quantity_of_its_own_value():
    (claim,) = orders(examples.controlled_tree())
    assert claim.subject.node == "attention-entropy", (
        "distances follow their reference step"
    )
    assert claim.subject.layer.endswith(
        "layers.1.self_attn"
    ) and claim.since == pytest.approx(72)
    assert claim.beside[0].name.endswith("layers.4.self_attn")
    assert "step 72 (62–85)" in said(examples.controlled_tree())


def test_an_order_marks_the_rows_of_its_own_node():
    """Concepts of two extractors have one quantity by name, and the same layers."""
    content = read_content(examples.controlled_tree())
    [node] = [n for n in content.nodes if n.path == "attention-entropy"]
    [claim] = [c for c in content.claims if c.kind is Kind.BEFORE]
    first = next(row for row in node.rows if row.layer == claim.subject.layer)
    elsewhere = replace(claim, subject=replace(claim.subject, node="concepts-ica"))
    assert _is_ordered(content, first)
    assert not _is_ordered(replace(content, claims=[elsewhere]), first)


@pytest.mark.parametrize(
    "variables",
    [
        {"own_value": False},
        {
            "half_step_low": 50.0,
            "half_step_high": 110.0,
        },  # intervals that overlap or are wide
        {"beyond": False},
    ],
)
def test_order_that_the_run_does_not_bear_out_is_not_claimed(variables):
    assert not orders(
        changed(examples.controlled_tree(), "attention-entropy", **variables)
    )


def test_a_row_within_its_null_is_not_named():
    tree = examples.controlled_tree()
    data = tree["attention-entropy"].to_dataset()
    data["uniform_low"][...], data["uniform_high"][...] = 0.0, 9.0
    tree["attention-entropy"] = xr.DataTree(data)
    assert all(
        r.within_null for r in read_content(tree).rows if "entropy" in r.quantity
    )
    assert not orders(tree)


def test_rows_that_are_named_are_never_thinned():
    tree = examples.controlled_tree(layers=40)
    content = read_content(tree)
    (claim,) = orders(tree)
    names = {claim.subject.layer, claim.beside[0].name}
    named = [
        row for row in content.rows if row.layer in names and "entropy" in row.quantity
    ]
    assert len(named) == 2 and len(content.rows) > 60
    svg = report.chart_svg(tree)
    drawn = {content.rows[int(i)].name for i in re.findall(r'data-row="(\d+)"', svg)}
    assert {row.name for row in named} <= drawn and len(drawn) < len(content.rows)


def test_rows_say_from_what_to_what_in_every_place(tmp_path):
    tree = examples.controlled_tree()
    content = read_content(tree)
    loss = content.rows[0]
    assert journey(loss) == "8.34 → 5.02 nats/token, falls"
    assert state_words(loss) == "learned"
    words = content.voice.fill(spoken(loss))
    assert "half-change step 140 (120–165)" in words and journey(loss) in words
    page = Page(render_page(content))
    assert list(map(content.voice.fill, facts(loss))) == page.data["rows"][0]["facts"]
    assert "8.34 → 5.02 nats/token, falls" in page.words
    report.write_figures(tree, tmp_path, formats=[])
    (line, *_) = (tmp_path / "chart.csv").read_text().splitlines()[1:]
    assert (
        ",learned,falls,nats/token,8.34,5.02," in line and "turned 0; turned 1" in line
    )


def test_a_row_within_noise_has_values_and_no_direction():
    row = next(
        r
        for r in read_content(examples.controlled_tree()).rows
        if r.role != "motion" and not r.changed
    )
    assert journey(row) == "4.2 → 2.9 nats" or journey(row) == "4.20 → 2.90 nats"


def test_groups_of_the_chart_are_how_rows_stand():
    def groups(tree):
        every = arrange(read_content(tree).rows)
        return [standing_of(group.rows[0]) for group in every]

    *judged, weights = groups(examples.controlled_tree())
    kinds = [(one.kind, one.certainty) for one in judged]
    assert kinds == [
        (Kind.LEARNED, SURE),
        (Kind.BEYOND_MOTION, SURE),
        (Kind.CHANGED, OPEN),
    ]
    assert weights is None
    first, *_ = groups(examples.controlled_tree(learned=False))
    assert first.kind is Kind.BEYOND_MOTION and first.certainty in (OPEN, AS_CONTROLS)


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
    assert (
        "control-dot"
        not in report.chart_svg(examples.developing_tree()).split("</style>")[1]
    )


def test_control_band_is_told_apart_from_other_nulls():
    page = Page(render_page(read_content(examples.controlled_tree())))
    bands = {b["label"]: b["control"] for f in page.data["figures"] for b in f["bands"]}
    assert bands["control runs (turned)"] and not bands["uniform attention"]


def test_section_marks_do_not_call_motion_learned():
    walk = Page(render_page(read_content(examples.controlled_tree(learned=False))))
    assert not re.search(
        r"[1-9]\d* of \d+ measures? (learned|changed beyond controls)", walk.words
    )
    page = Page(render_page(read_content(examples.controlled_tree())))
    assert "1 of 1 measure improved by learning" in page.words
    assert "4 of 6 measures changed beyond controls" in page.words
    by_chance = (
        "other measures changed beyond controls (by chance one or more in 5 % of runs)."
    )
    assert by_chance in page.words


def test_a_rate_over_the_page_is_said_of_no_result_corrected_in_each_section():
    tree = examples.controlled_tree()
    for node in tree.subtree:
        if "p_uncorrected" in node:  # earlier versions kept none
            del node["p_uncorrected"]
    words = Page(render_page(read_content(tree))).words
    assert "corrected by Holm’s method over each section" in words
    assert "other measures changed beyond controls." in words


def test_control_runs_are_explained_once_and_counted_in_the_singular():
    tree = examples.controlled_tree()
    assert json.loads(tree.attrs["controls"])[0]["kind"] == "turned"
    words = said(tree)
    assert (
        words.count("move as far in random directions") == 1
        and "3 control runs" in words.lower()
    )
    one = said(examples.controlled_tree(controls=examples.CONTROLS[:1])).lower()
    assert "1 control run " in one and "1 control runs" not in one
