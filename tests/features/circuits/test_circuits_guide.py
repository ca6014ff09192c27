"""The code of the guide to circuits runs and gives what it prints."""

import doctest

from helpers.paths import GUIDES


def test_the_guide_runs_as_printed():
    result = doctest.testfile(str(GUIDES / "circuits.md"), module_relative=False)
    assert result.attempted > 8
    assert result.failed == 0
