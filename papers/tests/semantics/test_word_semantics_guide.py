"""The guide's examples run and give what it prints."""

import doctest

from helpers.paths import PAPERS_GUIDES

GUIDE = PAPERS_GUIDES / "learning-order.md"


def test_the_guide_runs_as_printed():
    result = doctest.testfile(
        str(GUIDE), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 20
    assert result.failed == 0
