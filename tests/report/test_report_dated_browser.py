"""Dated text in a browser: the slider hides what was predicted later, and a token sets the step."""

import pytest

from helpers import concept_trees as made
from helpers import example_texts as examples
from helpers.dated_texts import of_runs, one_model, planted_node, with_fires
from helpers.report_browser import browser, quiet, until, visit
from ontogeny import compare

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

TOKENS = """() => [...document.querySelectorAll(".dated-line[role] .d[data-step]")].map((t) => ({
  step: Number(t.dataset.step),
  seen: getComputedStyle(t).color !== "rgba(0, 0, 0, 0)",
}))"""


@pytest.fixture(scope="module")
def page(visit):
    return visit("dated", examples.tree, width=1280, height=900)


def go_to(page, step):
    page.focus("#slider")
    page.keyboard.press("Home")
    for _ in range(made.STEPS.index(step)):
        page.keyboard.press("ArrowRight")


def test_the_slider_leaves_only_what_was_predicted_by_then(page):
    go_to(page, made.STEPS[-1])
    tokens = page.evaluate(TOKENS)
    steps = sorted({token["step"] for token in tokens})
    assert len(steps) > 1 and all(token["seen"] for token in tokens)
    assert "control" not in page.text_content(".dated-end")
    for step in (made.STEPS[0], steps[0], steps[-1]):
        go_to(page, step)
        for token in page.evaluate(TOKENS):
            assert token["seen"] == (token["step"] <= step)
        assert f"By step {step}, " in page.inner_text(".dated h3")
    go_to(page, made.STEPS[0])
    assert ", 0 of " in page.inner_text(".dated h3")


def test_a_step_moves_nothing_below_the_heading(page):
    top = "(find) => document.querySelector('.dated-line').getBoundingClientRect().top + scrollY"
    tops = []
    for step in made.STEPS:
        go_to(page, step)
        tops.append(page.evaluate(top))
    assert len(set(tops)) == 1


def test_a_token_and_the_key_set_the_step_and_tell_it(page):
    go_to(page, made.STEPS[-1])
    token = page.locator(".dated-line[role] .d[data-step]").first
    step = token.get_attribute("data-step")
    token.hover()
    assert f"step {int(step):,}" in page.inner_text("#tooltip")
    token.click()
    assert page.inner_text("#now-step") == f"{int(step):,}"
    box = page.locator(".dated-axis").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 6)
    assert page.inner_text("#now-step") == f"{made.STEPS[-1]:,}"


def test_a_text_is_one_stop_of_the_tab_key_and_arrows_go_along_it(page):
    stops = page.locator(".dated-line[role] [tabindex='0']")
    assert stops.count() == page.locator(".dated-line[role]").count()
    go_to(page, made.STEPS[-1])
    stops.first.focus()
    page.keyboard.press("End")
    told = page.inner_text("#tooltip")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#tooltip") != told
    assert page.inner_text("#now-step") == f"{made.STEPS[-1]:,}"


def test_a_link_to_the_example_text_opens_its_fold(page):
    fold = page.locator("#example-text details.whole")
    assert fold.get_attribute("open") is None
    page.click("#rail a[href='#example-text']")
    until(page, "() => document.querySelector('#example-text details').open")
    fold.evaluate("(e) => { e.open = false; }")


def test_of_two_runs_each_is_counted_at_the_step_of_the_slider(visit):
    page = visit("dated-runs", lambda: compare(of_runs([0, 6])), width=1280, height=900)
    go_to(page, made.STEPS[-1])
    assert page.inner_text(".dated h3").startswith("By step 512, ")
    go_to(page, made.STEPS[5])
    counts = page.evaluate(
        """() => ["full", "LoRA"].map((name) =>
          document.querySelectorAll(`[data-of="${name}"] .good:not(.later)`).length)"""
    )
    assert counts[0] > counts[1]
    said = page.inner_text(".dated h3")
    assert f"{counts[0]} (full) and {counts[1]} (LoRA) of " in said
    loss = page.get_attribute("#life .life-wide .loss", "aria-label")
    assert "full 5.00" in loss and "from" not in loss


def test_after_the_last_step_of_the_tokens_no_later_step_is_named(visit):
    def tree():
        steps = made.STEPS[:8]
        tokens = planted_node().isel(step=slice(len(steps)))
        return made.tree({"loss": made.loss_story(), "tokens": tokens})

    page = visit("dated-short", tree, width=1280, height=900)
    go_to(page, made.STEPS[-2])
    assert f"By step {made.STEPS[7]}, " in page.inner_text(".dated h3")
    assert page.locator(".dated.early").count() == 0
    go_to(page, made.STEPS[4])
    assert f"By step {made.STEPS[4]}, " in page.inner_text(".dated h3")


def test_births_and_squares_stand_on_the_axis_of_the_dates(visit):
    page = visit("dated-rows", lambda: with_fires([2, 4])[1], width=1280, height=900)
    for scale in ("log", "linear"):
        page.click(f"#scale [data-scale={scale}]")
        off = page.evaluate(
            """() => {
          const middle = (e) => { const b = e.getBoundingClientRect(); return b.x + b.width / 2; };
          const cells = new Map([...document.querySelectorAll(".dated-axis i")].map(
            (e) => [e.dataset.step, e.getBoundingClientRect()]));
          return [...document.querySelectorAll(".dated-track [data-step]")].map((e) => {
            const cell = cells.get(e.dataset.step);
            return cell.left - 1 <= middle(e) && middle(e) <= cell.right + 1;
          });
        }"""
        )
        assert len(off) == 3 and all(off)
    row = page.locator(".dated-rows > a")
    row.click()
    target = row.get_attribute("href")[1:]
    until(page, "(id) => document.getElementById(id)?.matches('.card.linked')", target)


def test_a_token_of_one_model_tells_what_it_and_bigrams_cost(visit):
    page = visit("beyond", lambda: one_model()[1], width=1280, height=900)
    page.locator(".beyond .d.good").first.hover()
    told = page.inner_text("#tooltip")
    assert "costs 1.00 nats; by bigrams of the other texts 2.00" in told


def test_a_phone_scrolls_down_alone_and_paper_shows_every_token(visit):
    page = visit("dated", examples.tree, width=360)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    go_to(page, made.STEPS[0])
    page.emulate_media(media="print")
    assert all(token["seen"] for token in page.evaluate(TOKENS))
    assert page.is_visible(".dated-end") and not page.is_visible(".dated-now")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 900})
