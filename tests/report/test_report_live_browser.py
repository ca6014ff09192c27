"""A page of a run that is still training reads itself again; the reader stays where they are."""

import time

import pytest

from helpers import report_examples as examples
from helpers.report_browser import browser
from ontogeny import report
from ontogeny.report.page.live import Live

__all__ = ["browser"]

pytestmark = pytest.mark.browser

EVERY = 2
LIMIT = 300  # seconds; only what hangs takes so long, on any machine
PLACE = "document.querySelectorAll('main > section')[2]"


def wait_until(page, expression):
    """Poll until an expression is true; the page's policy forbids what Playwright has for it."""
    from playwright.sync_api import Error

    begin = time.monotonic()
    while time.monotonic() - begin < LIMIT:
        try:
            if page.evaluate(f"document.documentElement.dataset.ready && {expression}"):
                return
        except Error:  # the page is being read again
            pass
        page.wait_for_timeout(50)
    pytest.fail(f"not within {LIMIT} s: {expression}")


def test_the_page_refreshes_itself_and_keeps_place_and_folds(browser, tmp_path):
    tree, path = examples.developing_tree(), tmp_path / "report.html"
    report.write(tree, path, Live(100, EVERY))
    context = browser.new_context(viewport={"width": 1200, "height": 700})
    page, complaints = context.new_page(), []
    page.set_default_timeout(1000 * LIMIT)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    before = page.evaluate(
        f"""() => {{
          document.querySelector(".facts").open = true;
          document.querySelector("#scale button:last-child").focus();
          {PLACE}.scrollIntoView({{ behavior: "instant" }});
          return {PLACE}.getBoundingClientRect().top;
        }}"""
    )
    report.write(tree, path, Live(200, EVERY))
    wait_until(
        page, "document.querySelector('#live')?.textContent.includes('at step 200')"
    )
    place = f"Math.abs({PLACE}.getBoundingClientRect().top - {before}) < 40"
    wait_until(page, place)
    assert page.evaluate("document.querySelector('.facts').open")
    assert page.evaluate("document.activeElement.dataset.scale") == "linear"
    report.write(tree, path)  # the training has ended
    wait_until(page, "!document.querySelector('#live')")
    assert page.evaluate("document.querySelector('.facts').open")
    assert (
        page.evaluate("JSON.parse(document.getElementById('data').textContent).refresh")
        is None
    )
    assert complaints == []
    context.close()


def test_a_page_that_is_not_written_again_does_not_refresh(tmp_path):
    path = report.write(examples.developing_tree(), tmp_path / "report.html", Live(100))
    text = path.read_text()
    assert "Watching was stopped there" in text and 'http-equiv="refresh"' not in text
    assert '"refresh": null' in text or '"refresh":null' in text
