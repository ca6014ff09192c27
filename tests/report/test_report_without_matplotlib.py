"""The page needs no matplotlib; what needs it says how to install it."""

import importlib.util
import re
import sys

import pytest

from helpers import report_examples as examples
from ontogeny import report
from ontogeny.errors import MissingExtraError
from ontogeny.report import drawing
from ontogeny.report.notebook.figure import ResultChart
from ontogeny.report.notebook.index import FigureIndex

INSTALL = re.escape("pip install 'ontogeny[figures]'")


@pytest.fixture
def tree(monkeypatch):
    """A result, where matplotlib and what imports it are not there."""
    whole = importlib.util.find_spec
    missing = {"matplotlib": None}
    monkeypatch.setattr(
        drawing, "find_spec", lambda name: missing.get(name, name) and whole(name)
    )
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [n for n in sys.modules if n.startswith("ontogeny.report.paper")]:
        monkeypatch.delitem(sys.modules, name)
    return examples.developing_tree()


def test_the_page_is_written(tree, tmp_path):
    assert report.write(tree, tmp_path / "report.html").stat().st_size > 100_000


def test_figures_as_files_say_what_to_install(tree, tmp_path):
    with pytest.raises(MissingExtraError, match=INSTALL):
        report.write_figures(tree, tmp_path / "figures")


def test_pictures_in_a_notebook_say_what_to_install(tree):
    index = FigureIndex(tree)
    figure = index[next(iter(index))]
    assert figure.title in repr(figure) and len(figure.data)
    for picture in (figure, ResultChart(tree, "intervals")):
        with pytest.raises(MissingExtraError, match=INSTALL):
            picture.matplotlib()
    assert "ontogeny[figures]" in figure._repr_html_()
