"""Example text by loss, concept and entropy in a browser: segments, menus, courses, paper."""

import numpy as np
import pytest

from helpers import example_texts as examples
from helpers.report_browser import browser, quiet, visit
from ontogeny.report.texts.example import read_example
from ontogeny.words.content import read_content

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

TINTS = """() => [...document.querySelectorAll(".example-line:not([hidden]) .t")]
  .map((t) => Number(t.style.getPropertyValue("--a")))"""
SPECIAL = """() => [...document.querySelectorAll(".example-line:not([hidden]) .t")]
  .map((t) => t.matches(".special"))"""
VISIBLE = """() => [...document.querySelectorAll("#example-text [data-measure]")]
  .filter((e) => e.checkVisibility()).map((e) => e.dataset.measure)"""


@pytest.fixture(scope="module")
def found():
    return read_example(read_content(examples.full_tree()))


@pytest.fixture(scope="module")
def page(visit):
    page = visit("measures", examples.full_tree, width=390)
    page.click("#example-text summary")
    page.locator("#example-text").scroll_into_view_if_needed()
    page.press("#example-choice button >> nth=0", "Enter")
    return page


def choose(page, name, option=None):
    page.locator("#example-measure button", has_text=name).press("Enter")
    if option is not None:
        page.locator(".example-menu:visible select").select_option(str(option))


def go_to(page, key):
    page.focus("#slider")
    page.keyboard.press(key)


def expected(values, bottom, top):
    share = np.clip((np.nan_to_num(values) - bottom) / (top - bottom), 0, 1)
    return pytest.approx(np.where(np.isnan(values), 0, 0.62 * share), abs=0.02)


def test_segments_show_one_measure_with_its_words_scale_and_menu(page):
    for place, name in enumerate(("loss", "concept", "attention entropy")):
        choose(page, name)
        assert set(page.evaluate(VISIBLE)) == {str(place)}
        pressed = page.locator('#example-measure [aria-pressed="true"]')
        assert pressed.all_text_contents() == [name]
        assert page.locator(".example-menu:visible").count() == (place > 0)


@pytest.mark.parametrize("option", [0, 2])
def test_tints_are_the_entropies_of_the_chosen_layer(page, found, option):
    choose(page, "attention entropy", option)
    one = found.payload["measures"][2]
    data = examples.entropies().shown_entropy.values
    layers = [data.mean(axis=0), *data]
    for key, step in (("Home", 0), ("End", -1)):
        go_to(page, key)
        wanted = layers[option][step, 0]
        assert page.evaluate(TINTS) == expected(wanted, one["bottom"], one["top"])
        mean = page.text_content("#example-mean")
        assert (
            mean
            == f"Mean of this text {np.nanmean(wanted):.2f} nats; equal attention 4.00."
        )


def test_tints_are_the_codes_of_the_chosen_concept(page, found):
    names = [name for _, name in found.measures[1].options]
    texts = page.locator(".example-menu option").all_text_contents()
    assert texts[: len(names)] == names
    choose(page, "concept", found.payload["measures"][1]["option"])
    go_to(page, "Home")
    assert set(page.evaluate(TINTS)) == {0}
    go_to(page, "End")
    assert max(page.evaluate(TINTS)) == 0.62
    assert "Correlation of readout and shared codes" in page.text_content(
        "#example-mean"
    )


def test_a_token_shows_its_course_and_numbers_and_special_ones_are_told(page):
    choose(page, "attention entropy", 1)
    go_to(page, "Home")
    page.locator(".example-line").first.locator(".t").nth(3).hover()
    assert page.text_content("#example-value b") == "3.8 nats"
    assert page.text_content("#example-lead").startswith(
        "First 3.8, last 1.2. Dotted: 4.0 nats"
    )
    assert page.locator(".example-curve").bounding_box()["height"] == 40
    label = page.get_attribute(".example-curve", "aria-label")
    assert "first 3.8 nats, last 1.2 nats" in label
    page.locator(".example-line").first.locator(".t").nth(0).click()
    assert page.text_content("#example-value span") == "not counted"
    special = page.evaluate(SPECIAL)
    assert special[0] and special[-1] and not any(special[1:-1])


def test_menus_and_segments_are_reached_by_keys(page):
    page.focus("#example-measure button")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert (
        page.locator('#example-measure [aria-pressed="true"]').text_content()
        == "concept"
    )
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    step = page.get_attribute("#slider", "aria-valuenow")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#slider", "aria-valuenow") == step
    nameless = "e => !e.closest('label').textContent.trim()"
    assert not page.locator(".example-menu:visible select").evaluate(nameless)


def test_a_phone_has_room_for_everything(page):
    for name in ("loss", "concept", "attention entropy"):
        choose(page, name)
        over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(over) <= 0
        small = page.evaluate(
            """() => [...document.querySelectorAll("#example-text :is(button, a, select)")]
              .filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect())
              .filter((b) => b.height < 24 || b.width < 24).length"""
        )
        assert small == 0


def test_paper_shows_what_was_chosen_and_names_it(page):
    choose(page, "attention entropy", 2)
    page.emulate_media(media="print")
    menu = page.locator(".example-menu:visible select")
    assert menu.evaluate("(e) => e.selectedOptions[0].textContent") == "layer 1"
    assert page.locator(".example-scale:visible").count() == 1
    page.emulate_media(media="screen")
