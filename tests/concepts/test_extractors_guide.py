"""The guide's code runs and prints what it says."""

import doctest

from helpers.paths import GUIDES

GUIDE = GUIDES / "extractors.md"


def test_the_guides_code_runs():
    failed, attempted = doctest.testfile(str(GUIDE), module_relative=False)
    assert attempted > 10 and failed == 0
