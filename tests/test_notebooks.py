"""The notebooks are stored without outputs, and the documentation executes them (`make docs`)."""

import ast
import json
import re
import tomllib

import pytest

from helpers.paths import ROOT

FOLDER = ROOT / "docs" / "notebooks"
ABSOLUTE = re.compile(r"""["'](/|~|[A-Za-z]:\\)""")
"""The beginning of a path that exists on one machine only."""
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    return json.loads(request.param.read_text("utf-8"))["cells"]


def test_all_are_pages_of_the_site_and_named_in_the_guide():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    guide = (ROOT / "docs" / "guides" / "notebooks.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 4
    for path in NOTEBOOKS:
        assert (
            f"notebooks/{path.stem}\n" in index and f"../notebooks/{path.name}" in guide
        )


def test_they_hold_no_outputs(cells):
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


def test_their_code_is_python_without_paths_of_a_machine(cells):
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            ast.parse(source)
        assert not ABSOLUTE.search(source)


def test_absolute_paths_are_found():
    found = ('open("/home/ada/run")', "Path('C:\\\\runs')", 'open("~/run")')
    assert all(map(ABSOLUTE.search, found)) and not ABSOLUTE.search(
        'open("runs/adder")'
    )


def test_they_begin_with_a_heading_and_explain_what_they_do(cells):
    assert cells[0]["cell_type"] == "markdown" and "".join(
        cells[0]["source"]
    ).startswith("# ")
    assert sum(cell["cell_type"] == "markdown" for cell in cells) >= 4


def test_the_documentation_brings_what_they_import():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    docs = {line.split(">")[0] for line in extras["optional-dependencies"]["docs"]}
    assert {
        "accelerate",
        "matplotlib",
        "myst-nb",
        "peft",
    } <= docs  # of the Trainer, of pictures, of pages


def test_a_broken_cell_fails_the_documentation():
    conf = (ROOT / "docs" / "conf.py").read_text("utf-8")
    assert (
        "nb_execution_raise_on_error = True" in conf
        and 'nb_execution_mode = "force"' in conf
    )
