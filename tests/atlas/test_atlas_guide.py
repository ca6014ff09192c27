"""The code of the guide to the concept atlas runs and gives what it prints."""

import doctest

import pytest

from helpers.paths import GUIDES


@pytest.mark.slow
def test_the_guide_runs_as_printed():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    path = str(GUIDES / "concept-atlas.md")
    result = doctest.testfile(path, module_relative=False, optionflags=flags)
    assert result.attempted > 20
    assert result.failed == 0
