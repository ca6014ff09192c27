"""What the library offers by name: few enough to learn, each documented, none with two meanings."""

import ast
import importlib
import inspect
import pkgutil
import types
from collections import defaultdict
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import ontogeny as og
import ontogeny_papers
from ontogeny._exports import homes
from ontogeny.errors import ArgumentError

MODULES = [
    name for name in og.__all__ if isinstance(getattr(og, name), types.ModuleType)
]
# Each of these modules makes or lists its own kind of thing by name; `compare` compares
# dictionaries in `distances`, and runs at the top.
OF_EACH_MODULE = {"make", "names", "compare"}


def public(module):
    return {
        name: getattr(getattr(og, module), name) for name in getattr(og, module).__all__
    }


def test_there_are_at_most_three_hundred():
    assert sum(len(public(module)) for module in MODULES) <= 300


def test_none_has_two_meanings():
    meanings = defaultdict(set)
    for module in MODULES:
        for name, value in public(module).items():
            meanings[name].add(id(value))
    twice = {name for name, values in meanings.items() if len(values) > 1}
    assert twice - OF_EACH_MODULE == set()


@pytest.mark.parametrize("module", MODULES)
def test_each_is_documented(module):
    for name, value in public(module).items():
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{module}.{name}"


def test_no_function_hides_its_module():
    hidden = []
    for module in pkgutil.walk_packages(og.__path__, "ontogeny."):
        package, _, leaf = module.name.rpartition(".")
        value = vars(importlib.import_module(package)).get(leaf)
        if inspect.isfunction(value) and (package, leaf) != ("ontogeny.cli", "main"):
            hidden.append(module.name)
    assert hidden == []


@pytest.mark.parametrize("module", ontogeny_papers.PUBLIC)
def test_the_names_of_the_papers_answer_where_the_library_has_its_own(module):
    for names in ontogeny_papers.PUBLIC[module].values():
        for name in names:
            assert getattr(getattr(og, module), name) is not None


def test_observables_of_entry_points_are_names_of_observables():
    for entry in entry_points(group="ontogeny.observables"):
        assert getattr(og.observables, entry.attr) is entry.load()


def test_the_library_uses_none_of_them():
    """Concepts of every study failed where the papers were not installed: fits were aligned."""
    theirs = {
        module: {name for names in inner.values() for name in names}
        for module, inner in ontogeny_papers.PUBLIC.items()
    }
    brought = entry_points(group="ontogeny.observables")
    theirs["observables"] |= {entry.attr for entry in brought}
    used = []
    for path in Path(og.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(
                node.value, ast.Name | ast.Attribute
            ):
                module = getattr(node.value, "id", getattr(node.value, "attr", ""))
                used += [(path.name, node.attr)] * (node.attr in theirs.get(module, ()))
            elif isinstance(node, ast.ImportFrom):
                names = theirs.get((node.module or "").rpartition(".")[2], ())
                used += [(path.name, n.name) for n in node.names if n.name in names]
    assert used == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(
        AttributeError, match=r"'ontogeny\.geometry' has no attribute 'two_n'"
    ):
        og.geometry.two_n  # noqa: B018


def test_a_name_that_two_packages_give_is_refused(monkeypatch):
    def given(module, packages):
        return iter([("two_nn", "one.place"), ("two_nn", "another.place")])

    monkeypatch.setattr("ontogeny._exports._given", given)
    with pytest.raises(
        ArgumentError, match=r"another\.place and one\.place both give 'two_nn'"
    ):
        homes.__wrapped__("geometry")
