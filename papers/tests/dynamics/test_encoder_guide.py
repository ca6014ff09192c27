"""The guide's examples run and give what it prints."""

import doctest

from helpers.paths import PAPERS_GUIDES

GUIDE = PAPERS_GUIDES / "concept-dynamics.md"


def test_the_guide_runs_as_printed():
    result = doctest.testfile(str(GUIDE), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
