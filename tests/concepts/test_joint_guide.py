"""The code of the guide to joint dictionaries runs and gives what it prints."""

import doctest

import pytest

from helpers.paths import GUIDES


@pytest.mark.slow
def test_the_guide_runs_as_printed():
    result = doctest.testfile(
        str(GUIDES / "joint-dictionaries.md"), module_relative=False
    )
    assert result.attempted > 10
    assert result.failed == 0
