"""Abilities of a page: one order over all nodes, verdicts corrected over the page."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ontogeny as og
from helpers.ability_nodes import STEPS, node, with_texts
from ontogeny.claims import Certainty, Kind
from ontogeny.features.abilities.changes import group_changes
from ontogeny.observables import MinimalPairs
from ontogeny.report.chart.draw import draw_chart
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.write import write
from ontogeny.report.texts.abilities import turning
from ontogeny.summary.summarise import summarise
from ontogeny.words.abilities import abilities_of
from ontogeny.words.content import read_content


def content(**nodes):
    return read_content(
        xr.DataTree.from_dict({f"/{name}": data for name, data in nodes.items()})
    )


def able_of(**nodes):
    return abilities_of({node.path: node.dataset for node in content(**nodes).nodes})


@pytest.fixture(scope="module")
def two():
    pairs = node(
        {"late": [0.5, 0.5, 0.5, 1], "early": [0.5, 1, 1, 1], "lost": [1, 1, 0.5, 0.5]}
    )
    other = node({"never": [0.5, 0.5, 0.5, 0.6]}, dim="choice", control=0.45)
    return able_of(pairs=pairs, choices=other)


def test_groups_of_all_nodes_stand_in_the_order_in_which_they_leave_chance(two):
    assert [each.name for each in two] == ["early", "late", "never", "lost"]
    assert [each.above for each in two] == [True, True, False, False]
    assert two[0].above_from == 10 and two[1].above_from == 40
    assert np.isnan(two[2].above_from)


def test_what_is_gained_and_lost_is_paired_and_names_what_is_sure(two):
    assert [each.gained for each in two] == [True, True, False, False]
    assert [each.lost for each in two] == [False, False, False, True]
    assert two[0].change_low > 0 > two[3].change_high
    assert two[2].change_low < 0 < two[2].change_high


def test_controls_are_those_of_the_node(two):
    assert two[2].controls == (0.45, 0.45) and two[0].controls == ()


def test_verdicts_are_corrected_over_the_page():
    border = {"border": [0.5, 0.5, 0.5, 0.75]}  # 18 of 24: p = .011
    alone = able_of(pairs=node(border))
    more = {f"group {i}": [0.5] * 4 for i in range(8)}
    among = able_of(pairs=node(border), choices=node(more, dim="choice"))
    assert alone[0].above and not any(each.above for each in among)


def test_groups_of_other_examples_are_not_compared():
    data = node({"tense": [0.5, 1, 1, 1]})
    fewer = node({"tense": [0.5, 1, 1, 1]}, pairs=12)
    assert group_changes(data.isel(step=0), fewer.isel(step=-1)) == []
    (change,) = group_changes(
        data.isel(step=0), node({"tense": [0, 0, 0, 1]}).isel(step=-1)
    )
    assert change.gained and not change.lost


def test_results_that_were_written_are_compared(tmp_path):
    data = with_texts(node({"tense": [0.5, 1, 1, 1]}))
    xr.DataTree.from_dict({"/pairs": data}).to_zarr(tmp_path / "a.zarr")
    stored = xr.open_datatree(tmp_path / "a.zarr", engine="zarr")["pairs"].to_dataset()
    assert group_changes(stored.isel(step=0), stored.isel(step=-1))[0].gained
    assert "the dogs run 3" in page_of(tmp_path, pairs=stored)


def test_examples_of_one_contrast_count_as_one():
    words = (
        np.array(["is", "has"] * 12, dtype=object),
        np.array(["are", "have"] * 12, dtype=object),
    )
    data = node({"likes a word": [0.5, 1, 1, 1]}).assign(
        word_right=("pair", words[0]), word_wrong=("pair", words[1])
    )
    turned = np.where(np.arange(24) % 2, [[0.0], [1.0]], 0.0)
    states = data.isel(step=[0, 1]).assign(right=(("step", "pair"), turned))
    (group,) = group_changes(states.isel(step=0), states.isel(step=1))
    assert group.change.after == 0.5 and group.p_value == 1.0
    assert group.on_these and not group.gained


def page_of(tmp_path, **nodes):
    tree = xr.DataTree.from_dict({f"/{name}": data for name, data in nodes.items()})
    return write(tree, tmp_path / "page.html").read_text(encoding="utf-8")


def section_of(page):
    return page.split('<section id="abilities"')[1].split("</section>")[0]


def test_the_page_says_what_the_model_can_do_before_anything_else(tmp_path):
    data = with_texts(
        node({"late": [0.5, 0.5, 0.5, 1], "<b>": [0.5, 1, 1, 1], "no": [0.5] * 4})
    )
    page = page_of(tmp_path, pairs=data)
    section = section_of(page)
    assert page.index('id="abilities"') < page.index('id="verdict"')
    assert "2 of 3 abilities are above chance" in page
    assert (
        section.index("&lt;b&gt;</td>")
        < section.index(">late</td>")
        < section.index(">no</td>")
    )
    assert ">open</td>" in section
    # Examples of the slider.
    assert "<runs>" not in page and "\\u003cruns\\u003e" in page


def test_the_last_accuracy_is_that_of_the_last_step_that_has_one():
    data = node({"a": [0.5, 0.5, 1, 1]})
    data.accuracy[-1] = np.nan  # a last checkpoint of NaN
    assert [one.last_step for one in able_of(pairs=data)] == [20]


def test_no_group_above_chance_is_open_and_no_tile(tmp_path):
    data = with_texts(node({"tense": [0.5] * 4}))
    (claim,) = [c for c in content(pairs=data).claims if c.kind is Kind.ABOVE_CHANCE]
    assert claim.certainty is Certainty.OPEN and claim.corrected_over == 1
    page = page_of(tmp_path, pairs=data)
    assert "0 of 1" not in page and ">open</td>" in section_of(page)


def test_one_model_has_the_section_without_steps(tmp_path):
    one = with_texts(node({"tense": [1, 1, 1, 1]})).isel(step=[3])
    page = page_of(tmp_path, pairs=one)
    assert "since step" not in section_of(page) and ">yes</td>" in section_of(page)
    assert "1 of 1 ability is above chance" in page.split('id="first"')[1]


def test_what_is_above_chance_from_the_start_has_no_step_since_when(tmp_path):
    """It stood beside what was gained from a step, as if it had been gained at the first one."""
    data = node({"tense": [1, 1, 1, 1], "number": [0.5, 0.5, 1, 1]})
    page = page_of(tmp_path, pairs=data)
    section = section_of(page)
    first, last = (f">{since}</td>" for since in ("always", f"{STEPS[2]}"))
    assert section.index(first) < section.index(last)
    assert f">{STEPS[0]}</td>" not in section
    of_tense = content(pairs=node({"tense": [1, 1, 1, 1]}))
    (line,) = [s for s in first_screen(of_tense).sentences if "tense" in s.text]
    assert "“tense” is above chance at every step: 100 %" in line.text
    of_number = content(pairs=node({"number": [0.5, 0.5, 1, 1]}))
    (line,) = [s for s in first_screen(of_number).sentences if "number" in s.text]
    assert f"“number” is above chance from step {STEPS[2]}" in line.text


def test_an_order_is_known_only_where_intervals_are_apart():
    apart = able_of(pairs=node({"a": [1] * 4, "b": [0, 0, 0, 1]}, pairs=60))
    near = able_of(pairs=node({"a": [1] * 4, "b": [0.9, 1, 1, 1]}, pairs=60))
    assert apart[0].before(apart[1]) and not near[0].before(near[1])


def run_of(courses, **options):
    # A name of its own.
    gaps = xr.Dataset({"right": ("step", [0.0] * 4)}, {"step": STEPS})
    return xr.DataTree.from_dict(
        {"/pairs": node(courses, **options), "/predictions": gaps}
    )


def changes(runs):
    """What each run gained and lost since its own first step."""
    claims = read_content(og.compare(runs)).claims
    kinds = (Kind.GAINED, Kind.LOST)
    return [
        (claim.subject.run, claim.kind, claim.subject.label)
        for claim in claims
        if claim.kind in kinds and claim.certainty is Certainty.SURE
    ]


def test_several_runs_say_what_each_gained():
    one = run_of({"tense": [0.5, 1, 1, 1], "plural": [0.5] * 4})
    two = run_of({"tense": [0.5] * 4, "plural": [0.5, 0.5, 1, 1]})
    found = changes({"base": one, "tuned": two})
    assert {*found} == {
        ("base", Kind.GAINED, "tense"),
        ("tuned", Kind.GAINED, "plural"),
        ("", Kind.LOST, "tense"),  # of the second against the first
        ("", Kind.GAINED, "plural"),
    }


def summarised(courses, seed=0, **options):
    """Return a node as a study summarises it, with rows and verdicts."""
    data = node(courses, seed=seed, **options)
    return summarise(data, MinimalPairs.quantities, MinimalPairs.section)


MANY = {"tense": [0.5, 0.5, 1, 1]} | {
    f"group {i}": [0.5, 0.46, 0.5, 0.54] for i in range(9)
}


def test_groups_that_did_not_change_are_one_row_of_the_chart(tmp_path):
    data = summarised(MANY, control=0.5)
    rows = content(pairs=data).rows
    assert [row.label for row in rows if row.learned] == [
        "tense",
        "pairs of all groups",
    ]
    drawing = draw_chart(content(pairs=data))
    assert "9 measures: group " in drawing.svg and "group 8, layer" not in drawing.svg
    assert drawing.svg.count('data-row="') == 2
    assert (
        "group 3"
        in page_of(tmp_path, pairs=with_texts(data)).split('class="table-fold"')[1]
    )
    whole = data.right.mean("pair")
    np.testing.assert_allclose(data.accuracy_overall, whole)
    few = summarised({"tense": [0.5, 0.5, 1, 1], "plural": [0.5] * 4}, control=0.5)
    assert draw_chart(content(pairs=few)).svg.count('data-row="') == 3


def test_a_gain_that_motion_gives_as_well_is_not_learned():
    def learned(control):
        data = summarised({"tense": [0.5, 0.6, 0.9, 1.0]}, control=control)
        return content(pairs=data).rows[0].learned

    assert learned(0.5) and not learned(0.88)
    assert not learned(None)  # nothing shows what motion gives
    there = summarised({"tense": [1, 1, 1, 1]}, control=0.5)
    assert not content(pairs=there).rows[0].learned


def test_every_pair_at_every_step_is_a_row_for_other_programs(tmp_path):
    data = with_texts(node({"late": [0.5, 0.5, 0.5, 1], "early": [0.5, 1, 1, 1]}))
    scores = np.random.default_rng(0).normal(size=(4, 48))
    data = data.assign(
        score_right=(("step", "pair"), scores),
        score_wrong=(("step", "pair"), scores - 1),
    )
    tree = xr.DataTree.from_dict({"/minimal-pairs": data})
    written = og.report.write_figures(tree, tmp_path, formats=[])
    path = tmp_path / "minimal-pairs-examples.csv"
    assert path in written
    table = pd.read_csv(path)
    assert list(table.columns[:3]) == ["step", "pair", "group"]
    assert len(table) == 4 * 48 and table["group"].iloc[-1] == "early"
    row = table[(table.step == STEPS[2]) & (table.pair == 7)].iloc[0]
    assert row.score_right == scores[2, 7] and row.score_wrong == scores[2, 7] - 1
    assert row.wrong_text == "the dogs <runs> 7"


def test_the_first_screen_gives_an_example_of_what_the_model_can_do():
    screen = first_screen(content(pairs=with_texts(node({"tense": [0.5, 1, 1, 1]}))))
    (line,) = [one for one in screen.sentences if "above chance" in one.text]
    assert "100 %" in line.text and "right" in line.text
    example = re.search(r"An example is “(.*)”, not “(.*)”\.", line.text)
    assert example and example[1] != example[2]


def test_what_chance_reaches_stands_in_sentence_and_table(tmp_path):
    """An interval of 44 to 100 stood beside "above chance": it was over other contrasts."""
    data = with_texts(node({"tense": [0.5, 1, 1, 1]}))
    data = data.assign(accuracy_reach=("group", [0.625]))
    (claim,) = [c for c in content(pairs=data).claims if c.kind is Kind.ABOVE_CHANCE]
    assert np.isnan(claim.low) and claim.beside[1].value == 0.625
    page = page_of(tmp_path, pairs=data)
    assert "100 % of 24 right (chance up to 62 %" in page
    assert "chance up to (%)" in section_of(page)


def test_groups_are_left_out_only_where_their_examples_are_kept():
    data = with_texts(node({"late": [0.5, 1, 1, 1], "coin": [0.5, 0.4, 0.6, 0.5]}))
    late = data.isel(pair=np.flatnonzero(data.group_of_pair.values == "late"))
    for kept, lucky in ((data, 1), (late, 0)):
        tree = xr.DataTree.from_dict({"/pairs": kept})
        (found,) = turning(read_content(tree))
        assert set(found["groups"]) == {"late"} and found["lucky"] == lucky
