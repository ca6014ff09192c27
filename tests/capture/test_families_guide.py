"""The guide's examples run, and its tables say what the code does."""

import doctest
import re

from helpers.paths import GUIDES
from ontogeny.capture.families import FAMILIES

GUIDE = GUIDES / "families.md"


def rows(start):
    """Return the cells of the table rows whose first cell matches, without backticks."""
    lines = [line for line in GUIDE.read_text().splitlines() if re.match(rf"\| `{start}` \|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_guide_runs_as_printed():
    result = doctest.testfile(str(GUIDE), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0


def test_the_table_of_paths_is_the_codes_own():
    for kind, family in FAMILIES.items():
        (cells,) = rows(kind)
        paths = (family.blocks, family.attn, family.mlp, family.resid_mid, family.query)
        expected = [f"`{path}`" if path else "-" for path in (*paths, family.output)]
        assert cells == [f"`{kind}`", *expected]


def test_the_table_of_streams_is_the_codes_own():
    for stream in {family.stream for family in FAMILIES.values()}:
        (cells,) = rows(stream)
        members = [kind for kind, family in FAMILIES.items() if family.stream == stream]
        assert sorted(re.findall(r"`(\w+)`", cells[2])) == sorted(members)


def test_only_the_named_families_end_without_a_norm():
    assert {k for k, family in FAMILIES.items() if family.final_norm is None} == {"bert", "roberta"}
