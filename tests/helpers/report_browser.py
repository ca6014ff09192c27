"""Pages in a headless browser, for tests: opened, watched, and drawn whole."""

import json
import os
import shutil
from pathlib import Path

import pytest

from ontogeny import report

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
LIMIT = 300_000  # milliseconds; only what hangs takes so long, on any machine
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def unavailable(reason):
    """Skip where a person has no browser; in CI that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable("playwright is not installed (it is in the dev extra)")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        unavailable(f"none of {', '.join(BROWSERS)} is in PATH")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


class Watched:
    """A page with everything that it complained about or asked for."""

    def __init__(self, browser, path, width=1400, height=900, fragment="", **options):
        self.complaints, self.requests = [], []
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        self.page = page = self.context.new_page()
        page.set_default_timeout(LIMIT)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}")
        )
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(Path(path).as_uri() + fragment)
        page.wait_for_selector("html[data-ready]")

    def check(self):
        assert self.complaints == [], self.complaints
        assert sum(u.startswith("file:") for u in self.requests) == 1
        assert all(u.startswith(("file:", "data:", "blob:")) for u in self.requests)


class Visits:
    """Opens trees' pages; every page must stay without complaint or request until the end."""

    def __init__(self, browser, folder):
        self.browser, self.folder = browser, folder
        self.written, self.opened, self.shared = {}, [], {}

    def __call__(self, name, make, **options):
        self.opened.append(self._open(name, make, options))
        return self.opened[-1].page

    def once(self, name, make, **options):
        """Open a page for all tests of a module that leave it, or begin by setting it, as it opens."""
        key = (name, *sorted(options.items()))
        if key not in self.shared:
            self.shared[key] = self._open(name, make, options)
        return self.shared[key].page

    def _open(self, name, make, options):
        if name not in self.written:
            self.written[name] = report.write(make(), self.folder / f"{name}.html")
        return Watched(self.browser, self.written[name], **options)

    def check(self):
        for watched in (*self.opened, *self.shared.values()):
            watched.check()

    def close(self, first=0):
        """Close the pages from the `first` on: each is a process of its own."""
        while len(self.opened) > first:
            self.opened.pop().context.close()


@pytest.fixture(scope="module")
def visit(browser, tmp_path_factory):
    visits = Visits(browser, tmp_path_factory.mktemp("pages"))
    yield visits
    visits.close()


@pytest.fixture(autouse=True)
def quiet(visit):
    # The pages that tests of a module share are open already.
    before = len(visit.opened)
    yield
    visit.check()
    visit.close(before)


FRAMES = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(done));
  setTimeout(done, 10000);  // a browser may draw nothing of a page that nobody sees
})"""
"""Two frames: after them the page has heard of a new size of its window, and laid itself out."""


def until(page, condition, arg=None, fault="it never became true"):
    """Wait until a function is true in a page; the `fault` is what it says if that never happens.

    Playwright's own wait evaluates text at every try, which the page forbids after the first.
    """
    page.evaluate(
        f"""async (arg) => {{
          const begin = performance.now();
          while (!({condition})(arg)) {{
            if (performance.now() - begin > {LIMIT}) throw new Error({json.dumps(fault)});
            await new Promise((next) => setTimeout(next, 20));
          }}
        }}""",
        arg,
    )


LISTEN = """(button) => {
  const note = () => { button.dataset.said = button.textContent; };
  new MutationObserver((_, all) => { note(); all.disconnect(); }).observe(button, { childList: true });
}"""


def listen(page, selector):
    """Note the first answer of a button in `data-said`: it goes away after two seconds."""
    page.locator(selector).evaluate(LISTEN)


def wait_for_answer(page, selector, answer):
    page.wait_for_selector(f"{selector}[data-said]")
    assert page.get_attribute(selector, "data-said") == answer


UNDRAWN = "[data-figure]:not([data-drawn])"
BELOW = f"""() => [...document.querySelectorAll("{UNDRAWN}")]
  .every((figure) => figure.getBoundingClientRect().top >= innerHeight)"""


def draw_all(page):
    """Open every fold, make the window so high that every figure is in view, and wait for them."""
    page.evaluate(
        "for (const fold of document.querySelectorAll('.fold')) fold.open = true"
    )
    page.evaluate(FRAMES)
    width = page.viewport_size["width"]
    is_drawn = False
    while not is_drawn:  # what is drawn may need more room
        high = page.evaluate("document.body.scrollHeight")
        page.set_viewport_size({"width": width, "height": max(9000, high + 500)})
        page.evaluate(FRAMES)
        until(page, BELOW)
        is_drawn = not page.locator(UNDRAWN).count()
    page.set_viewport_size({"width": width, "height": 9000})
    page.evaluate(FRAMES)


def traces(page, figure, part):
    return page.evaluate(
        """([id, part]) => document.querySelector(`[id="${id}"] .plot`).data
          .filter((t) => t.meta && t.meta.part === part)
          .map((t) => ({meta: t.meta, x: [...t.x], y: t.y && [...t.y], z: t.z,
                        steps: t.customdata ? [...t.customdata] : null}))""",
        [figure, part],
    )


def hover(page, figure, place, height, panel=0):
    spot = page.evaluate(
        """([id, place, height, panel]) => {
          const plot = document.querySelector(`[id="${id}"] .plot`);
          const box = plot.getBoundingClientRect();
          const suffix = panel ? panel + 1 : "";
          const [a, b] = plot.layout[`xaxis${suffix}`].domain.map((d) => d * box.width);
          const [c, d] = plot.layout[`yaxis${suffix}`].domain.map((d) => (1 - d) * box.height);
          const [low, high] = plot.layout.xaxis.range;
          const share = (place - low) / (high - low);
          return [box.left + a + share * (b - a), box.top + d + height * (c - d)];
        }""",
        [figure, place, height, panel],
    )
    page.mouse.move(*spot)
