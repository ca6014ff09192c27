"""A kind of figure that only this module knows, on the page, in a notebook and as files."""

from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

from helpers.report_browser import browser, quiet, visit
from ontogeny import report
from ontogeny.figures import Figure, Section, attach
from ontogeny.report.kinds import FigureKind, read_drawables
from ontogeny.report.notebook.index import FigureIndex
from ontogeny.words.content import read_content

__all__ = ["browser", "quiet", "visit"]

SCRIPT = """
class StemsPicture extends HeatmapPicture {
  headWords() {
    return "drawn as stems";
  }
}
PICTURES.stems = StemsPicture;
"""


@dataclass(frozen=True)
class Stems(Figure):
    """A vertical line from 0 to each value."""

    x: str = "step"
    y: str = "layer"
    square: bool = False

    kind = "stems"
    dimensions = ("x", "y", "facet")


@pytest.fixture(scope="module", autouse=True)
def kind(tmp_path_factory):
    file = tmp_path_factory.mktemp("kind") / "stems.js"
    file.write_text(SCRIPT)

    class StemsKind(FigureKind):
        figure, script = Stems, file

        def draw(self, view):
            from ontogeny.report.paper.frame import Frame

            frame = Frame(view, 1.5, across=3)
            for axes, panel in zip(frame.axes, view.panels, strict=True):
                axes.vlines(range(3), 0, view.values(panel, "y", "x")[0])
            return frame.figure

        def notes(self, view):
            return ["Only the first layer has stems."]

    return StemsKind


def tree():
    values = (("step", "layer"), np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]))
    data = xr.Dataset({"norm": values}, {"step": [0, 10, 100], "layer": ["h.0", "h.1"]})
    node = attach(
        data,
        Section("Norms", "Norms."),
        [Stems("stems", "Norms as stems", value="norm")],
    )
    return xr.DataTree.from_dict({"norms": node})


def test_a_notebook_draws_it_and_gives_its_data():
    figure = FigureIndex(tree())["norms/stems"]
    assert figure.kind == "stems"
    assert "Only the first layer has stems." in figure.caption
    assert "<img" in figure._repr_html_()
    (lines,) = figure.matplotlib().collections
    assert [end[1][1] for end in lines.get_segments()] == [1.0, 2.0, 3.0]
    assert figure.data.norm.tolist() == [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]


def test_files_hold_its_picture_and_its_data(tmp_path):
    names = {path.name for path in report.write_figures(tree(), tmp_path, ["svg"])}
    assert {"norms-stems.svg", "norms-stems.csv"} <= names
    assert "Only the first layer has stems." in (tmp_path / "captions.txt").read_text()


def test_the_page_holds_its_script_and_its_values(tmp_path):
    page = report.write(tree(), tmp_path / "page.html").read_text()
    assert 'id="norms/stems" data-figure' in page
    assert "PICTURES.stems = StemsPicture;" in page
    assert '"kind":"stems"' in page


@pytest.mark.browser
def test_a_browser_draws_it(visit):
    page = visit("stems", tree)
    page.locator("[id='norms/stems']").scroll_into_view_if_needed()
    page.wait_for_selector("[id='norms/stems'][data-drawn]")
    assert "drawn as stems" in page.locator("[id='norms/stems'] .plot").text_content()


def test_a_class_that_nothing_draws_keeps_its_place_and_says_so():
    @dataclass(frozen=True)
    class Unknown(Stems):
        kind = "unknown"

    data = xr.Dataset({"norm": ("step", [1.0, 2.0])}, {"step": [0, 10]})
    figures = [Unknown("u", "Unknown", value="norm", y="step")]
    node = attach(data, Section("Norms", "Norms."), figures)
    result = xr.DataTree.from_dict({"norms": node})
    (drawable,) = read_drawables(read_content(result))
    assert "unknown" in drawable.problem
