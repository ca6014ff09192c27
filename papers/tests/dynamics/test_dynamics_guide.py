"""The code of the guide to dynamics runs and gives what it prints."""

import doctest

from helpers.paths import PAPERS_GUIDES


def test_the_guide_runs_as_printed():
    result = doctest.testfile(str(PAPERS_GUIDES / "dynamics.md"), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
