"""Long module paths and wide tables in a headless browser: short in place, whole on hover."""

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from helpers import report_examples as examples
from helpers.report_browser import FRAMES, browser, draw_all, hover, quiet, visit
from ontogeny.figures import Column, Curves, Section, Table, attach

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

MATRICES = ("self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj")
BLOCKS = [f"model.layers.{i}.{kind}.weight" for i in range(5) for kind in MATRICES]
SHORT = [f"{i}.{kind}" for i in range(5) for kind in ("q_proj", "v_proj", "up_proj")]
BAR = "[id='rank/rank'] .colorbar"


def test_each_side_of_what_a_concept_writes_stands_beside_chance(visit):
    """It called an effect of -0.20 no more than chance, which gives 0.14, by the other side."""
    data = made.joint_concepts()
    far = xr.zeros_like(data.written_up) + xr.DataArray(
        [0.2] * 6 + [0.5] * 6, dims="concept"
    )
    taken = far - 0.7  # 0.5 where 0.2 are added, and 0.2 where 0.5 are
    data = data.assign(
        written_up=far, written_down=taken, written_down_id=data.written_up_id
    )
    page = visit("written", lambda: made.tree({"joint-concepts": data}))
    page.click("#atlas-more")
    words = page.evaluate(
        """() => [...document.querySelectorAll("#atlas .card[id]")].map((card) =>
          [Number(card.id.split("/").pop()), card.querySelector(".foot")?.textContent ?? ""])"""
    )
    assert len(words) > 6
    for number, text in words:
        up, _, taken = text.partition("Adds to the logits")[2].partition(
            "and takes from "
        )
        assert ("(no more than chance)" in up) == (number < 6), text
        assert ("(no more than chance)" in taken) == (number >= 6), text
        assert "(95 % of random directions: at most 0.31 on either side)" in taken


def wide_tree():
    rng = np.random.default_rng(0)
    heads = [f"mean share of the energy in component {k}" for k in range(7)]
    numbers = {
        f"c{k}": ("block", rng.random(15), {"long_name": h})
        for k, h in enumerate(heads)
    }
    words = {
        f"w{k}": ("claim", [f"quite a few more words on {c}" for c in "ab"])
        for k in range(3)
    }
    data = xr.Dataset(
        {
            "rank": (
                ("block", "step"),
                rng.random((15, len(examples.STEPS))).cumsum(axis=1),
            )
        }
        | numbers
        | words,
        coords={
            "block": BLOCKS,
            "step": examples.STEPS,
            "claim": ["all is well", "nothing is"],
        },
    )
    figures = [
        Curves("rank", "Rank", value="rank", series="block"),
        Table(
            "many",
            "Many numbers",
            rows="block",
            columns=[Column(name) for name in numbers],
        ),
        Table(
            "few",
            "Few words",
            rows="claim",
            columns=[Column(n, n.upper()) for n in words],
        ),
    ]
    node = attach(data, Section("Rank", ""), figures)
    return examples.tree_of({"rank": node}, examples.STEPS, "Long names")


def table(page, name):
    page.evaluate(
        "for (const fold of document.querySelectorAll('.fold')) fold.open = true"
    )
    page.evaluate(FRAMES)
    return page.evaluate(
        """(id) => {
          const scroll = document.querySelector(`[id="${id}"] .table-scroll`);
          const [first, second] = scroll.querySelector("tbody tr").cells;
          const place = (element) => element.getBoundingClientRect().left;
          return {
            over: scroll.scrollWidth - scroll.clientWidth,
            display: getComputedStyle(second).display,
            head: getComputedStyle(second, "::before").content,
            left: place(first) - place(scroll),
          };
        }""",
        name,
    )


def test_names_beside_a_colour_bar_are_whole_and_tell_blocks_apart(visit):
    page = visit.once("wide", wide_tree)
    draw_all(page)
    shown = page.locator(f"{BAR} text").all_text_contents()
    assert (
        "0.q_proj" in shown and set(shown) - {"block"} <= set(SHORT) and len(shown) > 5
    )
    right = page.evaluate(
        """(selector) => Math.max(...[...document.querySelectorAll(selector)]
          .map((e) => e.getBoundingClientRect().right))""",
        f"{BAR} text",
    )
    frame = page.locator("[id='rank/rank'] .plot").bounding_box()
    assert right <= frame["x"] + frame["width"]


def test_matrices_have_the_names_of_the_page_on_hover_over_lines_and_bar(visit):
    page = visit.once("wide", wide_tree)
    draw_all(page)
    hover(page, "rank/rank", 0.9, 0.3)
    words = page.inner_text("#tooltip")
    assert any(name in words for name in SHORT) and "model.layers" not in words
    bar = page.locator(f"{BAR} .cbfills").bounding_box()
    for share, name in ((0.01, SHORT[-1]), (0.99, SHORT[0])):
        page.mouse.move(bar["x"] + 4, bar["y"] + share * bar["height"])
        assert page.inner_text("#tooltip").split("\n") == ["block", name]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_small_tables_become_lists_and_large_ones_keep_their_first_column(
    visit, scheme
):
    page = visit("wide", wide_tree, width=400, color_scheme=scheme)
    few = table(page, "rank/few")
    assert few["over"] <= 0 and (few["display"], few["head"]) == ("grid", '"W0"')
    page.evaluate(
        """document.querySelector('[id="rank/many"] .table-scroll').scrollLeft = 200"""
    )
    many = table(page, "rank/many")
    assert (
        many["display"] == "table-cell" and many["over"] > 0 and abs(many["left"]) < 1
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_heads_wrap_so_that_a_table_of_many_columns_fits(visit):
    page = visit.once("wide", wide_tree)
    assert table(page, "rank/many")["over"] <= 0
    few = table(page, "rank/few")
    assert few["over"] <= 0 and few["display"] == "table-cell"


def one_step_tree():
    claims = {"answer": ("claim", ["reproduces", "does not"])}
    data = xr.Dataset(claims, coords={"claim": ["all is well", "nothing is"]})
    shown = Table(
        "claims", "Claims", rows="claim", columns=[Column("answer", "answer")]
    )
    return examples.tree_of(
        {"claims": attach(data, Section("Claims", ""), [shown])}, [0], "Claims"
    )


@pytest.mark.parametrize(
    ("name", "make", "seen"), [("one", one_step_tree, 0), ("wide", wide_tree, 4)]
)
def test_a_page_of_a_single_step_has_no_player(visit, name, make, seen):
    page = visit.once(name, make)
    parts = ("#play", "#slider", "#scale", "#now-step")
    assert sum(page.locator(part).is_visible() for part in parts) == seen


def test_a_card_says_from_where_on_its_concept_stays_readable(visit):
    """It said "from step 81 on" of a concept that could not be read at the step after."""
    data = made.joint_concepts()
    wave = np.resize([0.9, 0.2, 0.9], data.sizes["step"])
    steps = data.step.values
    first = {"layer": data.layer[0]}
    data["readability"].loc[first] = np.where(steps >= steps[3], 0.9, 0.1)[:, None]
    data["readability"].loc[{**first, "concept": 0}] = wave
    page = visit("readable", lambda: made.tree({"joint-concepts": data}))
    page.click("#atlas-more")
    words = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("#atlas .card[id]")].map((card) =>
          [card.id, card.querySelector(".foot")?.textContent ?? ""]))"""
    )
    lost = np.flatnonzero(wave < 0.5)[-1]
    wanted = (
        f"first be read at step {steps[0]}, and at every step from {steps[lost + 1]:,} on"
        if lost < len(steps) - 1
        else f"first be read at step {steps[0]}, but not at the last step"
    )
    of = {
        card.rsplit("/", 1)[1]: text
        for card, text in words.items()
        if "layers.0" in card
    }
    assert wanted in of["0"], of["0"]
    others = [text for number, text in of.items() if number != "0"]
    assert others and all(
        f"It can be read from step {steps[3]:,} on" in t for t in others
    )
