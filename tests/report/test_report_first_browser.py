"""The first screen and the atlas in a browser: one step axis, contexts that follow, links, room."""

import itertools
import json
import re

import pytest

from helpers import concept_trees as made
from helpers.learned_tree import STEPS as LEARNED_STEPS
from helpers.learned_tree import learned_concepts
from helpers.report_browser import FRAMES, browser, quiet, until, visit

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

MIDDLE = """(selector) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  return box.left + box.width / 2;
}"""


def alike():
    """Return names that differ only where a life line has no room for them."""
    data = learned_concepts(control=False)
    names = data["name"].copy()
    names[0] = [f"{'W' * 30}{end}" for end in "abc"]
    return made.tree({"learned-concepts": data.assign(name=names)}, steps=LEARNED_STEPS)


@pytest.mark.parametrize("form", ["wide", "narrow"])
def test_life_lines_whose_names_are_cut_alike_have_their_numbers(visit, form):
    page = visit("alike", alike, width=1280, height=900)
    lines = page.locator(f"#life .life-{form} a[data-line]").all()
    names = [" ".join(each.locator(".name").all_text_contents()) for each in lines]
    assert len(names) == len(set(names)) == 4
    ends = [name[-4:] for name in names if name.startswith("WW")]
    assert sorted(ends) == ["· C0", "· C1", "· C2"]


def test_a_card_has_its_sentences_and_its_direction(visit):
    page = visit.once("alike", alike, width=1280)
    card = page.locator("#cards .card[data-concept]").first
    said = card.locator("p.spark-value").all_text_contents()
    assert any("AUC 0.80, 0.70–0.90" in text for text in said)
    foot = card.locator(".numbers-of-it")
    assert "correlation 0.50" in foot.text_content()
    # Of each band a context is open, and all are where the foot is.
    contexts = card.locator(".contexts li:not(.band):not([hidden])")
    shown = [row.is_visible() for row in contexts.all()]
    assert any(shown)
    foot.locator("summary").click()
    assert all(row.is_visible() for row in contexts.all())
    assert "node.decoder" in card.locator(".direction").text_content()


def test_a_context_opens_its_tinted_text_by_keys_and_stays_in_the_address(visit):
    page = visit("alike", alike, width=1280, height=900)
    card = page.locator("#cards .card[data-concept]").first
    context = card.locator(".context:visible").nth(1)
    tints = "(line) => [...line.querySelectorAll('bdi')].map((b) => b.style.cssText)"
    before = context.locator("summary").evaluate(tints)
    words = page.inner_text("body").split()
    card.locator(".where").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert context.evaluate("(fold) => fold.open")
    assert context.locator("summary").evaluate(tints) == before
    told = context.locator("p")
    until(page, "() => document.querySelector('.context[open] p').textContent")
    share = float(re.search(r"(\d+) %", told.text_content())[1]) / 100
    drawn = context.locator(".peak").evaluate("(b) => +b.style.getPropertyValue('--a')")
    assert share == pytest.approx(drawn / 0.62, abs=0.01)
    until(page, "() => location.hash.includes('context=')")
    place, address = card.get_attribute("id"), page.url
    assert address.split("#")[1] == f"{place}?context=1"
    page.keyboard.press("Enter")
    until(page, "() => !location.hash.includes('context=')")
    assert page.inner_text("body").split() == words
    page.evaluate("(url) => { location.href = url; }", address)
    until(page, "() => document.querySelector('.card.linked .context[open]')")
    assert page.locator(".context[open]").count() == 1


@pytest.fixture(scope="module")
def page(visit):
    return visit("learned", made.learned)


def settled(page):
    page.evaluate(FRAMES)
    page.evaluate(FRAMES)  # what the first two have drawn may have moved others


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("key", ["Home", "End"])
def test_the_hairline_of_the_picture_stands_under_the_handle(page, scale, key):
    page.press(f"#scale button[data-scale={scale}]", "Enter")
    page.focus("#slider")
    page.keyboard.press(key)
    settled(page)
    ends = [
        page.evaluate(MIDDLE, at) for at in ("#life .life-wide .now", "#slider .knob")
    ]
    assert abs(ends[0] - ends[1]) < 1
    page.press("#scale button[data-scale=log]", "Enter")


def test_the_line_of_the_step_crosses_no_heading(page):
    apart = """() => document.querySelector("#life .life-wide .now").getBoundingClientRect().top
        - document.querySelector("#life .life-head").getBoundingClientRect().bottom"""
    assert page.evaluate(apart) > 0


def test_births_stand_where_the_slider_has_their_steps(page):
    settled(page)
    found = page.evaluate(
        """() => [...document.querySelectorAll("#life .life-wide a")].map((link) => {
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
    born = [
        (x, int(words.split(" ")[0].replace(",", "")))
        for x, words in found
        if x is not None
    ]
    assert len(born) == 10
    for x, step in born:
        assert abs(x - places[step]) < 1.5
    assert [step for _, step in born] == sorted(step for _, step in born)


def test_contexts_follow_the_slider_and_move_nothing(page):
    page.focus("#slider")
    page.keyboard.press("End")
    page.evaluate("document.getElementById('atlas').scrollIntoView()")
    until(page, "() => document.querySelector('.card[data-concept] .spark-value')")
    settled(page)
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
    assert (
        page.text_content(".atlas-count [role=status]") == "None of 22 concepts fits."
    )
    page.press("#atlas-all", "Enter")
    assert page.input_value("#atlas-search") == ""
    assert page.locator("#cards .card[data-concept]").count() > 4
    assert page.is_hidden("#atlas-all")
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
    places = [
        i
        for i, card in enumerate(cards)
        if "control-card" in card.get_attribute("class")
    ]
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
    links = page.locator("#life .life-wide a[data-line]")
    assert [a.get_attribute("tabindex") for a in links.all()].count("0") == 1
    page.focus('#life .life-wide a[tabindex="0"]')
    page.keyboard.press("ArrowDown")
    wanted = page.evaluate("document.activeElement.getAttribute('href').slice(1)")
    assert wanted == links.nth(1).get_attribute("href")[1:]
    page.keyboard.press("Enter")
    settled(page)
    assert "linked" in page.locator(f'[id="{wanted}"]').get_attribute("class")


@pytest.fixture
def hostile(visit):
    return visit.once("hostile", lambda: made.learned(hostile=True))


def test_tokens_that_hold_markup_are_shown_as_text(hostile):
    page = hostile
    texts = page.locator("#atlas bdi").all_text_contents()
    assert any("<script>alert(1)</script>" in text for text in texts)
    assert page.locator("#atlas script, #atlas img, #life script").count() == 0


def test_the_first_screen_fits_one_screen(visit):
    page = visit.once("learned", made.learned, width=1440)
    page.evaluate("scrollTo(0, 0)")
    settled(page)
    shown = ["#first-heading", ".three", "#life svg", ".life figcaption", ".numbers"]
    bottom = "(at) => document.querySelector(at).getBoundingClientRect().bottom"
    bottoms = {at: page.evaluate(bottom, at) for at in [*shown, "#cloze tbody tr"]}
    assert max(bottoms.values()) <= 900, bottoms
    assert page.locator("#life .life-wide a[data-line]").count() == 10
    names = page.evaluate(
        """() => [...document.querySelectorAll("#life .life-wide a[data-line]")].map((link) =>
          [link.querySelector(".name").getBoundingClientRect().right,
           link.querySelector(".shade, .hatched").getBoundingClientRect().left])"""
    )
    assert all(right < left for right, left in names)


def test_the_menu_of_dictionaries_changes_cards_and_words(visit):
    page = visit(
        "several",
        lambda: made.tree(
            {
                "loss": made.loss_story(),
                "joint-concepts": made.joint_concepts(),
                **made.concepts_of_steps(),
            }
        ),
    )
    assert (
        page.text_content("#atlas-node option >> nth=0") == "Concepts and their lives"
    )
    page.select_option("#atlas-node", label="ICA concepts, step 512")
    assert "fitted to step 512 alone" in page.text_content(".atlas-about")
    assert page.locator("#cards .card[data-concept]").count() == 6
    assert page.locator("#cards .spark").count() == 0
    assert page.is_hidden("#atlas-kind") and page.is_hidden("#atlas-order")
    page.press("#life .life-wide a[data-line] >> nth=2", "Enter")
    settled(page)
    assert page.input_value("#atlas-node") == "0"
    assert page.locator(".card.linked .spark").count() == 1


def test_cards_on_paper_have_their_contexts_at_the_step(visit):
    page = visit("learned", made.learned)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    cards = page.locator("#cards .card[data-concept]").all()[:4]
    assert all(card.locator(".contexts").first.is_visible() for card in cards)
    labels = page.locator("#cards .spark-value").all_text_contents()
    assert any(label.startswith("Strongest at step 512") for label in labels)


WIDTHS = (320, 390, 768, 1440)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_reaches_out_of_a_page_that_opens(visit, width):
    assert_nothing_reaches_out(visit.once("learned", made.learned, width=width))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_reaches_out_of_a_page_that_becomes_wider_or_narrower(hostile, width):
    hostile.set_viewport_size({"width": width, "height": 900})
    assert_nothing_reaches_out(hostile)


def assert_nothing_reaches_out(page):
    settled(page)
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
    page = visit.once("learned", made.learned, width=1440)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(":is(#first, #atlas) :is(svg, [role=img])")]
          .filter((e) => !e.getAttribute("aria-label")).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    small = page.evaluate(
        """() => [...document.querySelectorAll(
            "#life a, #atlas :is(button, input, select, a), #first button")]
          .map((e) => [e, (e.querySelector(".hit") ?? e).getBoundingClientRect()])
          .filter(([, b]) => b.width && (b.height < 23.5 || b.width < 23.5))
          .map(([e, b]) => `${e.textContent.slice(0, 30)} ${b.width}x${b.height}`)"""
    )
    assert small == []


def test_no_two_labels_of_the_picture_overlap(visit):
    for width in (320, 390, 1440):
        page = visit.once("learned", made.learned, width=width)
        settled(page)
        assert overlaps(page) == [], width


def overlaps(page):
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("#life text, #life :is(.life-head, .life-legend)")]
          .map((t) => { const b = t.getBoundingClientRect();
            return [b.left, b.right, b.top, b.bottom, t.textContent]; })
          .filter((b) => b[1] > b[0])"""
    )
    found = []
    for a, b in itertools.combinations(boxes, 2):
        across = min(a[1], b[1]) - max(a[0], b[0])
        down = min(a[3], b[3]) - max(a[2], b[2])
        if across > 3 and down > 4:
            found.append((a[4], b[4]))
    return found


def characters():
    result = made.tree({"loss": made.loss_story()})
    result.attrs["inputs"] = json.dumps([{"name": "text", "token_unit": "character"}])
    return result


def test_labels_of_lines_stand_in_the_picture_and_on_no_line(visit):
    page = visit("characters", characters)
    for width in (390, 700, 1000, 1200, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        settled(page)
        bad = page.evaluate(
            """() => {
              const svg = document.querySelector("#life svg"), edge = svg.getBoundingClientRect();
              const lines = [...svg.querySelectorAll(".reference, .run")]
                .map((line) => line.getBoundingClientRect().right);
              return [...svg.querySelectorAll("text:not(.head, .tick)")]
                .map((t) => [t.getBoundingClientRect(), t.textContent])
                .filter(([b]) => b.right > edge.right + 1 || lines.some((end) => end > b.left))
                .map(([, words]) => words);
            }"""
        )
        assert bad == [], width
        assert "character frequencies" in page.text_content("#life")


def test_a_long_step_is_never_cut_in_the_bar(visit):
    page = visit("learned", made.learned, width=320, height=640)
    page.evaluate("document.getElementById('now-step').textContent = '143,000'")
    for width, height in ((320, 640), (320, 256), (390, 844), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(FRAMES)
        cut = page.evaluate(
            """() => {
              const number = document.getElementById("now-step");
              const [ink, room] = [number, number.closest(".now-text")];
              return ink.getBoundingClientRect().right - room.getBoundingClientRect().right;
            }"""
        )
        assert cut <= 0.5, (width, height)


def test_one_checkpoint_has_a_picture_without_steps_and_no_slider(visit):
    steps = (7,)
    loss = made.loss_story(
        [5.0],
        steps=steps,
        controls=(),
        learned=False,
        changed=False,
        below=(7.0, 7.0, 7.0),
    )
    page = visit("one", lambda: made.tree({"loss": loss}, steps=steps, controls=()))
    assert page.text_content("#first-heading").startswith("It predicts better than")
    assert page.locator("#life svg").count() and not page.is_visible("#slider")


def test_on_a_phone_the_legend_of_the_loss_stands_between_its_heading_and_its_lines(
    visit,
):
    page = visit("learned", made.learned, width=390)
    settled(page)
    boxes = [
        page.locator(f"#life {part}").first.bounding_box()
        for part in (".life-head", ".life-legend", ".life-narrow .run")
    ]
    head, legend, run = boxes
    assert head["y"] + head["height"] <= legend["y"] + 1
    assert legend["y"] + legend["height"] <= run["y"]
    assert "word frequencies 6.32" in page.inner_text(".life-legend")
    assert page.locator(".life-narrow .loss text").count() == 0
