"""No module of a package imports one that imports it, nor does any sub-package."""

from pathlib import Path

import pytest

from helpers.import_graph import between_parts, circles, import_graph

SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture(scope="module")
def graph():
    return import_graph(SOURCE)


def test_no_two_modules_import_each_other(graph):
    assert circles(graph) == set()


def test_no_two_parts_of_a_package_import_each_other(graph):
    found = {
        circle for parts in between_parts(graph).values() for circle in circles(parts)
    }
    assert found == set()


def test_a_circle_is_found_wherever_its_imports_stand(tmp_path):
    package = tmp_path / "thing"
    for folder in (package, package / "inner"):
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    (package / "one.py").write_text("def f():\n    from .inner.deep import x\n")
    (package / "inner" / "deep.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from thing import two\n"
    )
    (package / "two.py").write_text("from . import one\n")
    graph = import_graph(tmp_path)
    assert circles(graph) == {frozenset({"thing.one", "thing.two", "thing.inner.deep"})}
    parts = frozenset({"thing.one", "thing.two", "thing.inner"})
    assert circles(between_parts(graph)["thing"]) == {parts}
