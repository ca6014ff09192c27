"""The first screen as one picture, in a browser: copied, or saved where a page may not copy."""

import io

import matplotlib.image
import numpy as np
import pytest

from helpers.report_browser import browser, listen, quiet, visit, wait_for_answer
from helpers.written_texts import tree

__all__ = ["browser", "quiet", "visit"]

pytestmark = pytest.mark.browser

COPIES = """() => {
  navigator.clipboard.write = async (items) => {
    const blob = await items[0].getType("image/png");
    window.copied = [...new Uint8Array(await blob.arrayBuffer())];
  };
}"""
BUTTON = ".copy-first button"
REFUSES = "() => { navigator.clipboard.write = () => Promise.reject(new Error()); }"


def looked_at(data):
    """Return a picture's width and height, and the share of its pixels that are not of its paper."""
    picture = matplotlib.image.imread(io.BytesIO(data))
    marked = np.abs(picture - picture[0, 0]).max(axis=2) > 0.02
    return (picture.shape[1], picture.shape[0]), marked.mean()


def test_the_picture_holds_the_first_screen_and_nothing_below_it(visit):
    page = visit("copied", tree, width=1440, height=900)
    page.evaluate(COPIES)
    listen(page, BUTTON)
    page.click(BUTTON)
    wait_for_answer(page, BUTTON, "Picture copied")
    (width, height), marked = looked_at(bytes(page.evaluate("window.copied")))
    assert width == 2480
    assert 600 < height < 4000
    assert 0.01 < marked < 0.5


def test_where_a_page_may_not_copy_the_picture_is_saved_and_that_is_said(visit):
    page = visit("saved", tree, width=390, height=800)
    page.evaluate(REFUSES)
    listen(page, BUTTON)
    with page.expect_download() as download:
        page.click(BUTTON)
    (width, _), marked = looked_at(download.value.path().read_bytes())
    assert width == 2480  # as wide as on a large screen
    assert 0.01 < marked < 0.5
    wait_for_answer(page, BUTTON, "Picture saved")
