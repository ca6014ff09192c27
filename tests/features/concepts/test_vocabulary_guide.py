"""The code of the guide to directions of the vocabulary runs and gives what it prints."""

import doctest

import pytest

from helpers.paths import GUIDES


@pytest.mark.slow
def test_the_guide_runs_as_printed():
    guide = str(GUIDES / "vocabulary-concepts.md")
    result = doctest.testfile(guide, module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
