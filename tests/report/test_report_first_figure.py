"""The first screen as one picture: the page's own words, none over another."""

import itertools
import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from helpers import compared_runs
from helpers import concept_trees as made
from helpers import report_examples as examples
from ontogeny import compare
from ontogeny.report.chart.canvas import NARROW, WIDE
from ontogeny.report.files.overview import write_overview
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.life import life_picture
from ontogeny.report.paper import draw_first_screen, draw_life_figure, style
from ontogeny.report.paper.frame import PAGE, TALLEST
from ontogeny.report.paper.text import Words, broken
from ontogeny.words.content import read_content
from ontogeny.words.landmarks import control_curve


def only(*names, **options):
    return made.tree(
        {name: made.learned()[name].to_dataset() for name in names}, **options
    )


def long_words():
    tree = made.learned()
    tree.attrs["title"] = (
        "A very long title of a run that nobody would ever print so long " * 3
    )
    return tree


TREES = {
    "learned": made.learned,
    "long title": long_words,
    "loss alone": lambda: only("loss"),
    "concepts alone": lambda: only("joint-concepts"),
    "no control": lambda: only("loss", "joint-concepts", controls=()),
    "no concepts": examples.developing_tree,
}


@cache
def drawn(name):
    """Return the first screen of a tree above as it is drawn, which no test changes."""
    content = read_content(TREES[name]())
    first = first_screen(content)
    with style():
        figure = draw_first_screen(content, first)
        figure.set_dpi(300)  # as it is saved
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        own = [t for t in figure.texts if t.get_text().strip()]
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in own]
        panels = [axes.get_tightbbox(renderer) for axes in figure.axes]
    return first, figure, boxes, panels


@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_no_words_lie_over_others_or_beyond_the_figure(name):
    _, figure, boxes, panels = drawn(name)
    wide, high = figure.get_size_inches() * figure.dpi
    for words, box in boxes:
        assert box.x0 >= 0 and box.x1 <= wide and box.y0 >= 0 and box.y1 <= high, words
    # Neighbouring lines may touch by the room that fonts keep above their letters.
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 0.5 or down <= 4, (one, other)
    for panel in panels:
        assert panel.y1 <= min(box.y0 for _, box in boxes)
    assert (
        figure.get_size_inches()[0] == PAGE
        and figure.get_size_inches()[1] <= TALLEST + 0.01
    )


@pytest.mark.parametrize("name", TREES)
def test_the_words_are_those_of_the_page(name):
    first, figure, _, _ = drawn(name)
    text = " ".join(t.get_text() for t in figure.texts)
    for words in (
        first.heading,
        *(part for s in first.sentences for part in (s.lead, s.text)),
        *(part for n in first.numbers for part in (n.value, n.words)),
    ):
        for word in words.split():
            assert word in text
    # In the order of the page, but for where lines break.
    flat = re.sub(r"\s+", "", text)
    for sentence in first.sentences:
        assert re.sub(r"\s+", "", sentence.lead) in flat


@pytest.mark.parametrize(("guess", "arrow"), [(90.0, "↑ "), (-40.0, "↓ "), (9.0, "")])
def test_a_guess_far_away_leaves_the_loss_its_height(guess, arrow):
    """It is written with an arrow; one that is near is a line beside the loss."""
    tree = only("loss")
    data = tree["loss"].to_dataset()
    uniform = xr.full_like(data.loss_uniform, guess)
    tree["loss"] = xr.DataTree(data.assign(loss_uniform=uniform))
    content = read_content(tree)
    first = first_screen(content)
    picture = life_picture(content, first, [WIDE, NARROW]).drawings[0]
    curve = re.search(r'class="run" d="([^"]+)"', picture)[1]
    heights = [float(y) for _, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", curve)]
    assert max(heights) - min(heights) > 0.7 * 44
    assert (f"{arrow}uniform guess" in picture) and (
        "↑" in picture or "↓" in picture
    ) == bool(arrow)
    with style():
        axes = draw_life_figure(content, first).axes[0]
    assert np.ptp(axes.get_ylim()) < 6
    labels = [text.get_text() for text in axes.texts]
    assert any(label.startswith(f"{arrow}uniform guess") for label in labels)
    drawn_at = [line.get_ydata()[0] for line in axes.get_lines()]
    assert (guess in drawn_at) == (not arrow)


def test_lines_are_no_wider_than_they_may_be_and_lose_nothing():
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    for width in (0.4, 1.0, 2.2):
        text = " ".join(
            "".join(rng.choice(letters, rng.integers(1, 30))) for _ in range(60)
        )
        words = [
            Words(text[:200], 7, "black", bold=True),
            Words(text[200:], 7, "black"),
        ]
        lines = broken(words, width)
        assert all(sum(part.width for part in line) <= width + 1e-6 for line in lines)
        joined = "".join(part.text for line in lines for part in line)
        assert joined.replace(" ", "") == text.replace(" ", "")


def test_a_result_without_a_first_screen_has_no_such_file(tmp_path):
    for tree in (
        only("predictions"),
        examples.plain_tree(),
        compare(compared_runs.seeds(2)),
    ):
        content = read_content(tree)
        assert content.runs or first_screen(content) is None
        written = write_overview(content, tmp_path, ["png"], [])
        assert written and "first-screen.png" not in {path.name for path in written}


@pytest.mark.parametrize("name", TREES)
def test_captions_name_only_what_is_drawn(name, tmp_path):
    content = read_content(TREES[name]())
    first, captions = first_screen(content), []
    write_overview(content, tmp_path, ["svg"], captions)
    told = captions[-1]
    assert ("concept" in told.removeprefix(f"first-screen\n{first.heading}")) == bool(
        first.concepts
    )
    assert ("Grey: control runs" in told) == (
        first.loss is not None and control_curve(content) is not None
    )
    assert first.loss or "guesses" not in told


@pytest.mark.slow
def test_the_same_result_gives_the_same_bytes_with_fonts_embedded(tmp_path):
    captions = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_overview(
            read_content(only("loss")), tmp_path / folder, ["pdf", "svg"], captions
        )
    for kind in ("pdf", "svg"):
        one, other = (
            (tmp_path / f / f"first-screen.{kind}").read_bytes() for f in ("a", "b")
        )
        assert one == other
    pdf = (tmp_path / "a" / "first-screen.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Subtype /Image" not in pdf
    assert first_screen(read_content(only("loss"))).heading in captions[-1]
