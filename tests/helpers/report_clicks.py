"""What a person clicks on a page, and what that does: where it leads, or what it sets or opens."""

from .report_browser import LISTEN, until

CLICKS = {
    "further cards": ("#atlas-more", "cards"),  # before a link has shown them
    "a colour bar": ("[data-drawn] .cbfills", "open"),  # before a step redraws it
    # the first screen
    "the heading": ("#first-heading a", "place"),
    "a bold sentence": (".three li:nth-child(2) b a", "place"),
    "the last bold sentence": (".three li:last-child b a", "place"),
    "a large number": (".numbers dd a", "place"),
    "what a number is": (".numbers dt", "place"),
    "the curve of the loss": ("#life .life-wide .loss > .hit", "step"),
    "a number on its axis": ("#life .life-wide .on-log .tick", "step"),
    "the label of a reference": ("#life .life-wide .loss a text", "place"),
    "the name of a life line": ("#life .life-wide a[data-line] .name", "place"),
    "the strip of a life line": ("#life .life-wide .on-log .shade", "step"),
    "a token of the dated text": (".dated .d.good", "step"),
    "a token of a control run's text": (".dated-beside .d[data-step]", "step"),
    "the axis of the dated text": (".dated-axis", "step"),
    "the name of a concept under the text": (".dated-rows > a", "place"),
    "births and squares of a concept": (".dated-track", "step"),
    "the step of a gap": ("#cloze thead .s:not([hidden]) button", "step"),
    "copy as a picture": (".copy-first button", "words"),
    # the bar and the rail
    "the slider": ("#slider", "step"),
    "a checkpoint back": (".by-one", "step"),
    "a layer": ("#layers button:nth-of-type(3)", "pressed"),
    "a linear axis": ("#scale [data-scale=linear]", "pressed"),
    "an entry of the rail": ("#rail li:last-child a", "place"),
    "settings and provenance": (".facts summary", "open"),
    # the chart and its table
    "the heading of a group": ("svg.chart-wide a .group", "place"),
    "the name of a row": ("svg.chart-wide .row .name", "place"),
    "a cell of a row": ("svg.chart-wide .row .on-log path", "step"),
    "a number on the axis of the chart": ("svg.chart-wide .on-log .tick", "step"),
    "the colours of the chart": ("svg.chart-wide a .note", "place"),
    "the loss under the chart": ("svg.chart-wide a > .name:not(.row *)", "place"),
    "half-change steps": ("#chart-view button:last-child", "pressed"),
    "how to read the chart": (".chart-more summary", "open"),
    "all rows as a table": (".table-fold summary", "open"),
    "a row of the table": (".table-fold tbody a", "place"),
    "a column of the table": (".table-fold thead button", "sorted"),
    # the cards and the example text
    "where a concept is": ("#cards .card .where", "place"),
    "a context of a card": ("#cards .context summary", "open"),
    "more of a card": ("#cards .foot summary", "open"),
    "a token of the example text": (
        "#example-text .t:not(.special, [aria-selected])",
        "token",
    ),
    # sections and figures
    "a sentence of a section": (".node .sentences a", "place"),
    "a fold of figures": (".node .fold summary", "open"),
    "a curve of a figure": ("[data-drawn] .plot", "step"),
    "a number on the axis of a figure": ("[data-drawn] .xtick text", "step"),
    "the link of a figure": ("[data-link]:not([data-link=chart])", "words"),
}
"""Name: what is clicked, and what must change (`STATE`)."""

STATE = r"""(element) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const linked = all(".linked").find((e) => {
    const { top, bottom } = e.getBoundingClientRect();
    return e.getClientRects().length && bottom > 0 && top < innerHeight;
  });
  const states = (selector, name) => all(selector).map((e) => e.getAttribute(name)).join();
  return {
    place: linked?.id ?? linked?.dataset.row,
    step: document.querySelector("#now-step").textContent,
    open: all("details").map((fold) => +fold.open).join(""),
    pressed: states("[aria-pressed]", "aria-pressed"),
    sorted: states("th[aria-sort]", "aria-sort"),
    token: states(".t", "aria-selected"),
    cards: all(".card").length,
    words: element.dataset.said ?? element.textContent,
  };
}"""

CHANGED = f"([part, wanted, before]) => ({STATE})(part)[wanted] !== before"

FRESH = """() => {
  for (const all of document.querySelectorAll("#layers .all, #scale button:first-child")) all.click();
  for (const each of document.querySelectorAll(".linked")) each.classList.remove("linked");
}"""

OPEN = """(element) => {
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details"))
    if (!element.matches("summary") || fold !== element.parentElement) fold.open = true;
}"""


# Of its first line: a link may take several.
MIDDLE = """(element) => {
  const { x, y, width, height } = element.getClientRects()[0];
  return [x + width / 2, y + height / 2];
}"""


def click(page, selector, wanted):
    """Click the middle of the first such part that is seen, from the last step; return what changed.

    It waits for what is `wanted`: pictures take a while.
    """
    page.evaluate(FRESH)
    page.focus("#slider")
    page.keyboard.press("End")
    part = page.locator(selector).locator("visible=true").first
    if not part.count():
        part = page.locator(selector).first
        part.evaluate(OPEN)
    part = part.element_handle()  # which may be hidden by the click
    part.scroll_into_view_if_needed()
    before = part.evaluate(STATE)
    part.evaluate(LISTEN)
    page.mouse.click(*part.evaluate(MIDDLE))
    fault = f"a click on {selector} does not change {wanted}"
    until(page, CHANGED, [part, wanted, before[wanted]], fault)
    after = part.evaluate(STATE)
    return {key: after[key] for key in after if after[key] != before[key]}
