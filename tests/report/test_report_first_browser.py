"""The first screen and the atlas in a browser: one step axis, contexts that follow, links, room."""

import numpy as np
import pytest

from helpers import concept_trees as made
from helpers.report_browser import browser, quiet, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

MIDDLE = """(selector) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  return box.left + box.width / 2;
}"""


@pytest.fixture(scope="module")
def page(visit):
    return visit("learned", made.learned)


def settled(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))")


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("key", ["Home", "End"])
def test_the_hairline_of_the_picture_stands_under_the_handle(page, scale, key):
    page.click(f"#scale button[data-scale={scale}]")
    page.focus("#slider")
    page.keyboard.press(key)
    settled(page)
    ends = [page.evaluate(MIDDLE, at) for at in ("#life .here", "#slider .knob")]
    assert abs(ends[0] - ends[1]) < 1
    page.click("#scale button[data-scale=log]")


def test_births_stand_where_the_slider_has_their_steps(page):
    settled(page)
    found = page.evaluate(
        """() => [...document.querySelectorAll("#life a")].map((link) => {
          const dot = link.querySelector(".dot")?.getBoundingClientRect();
          const words = [...link.querySelectorAll("text")].at(-1).textContent;
          return [dot && dot.left + dot.width / 2, words];
        })"""
    )
    marks = page.evaluate(
        """() => [...document.querySelectorAll("#slider .mark[x1]")].map((mark) => {
          const box = mark.getBoundingClientRect();
          return box.left + box.width / 2;
        })"""
    )
    places = dict(zip(made.STEPS, marks, strict=True))
    born = [(x, int(words.split(" ")[0].replace(",", ""))) for x, words in found if x is not None]
    assert len(born) > 10
    for x, step in born:
        assert abs(x - places[step]) < 1.5
    assert [step for _, step in born] == sorted(step for _, step in born)


def test_contexts_follow_the_slider_and_move_nothing(page):
    page.focus("#slider")
    page.keyboard.press("End")
    page.evaluate("document.getElementById('atlas').scrollIntoView()")
    page.wait_for_timeout(300)
    look = """() => {
      const card = document.querySelector(".card[data-concept]");
      const box = card.getBoundingClientRect();
      const said = [...card.querySelectorAll(".spark-value")].map((p) => p.textContent);
      return { words: card.querySelector(".contexts").textContent, said, height: box.height,
               parts: card.querySelectorAll("*").length };
    }"""
    last = page.evaluate(look)
    page.keyboard.press("Home")
    first = page.evaluate(look)
    assert first["words"] != last["words"]
    assert first["parts"] == last["parts"] and first["height"] == last["height"]
    assert any("Strongest at step 0" in line for line in first["said"])
    assert any("Strongest at step 512" in line for line in last["said"])


def test_search_and_filters_leave_what_was_asked_for(page):
    page.fill("#atlas-search", "comma")
    titles = page.locator("#cards .card[data-concept] .title").all_text_contents()
    assert titles and set(titles) == {"comma"}
    page.fill("#atlas-search", "no such thing")
    assert page.locator("#cards .card[data-concept]").count() == 0
    assert page.text_content(".atlas-count") == "0 of 22 concepts"
    page.fill("#atlas-search", "")
    page.select_option("#atlas-kind", "from the start")
    page.select_option("#atlas-layer", "1")
    heads = page.locator("#cards .card[data-concept] .where").all_text_contents()
    assert heads == ["layer 1 · C0"]
    page.select_option("#atlas-kind", "")
    page.select_option("#atlas-layer", "")


def test_cards_stand_sharpest_first_or_by_birth(page):
    page.select_option("#atlas-order", "birth")
    born = page.evaluate(
        """() => [...document.querySelectorAll("#cards .card[data-concept]")]
          .map((card) => card.querySelector("dt").textContent === "born"
            ? parseInt(card.querySelector("dd").textContent.replace(",", "")) : null)
          .filter((step) => step !== null)"""
    )
    assert born == sorted(born)
    page.select_option("#atlas-order", "sharp")


def test_the_control_stands_second_to_last_in_the_first_two_rows(page):
    cards = page.locator("#cards .card").all()
    places = [i for i, card in enumerate(cards) if "control-card" in card.get_attribute("class")]
    assert places == [4]


@pytest.mark.parametrize("number", [0, 9])
def test_an_address_leads_to_its_card_named_or_not(visit, number):
    place = f"concept=joint-concepts/model.layers.1.mlp/{number}"
    page = visit("learned", made.learned, fragment=f"#{place}")
    settled(page)
    card = page.locator(f'[id="{place}"]')
    assert "linked" in card.get_attribute("class")
    assert card.get_attribute("data-concept") == place.removeprefix("concept=")
    assert card.is_visible()
    top = card.bounding_box()["y"]
    assert 0 < top < 900


def test_a_life_line_leads_to_its_card_by_keyboard(visit):
    page = visit("learned", made.learned)
    links = page.locator("#life a")
    assert [a.get_attribute("tabindex") for a in links.all()].count("0") == 1
    page.focus('#life a[tabindex="0"]')
    page.keyboard.press("ArrowDown")
    wanted = page.evaluate("document.activeElement.getAttribute('href').slice(1)")
    assert wanted == links.nth(1).get_attribute("href")[1:]
    page.keyboard.press("Enter")
    settled(page)
    assert "linked" in page.locator(f'[id="{wanted}"]').get_attribute("class")


def test_tokens_that_hold_markup_are_shown_as_text(visit):
    page = visit("hostile", lambda: made.learned(hostile=True))
    texts = page.locator("#atlas bdi").all_text_contents()
    assert any("<script>alert(1)</script>" in text for text in texts)
    assert page.locator("#atlas script, #atlas img, #life script").count() == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
@pytest.mark.parametrize("kind", ["learned", "hostile"])
def test_nothing_reaches_out_of_the_page(visit, width, kind):
    make = made.learned if kind == "learned" else lambda: made.learned(hostile=True)
    page = visit(kind, make, width=width)
    page.evaluate("document.getElementById('atlas').scrollIntoView()")
    settled(page)
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
    outside = page.evaluate(
        """() => [...document.querySelectorAll("#life text")]
          .map((t) => [t.getBoundingClientRect(), t.textContent])
          .filter(([b]) => b.width && (b.left < -1 || b.right > innerWidth + 1))
          .map(([, words]) => words)"""
    )
    assert outside == []


def test_pictures_have_names_and_targets_are_large_enough(visit):
    page = visit("learned", made.learned)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(":is(#first, #atlas) :is(svg, [role=img])")]
          .filter((e) => !e.getAttribute("aria-label")).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    small = page.evaluate(
        """() => [...document.querySelectorAll(
            "#life a, #atlas button, #atlas input, #atlas select, #atlas a, #first button")]
          .map((e) => [e, (e.querySelector(".hit") ?? e).getBoundingClientRect()])
          .filter(([, b]) => b.width && (b.height < 23.5 || b.width < 23.5))
          .map(([e, b]) => `${e.textContent.slice(0, 30)} ${b.width}x${b.height}`)"""
    )
    assert small == []


def test_no_two_labels_of_the_picture_overlap(visit):
    for width in (320, 390, 1440):
        page = visit("learned", made.learned, width=width)
        settled(page)
        boxes = page.evaluate(
            """() => [...document.querySelectorAll("#life text")]
              .map((t) => { const b = t.getBoundingClientRect();
                return [b.left, b.right, b.top, b.bottom, t.textContent]; })
              .filter((b) => b[1] > b[0])"""
        )
        for i, a in enumerate(boxes):
            for b in boxes[i + 1 :]:
                across = min(a[1], b[1]) - max(a[0], b[0])
                down = min(a[3], b[3]) - max(a[2], b[2])
                assert not (across > 3 and down > 4), (width, a[4], b[4])


@pytest.mark.parametrize(("width", "height"), [(320, 640), (320, 256), (390, 844), (1024, 768)])
def test_a_long_step_is_never_cut_in_the_bar(visit, width, height):
    page = visit("learned", made.learned, width=width, height=height)
    cut = page.evaluate(
        """() => {
          const number = document.getElementById("now-step");
          number.textContent = "143,000";
          const [ink, room] = [number, number.closest(".now-text")];
          return ink.getBoundingClientRect().right - room.getBoundingClientRect().right;
        }"""
    )
    assert cut <= 0.5


def test_a_run_with_one_checkpoint_has_a_picture_and_no_slider(visit):
    steps = (7,)
    loss = made.loss_story(
        [5.0], steps=steps, controls=(), learned=False, changed=False, below=(7.0, 7.0, 7.0)
    )
    page = visit("one", lambda: made.tree({"loss": loss}, steps=steps, controls=()))
    assert "too few checkpoints" in page.text_content("#first-heading")
    assert page.locator("#life svg").count() == 1
    assert np.isfinite(page.locator("#life svg").bounding_box()["height"])
