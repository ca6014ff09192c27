"""The table of gaps in a browser: the current step in its place among the others, once."""

import pytest

from helpers import concept_trees as made
from helpers.report_browser import browser, quiet, until, visit
from ontogeny.report.texts.cloze import COLUMNS

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

TABLE = """() => {
  const row = (tr) => [...tr.querySelectorAll(".s")].filter((c) => c.checkVisibility());
  const heads = row(document.querySelector("#cloze thead tr"));
  return {
    steps: heads.map((c) => Number(c.textContent.replace(/[^0-9]/g, ""))),
    current: heads.findIndex((c) => c.matches(".current[aria-current=true]")),
    marked: document.querySelectorAll("#cloze thead .current").length,
    tokens: [...document.querySelectorAll("#cloze tbody tr")].map((tr) =>
      row(tr).map((c) => c.querySelector("bdi").textContent)),
    same: row(document.querySelector("#cloze tfoot tr"))
      .map((c) => (c.textContent === "no two" ? 1 : Number(c.textContent))),
  };
}"""


@pytest.fixture(scope="module")
def page(visit):
    return visit("learned", made.learned, width=1280, height=900)


def go_to(page, step):
    page.focus("#slider")
    page.keyboard.press("Home")
    for _ in range(made.STEPS.index(step)):
        page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("step", [0, made.STEPS[4], 512])
def test_every_step_stands_once_in_order_and_the_current_one_is_marked(page, step):
    go_to(page, step)
    table = page.evaluate(TABLE)
    assert table["steps"] == sorted(set(table["steps"]))
    assert len(table["steps"]) in (COLUMNS, COLUMNS + 1)
    assert table["marked"] == 1 and table["steps"][table["current"]] == step
    data = made.predictions()
    words = dict(
        zip(data.piece.values.tolist(), data.piece_text.values.tolist(), strict=True)
    )
    shown = (
        data.sel(step=table["steps"]).isel(rank=0).answer_id.transpose("gap", "step")
    )
    assert table["tokens"] == [[words[i] for i in row] for row in shown.values.tolist()]
    same = [max(map(list(column).count, column)) for column in shown.values.T.tolist()]
    assert table["same"] == same


def test_it_has_a_caption_and_scopes_and_is_a_stop_of_the_tab_key_where_it_scrolls(
    page,
):
    assert "Underlined" in page.text_content("#cloze caption")
    assert page.locator("#cloze thead th:not([scope=col])").count() == 0
    assert page.locator("#cloze :is(tbody, tfoot) th:not([scope=row])").count() == 0
    region = page.locator("[role=region]:has(> #cloze)")
    assert page.locator("#" + region.get_attribute("aria-labelledby")).count() == 1
    assert region.get_attribute("tabindex") == "-1"
    region.evaluate("(e) => (e.style.width = '200px')")
    until(page, "() => document.getElementById('cloze').parentNode.tabIndex === 0")
    region.evaluate("(e) => (e.style.width = '')")


def test_a_phone_has_the_sentence_with_the_first_the_current_and_the_last_step(visit):
    page = visit("learned", made.learned, width=360)
    try:
        middle = made.STEPS[len(made.STEPS) // 2]
        for step, wanted in (
            (middle, [0, middle, 512]),
            (0, [0, 512]),
            (512, [0, 512]),
        ):
            go_to(page, step)
            assert page.evaluate(TABLE)["steps"] == wanted
        region = page.locator("[role=region]:has(> #cloze)")
        assert region.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 0
        assert page.locator("#cloze tbody th").first.bounding_box()["width"] > 100
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_paper_leaves_the_table_to_its_own_section(page):
    page.emulate_media(media="print")
    assert not page.locator("#cloze").is_visible()
    page.emulate_media(media="screen")
    assert page.locator("#cloze").is_visible()
