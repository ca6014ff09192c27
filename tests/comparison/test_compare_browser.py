"""The page of a comparison in a browser: runs over one another, and a mark for each."""

import numpy as np
import pytest

import ontogeny as og
from helpers.compared_runs import STEPS, run, seeds
from helpers.report_browser import browser, draw_all, hover, quiet, traces, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

CHART = "runs/runs"


def three(align="step"):
    """Three seeds; in one of them the entropy of a layer is no more than its motion."""
    runs = seeds(3, controls=True)
    node = runs["seed 1"]["attention-entropy"].to_dataset()
    node["beyond"].values[1] = False
    runs["seed 1"]["attention-entropy"].dataset = node
    return og.compare(runs, align=align)


@pytest.fixture(scope="module")
def page(visit):
    opened = visit("three", three)
    draw_all(opened)
    return opened


@pytest.fixture(scope="module")
def by_loss(visit):
    opened = visit("three by loss", lambda: three("loss"))
    draw_all(opened)
    return opened


def test_the_first_screen_says_in_how_many_runs_it_was_learned(page):
    assert (
        page.inner_text("#first-heading") == "Loss improved by learning in 3 of 3 runs"
    )
    assert page.locator("section.node h2").first.inner_text() == "Runs"


def test_the_overview_does_not_say_the_first_screen_again(page):
    told = page.locator("#first li").all_inner_texts()
    assert told and not any(text in page.inner_text("#verdict") for text in told)
    assert not page.locator("#verdict .lead").count()


def test_a_curve_that_ends_before_the_longest_run_says_at_which_step(visit):
    runs = {"long": run(20, seed=0), "short": run(30, seed=1, steps=STEPS[:-2])}
    page = visit("other lengths", lambda: og.compare(runs, seeds=True))
    (label,) = page.locator("#life .life-wide text.name").all_text_contents()
    assert label.startswith("mean ") and label.endswith(f" at step {STEPS[-3]}")
    page = visit("two recipes", lambda: og.compare(runs))
    labels = sorted(page.locator("#life .life-wide text.name").all_text_contents())
    assert [label.split()[0] for label in labels] == ["long", "short"]
    assert labels[1].endswith(f" at step {STEPS[-3]}") and "step" not in labels[0]


def test_every_run_has_a_mark_at_its_half_change_loss(by_loss):
    tree = three("loss")
    found = traces(by_loss, CHART, "marks")
    assert [trace["meta"]["run"] for trace in found] == ["seed 0", "seed 1", "seed 2"]
    half = tree["runs"].half_loss
    for trace in found:
        own = half.sel(run=trace["meta"]["run"]).values
        assert trace["x"] == pytest.approx(own.tolist(), abs=1e-4)
        assert trace["steps"] == half.row.values.tolist()
    # Marks of one row do not lie on one another.
    rows = list(zip(*(trace["y"] for trace in found), strict=True))
    assert all(len(set(row)) == 3 for row in rows)


def test_a_mark_is_open_where_the_change_is_no_more_than_motion(by_loss):
    filled = by_loss.evaluate(
        """(id) => document.querySelector(`[id="${id}"] .plot`).data
          .filter((t) => t.meta.part === "marks").map((t) => t.marker.color)""",
        CHART,
    )
    shades = {shade for own in filled for shade in own}
    assert len(shades) == 2
    assert [len(set(own)) for own in filled] == [1, 2, 1]


def test_hovering_a_row_names_all_its_runs(by_loss):
    hover(by_loss, CHART, 6.0, 0.1)
    text = by_loss.inner_text("#tooltip")
    assert all(f"seed {i}" in text for i in range(3)) and "loss" in text


def test_runs_overlap_in_panels_of_layers_and_differ_from_their_mean(page):
    figure = "attention-entropy/entropy"
    lines = traces(page, figure, "line")
    assert len(lines) == 9  # three runs in each of three layers
    page.press(f"[id='{figure}'] .segments button:text-is('difference')", "Enter")
    entropy = three()["attention-entropy"].entropy
    others = entropy.isel(run=[1, 2]).mean("run")
    for i, line in enumerate(traces(page, figure, "line")):
        expected = (entropy.isel(run=0) - others).isel(layer=i)
        np.testing.assert_allclose(line["y"], expected, rtol=1e-10, atol=1e-10)


def test_runs_aligned_by_loss_are_drawn_from_high_to_low(visit):
    page = visit("by-loss", lambda: og.compare(seeds(3, controls=True), align="loss"))
    draw_all(page)
    low, high = page.evaluate(
        """() => document.querySelector('[id="attention-entropy/entropy"] .plot')
          ._fullLayout.xaxis.range"""
    )
    assert low > high
    assert not page.locator(".problem").count()


def test_runs_aligned_by_tokens_count_tokens(visit):
    def tokens():
        runs = {"small": run(20, 0), "large": run(10, 1, steps=STEPS[:9])}
        return og.compare(runs, align="tokens", tokens_per_step=1000)

    page = visit("by-tokens", tokens, width=390, height=844)
    draw_all(page)
    assert "Tokens" in page.inner_text(".now-step")
    words = page.evaluate(
        """() => [...document.querySelectorAll('[id="loss/loss"] .plot .annotation-text')]
          .map((each) => each.textContent)"""
    )
    assert "training tokens" in words
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
