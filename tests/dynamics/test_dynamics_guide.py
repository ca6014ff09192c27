"""The code of the guides to dynamics and to dimensions runs and gives what they print."""

import doctest

import pytest

from helpers.paths import GUIDES


@pytest.mark.parametrize(("name", "least"), [("dynamics", 30), ("dimensions", 5)])
def test_the_guide_runs_as_printed(name, least):
    result = doctest.testfile(str(GUIDES / f"{name}.md"), module_relative=False)
    assert result.attempted > least
    assert result.failed == 0
