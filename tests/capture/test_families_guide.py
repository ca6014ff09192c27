"""The guide's examples run, and its tables say what the code does."""

import doctest
import re

import pytest

from helpers.family_models import NAMES, build
from helpers.paths import GUIDES, ROOT
from ontogeny.capture.families import FAMILIES
from ontogeny.capture.loss import resolve_objective
from ontogeny.errors import ArgumentError

GUIDE = GUIDES / "families.md"


def rows(start):
    """Return the cells of the table rows whose first cell matches, without backticks."""
    lines = [
        line
        for line in GUIDE.read_text().splitlines()
        if re.match(rf"\| `{start}` \|", line)
    ]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_guide_runs_as_printed():
    result = doctest.testfile(str(GUIDE), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


def families():
    """Return family, model type, examples and what is predicted, of each row of the first table."""
    found = re.findall(
        r"^\| ([^|`]+) \| `(\w+)` \| (.*?) \| (.*?) \|", GUIDE.read_text(), re.M
    )
    return found[1:]  # without the head


def test_the_table_of_families_is_the_codes_own():
    listed = [(title, kind) for title, kind, *_ in families()]
    assert listed == [(family.title, kind) for kind, family in FAMILIES.items()]


@pytest.mark.parametrize("name", [name for name in NAMES if " " not in name])
def test_the_table_of_families_says_what_each_predicts(name):
    (said,) = (predicts for _, kind, _, predicts in families() if kind == name)
    try:
        objective = resolve_objective(build(name))
    except ArgumentError:
        objective = "none"
    words = {"causal": "next token", "masked": "masked tokens", "none": "nothing"}
    assert said == words[objective]


def test_the_tests_that_the_guide_names_exist():
    named = re.findall(r"`(tests/[\w/*]+\.py)`", GUIDE.read_text())
    found = [list(ROOT.glob(pattern)) for pattern in named]
    assert all(found) and sum(map(len, found)) > 5


def test_the_table_of_paths_is_the_codes_own():
    table = GUIDE.read_text().split("## Module paths")[1].split("\n\n")[2]
    listed = {}
    for kinds, *paths in (
        line.strip("| ").split(" | ") for line in table.splitlines()[2:]
    ):
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", kinds), paths)
    for kind, family in FAMILIES.items():
        paths = (family.blocks, family.attn, family.mlp, family.resid_mid, family.query)
        assert listed.pop(kind) == [
            f"`{p}`" if p else "-" for p in (*paths, family.output)
        ]
    assert not listed


def test_the_table_of_streams_is_the_codes_own():
    for stream in {family.stream for family in FAMILIES.values()}:
        (cells,) = rows(stream)
        members = [kind for kind, family in FAMILIES.items() if family.stream == stream]
        assert sorted(re.findall(r"`(\w+)`", cells[2])) == sorted(members)


def test_only_the_named_families_end_without_a_norm():
    assert {k for k, family in FAMILIES.items() if family.final_norm is None} == {
        "bert",
        "roberta",
    }
