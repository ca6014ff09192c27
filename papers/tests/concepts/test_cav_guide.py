"""The guide's code runs from top to bottom and finds what it plants."""

import re

from helpers.paths import PAPERS_GUIDES

GUIDE = PAPERS_GUIDES / "supervised-concepts.md"


def test_the_guide_runs(capsys):
    text = GUIDE.read_text(encoding="utf-8")
    names = {"__name__": "guide"}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), names)
    assert names["reviews"].balance == {0: 2, 1: 2}
    assert abs(names["cav"].direction_).argmax() == 3
    capsys.readouterr()
