"""The pages name commands, options, names and files that exist."""

import ast
import importlib.util
import json
import re
import textwrap
import tomllib
from functools import reduce

import pytest
import typer

import ontogeny as og
from helpers.paths import PAPERS, ROOT
from ontogeny import _exports
from ontogeny.capture import objectives
from ontogeny.cli import executors, plugins
from ontogeny.cli.commands import app
from ontogeny.observables import registry
from ontogeny.trajectory.control.kinds import KINDS
from ontogeny.trajectory.weights import transformers_models

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    PAPERS / "README.md",
    *sorted((PAPERS / "docs").glob("*.md")),
    *sorted((PAPERS / "docs" / "guides").glob("*.md")),
]
SOURCE = ROOT / "src"
# Entry points, which are named like modules.
GROUPS = {
    objectives.GROUP,
    registry.GROUP,
    executors.GROUP,
    plugins.GROUP,
    _exports.GROUP,
    transformers_models.GROUP,
}
COMMANDS = typer.main.get_command(app).commands
_LINE = re.compile(r"^[`A-Z_=0-9 ]*\bontogeny ([a-z]+)\b(.*)$", re.M)


@pytest.fixture(params=PAGES, ids=lambda path: path.name)
def text(request):
    return request.param.read_text("utf-8")


def blocks_of(text, language=r"\w*"):
    """Return the code blocks in a language."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.M | re.S)
    return [textwrap.dedent(block) for block in found]


def commands_of(text):
    """Return the (command, rest of the line) of code blocks and of code within sentences."""
    blocks = blocks_of(text)
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    lines = [line for block in blocks for line in block.splitlines()] + spans
    found = [_LINE.match(line.split("#")[0].strip()) for line in lines]
    return [(match[1], match[2]) for match in found if match]


def test_commands_and_their_options_exist(text):
    for name, rest in commands_of(text):
        assert name in COMMANDS, f"ontogeny {name}"
        known = {option for each in COMMANDS[name].params for option in each.opts}
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", rest):
            assert option in known | {"--help", "--debug"}, f"ontogeny {name} {option}"


def heading_anchors(text):
    heads = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M
    )
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists() or target.with_suffix(".rst").exists(), link
        if anchor:
            assert anchor in heading_anchors(target.read_text("utf-8")), link


def is_there(name):
    """Return whether a dotted name leads somewhere from the package."""
    try:
        reduce(getattr, name.split("."), og)
    except AttributeError:
        return False
    return True


def test_public_names_exist(text):
    assert is_there("observables.Loss") and not is_there("observables.Lost")
    names = set(re.findall(r"`(?:og|ontogeny)\.(\w+(?:\.\w+)*)", text))
    public = {name for name in names if f"ontogeny.{name}" not in GROUPS}
    assert [name for name in sorted(public) if not is_there(name)] == []


def code_of(page):
    """Return the Python code of a page, a notebook or a program, a text each."""
    text = page.read_text("utf-8")
    if page.suffix == ".py":
        return [text]
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return [block for block in blocks_of(text, "python") if ">>> " not in block]


def is_module(dotted):
    try:
        return importlib.util.find_spec(dotted) is not None
    except ModuleNotFoundError:
        return False


def strange_names(code):
    """Return what code takes from the project that is not there, imported or below `og`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and is_of_project(node.module):
            module = importlib.util.find_spec(node.module) and importlib.import_module(
                node.module
            )
            for name in node.names:
                dotted = f"{node.module}.{name.name}"
                if not hasattr(module, name.name) and not is_module(dotted):
                    yield dotted
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if re.fullmatch(r"og(\.\w+)+", dotted) and not is_there(dotted[3:]):
                yield dotted


def is_of_project(module):
    return bool(module) and module.split(".")[0].startswith("ontogeny")


PROGRAMS = [
    path
    for pattern in ("docs/notebooks/*.ipynb", "benchmarks/*.py", "examples/*.py")
    for path in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("page", [*PAGES, *PROGRAMS], ids=lambda path: path.name)
def test_code_takes_names_that_exist(page):
    # A notebook imported a module that had gone: only the build of the documentation told.
    assert [name for code in code_of(page) for name in strange_names(code)] == []


def test_names_that_have_gone_are_found():
    assert list(strange_names("from ontogeny.words.tuned import text")) == [
        "ontogeny.words.tuned.text"
    ]
    assert list(strange_names("from ontogeny import open_study, gone")) == [
        "ontogeny.gone"
    ]
    assert list(strange_names("og.observables.Lost(3).x + og.open_study('a').y")) == [
        "og.observables.Lost"
    ]


def test_kinds_in_study_files_exist(text):
    blocks = blocks_of(text, "toml")
    named = {
        kind
        for block in blocks
        for kind in re.findall(r'^kind = "([\w-]+)"', block, re.M)
    }
    assert named <= {*registry.kinds(), *KINDS}


def test_the_tests_that_the_threat_model_names_exist():
    page = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    tests = "\n".join(p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    rows = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    named = [re.findall(r"`(test_\w+)`", row.split("|")[3]) for row in rows]
    assert len(rows) > 20 and named.count([]) == page.count("| threat |")
    assert [
        n for each in named for n in each if not re.search(rf"^def {n}\(", tests, re.M)
    ] == []


def test_study_files_and_code_can_be_read(text):
    for block in blocks_of(text, "toml"):
        assert tomllib.loads(block)
    for block in blocks_of(text, "python"):
        if ">>> " not in block:  # which the tests of the guides run
            compile(block, "page", "exec")


def texts_in(path):
    """Return the texts that a module's code holds, with an ellipsis where a value is put in."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if is_text(part) else "…" for part in node.values)
        elif is_text(node) and node not in docstrings:
            yield node.value


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_the_messages_of_the_guide_stand_in_the_source():
    page = (ROOT / "docs" / "guides" / "messages.md").read_text("utf-8")
    messages = re.findall(r"^- `([^`]+)`", page, re.M)
    source = [text for path in SOURCE.rglob("*.py") for text in texts_in(path)]
    assert 25 <= len(messages) == len(set(messages))
    assert [m for m in messages if not any(m in text for text in source)] == []
