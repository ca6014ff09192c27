"""The examples of the guides run and give what they print."""

import doctest

import pytest

from helpers.paths import PAPERS_GUIDES


@pytest.mark.parametrize(
    ("name", "least"), [("concept-dynamics", 10), ("intrinsic-dimension", 5)]
)
def test_the_guide_runs_as_printed(name, least):
    result = doctest.testfile(str(PAPERS_GUIDES / f"{name}.md"), module_relative=False)
    assert result.attempted > least
    assert result.failed == 0
