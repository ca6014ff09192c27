"""Examples that turned, in a browser: no step without one before it says that none did."""

import numpy as np
import pytest
import xarray as xr

from helpers.ability_nodes import STEPS, node, with_texts
from helpers.report_browser import browser, quiet, visit
from ontogeny.report.texts import abilities

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser


def tree():
    data = with_texts(node({"late": [0.5, 1, 1, 1]}))
    data["right"] = data.right.astype(float)
    data.right[-1] = np.nan
    return xr.DataTree.from_dict({"/pairs": data})


def test_only_where_two_steps_were_measured_the_page_says_that_none_turned(visit):
    page = visit("turned", tree, width=1280, height=900)
    page.focus("#slider")
    page.keyboard.press("Home")
    told = []
    for _ in STEPS:
        told.append(page.text_content(".turned-list"))
        page.keyboard.press("ArrowRight")
    assert told[1].startswith("12 to right since step")
    assert told[2] == "No example turned."
    assert told[0] == told[3] == "Not measured both there and before."


def test_where_some_examples_are_kept_it_says_that_none_of_these_turned(
    visit, monkeypatch
):
    monkeypatch.setattr(abilities, "MOST", 6)
    page = visit("few-turned", tree, width=1280, height=900)
    page.focus("#slider")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    told = page.text_content(".turned-list")
    assert told == "None of the examples that are kept turned."


def of_groups(**courses):
    data = with_texts(node(courses))
    return xr.DataTree.from_dict(
        {"/pairs": data.assign(right=data.right.astype(float))}
    )


@pytest.mark.parametrize(
    ("courses", "begins", "ends"),
    [
        (
            {"late": [0.5, 1, 1, 1], "coin": [0.5, 0.4, 0.6, 0.5]},
            "12 to right since step",
            "of one group are left out: luck may turn such.",
        ),
        (
            {"coin": [0.5, 0.4, 0.6, 0.5], "other": [0.4, 0.6, 0.5, 0.4]},
            "Examples of 2 ",
            "groups are left out: luck may turn such.",
        ),
    ],
)
def test_coin_flips_are_not_told_as_events(visit, courses, begins, ends):
    page = visit(begins, lambda: of_groups(**courses), width=1280, height=900)
    page.focus("#slider")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    told = page.text_content(".turned-list")
    assert told.startswith(begins) and told.endswith(ends)
    assert "coin" not in told
