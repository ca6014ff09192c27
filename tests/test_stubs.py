"""What type checkers and editors are told of names that are loaded when they are first used."""

import ast
import importlib
import runpy
from pathlib import Path

import pytest

import ontogeny as og
from helpers.paths import ROOT

STUBS = runpy.run_path(str(ROOT / ".ci" / "stubs.py"))["stubs"]()


def module_of(path):
    place = Path(path).relative_to(Path(og.__file__).parent.parent).with_suffix("")
    return ".".join(place.parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", STUBS, ids=module_of)
def test_a_stub_is_as_it_would_be_written(path):
    assert path.read_text(encoding="utf-8") == STUBS[path], "run .ci/stubs.py"


@pytest.mark.parametrize("path", STUBS, ids=module_of)
def test_a_stub_has_every_public_name_of_its_module_where_it_is_defined(path):
    module = importlib.import_module(module_of(path))
    imports = [n for n in ast.parse(STUBS[path]).body if isinstance(n, ast.ImportFrom)]
    homes = {n.names[0].name: "." * n.level + (n.module or "") for n in imports}
    homes.pop("Any", None)
    assert {*homes} == {*module.__all__}
    package = module.__name__ if path.name == "__init__.pyi" else module.__name__.rpartition(".")[0]
    for name, home in homes.items():
        defined = importlib.import_module(home, package)
        there = getattr(defined, name, None) or importlib.import_module(f"{package}.{name}")
        assert there is getattr(module, name)


def test_every_module_with_lazy_names_has_a_stub():
    sources = Path(og.__file__).parent.rglob("*.py")
    lazy = {module_of(p) for p in sources if "__getattr__ = exporter(" in p.read_text("utf-8")}
    assert lazy | {"ontogeny"} == {module_of(path) for path in STUBS}
