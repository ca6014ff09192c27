"""The guide's code runs from top to bottom."""

import re

from helpers.paths import PAPERS_GUIDES
from ontogeny_papers.reproduce import execution

GUIDE = PAPERS_GUIDES / "marker-task.md"


def test_the_guide_runs_and_names_every_recipe():
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names = {"__name__": "guide"}
    exec("\n".join(blocks), names)
    assert names["task"].placements(4) == 495
    assert names["result"].attrs["problems"] == "[]"
    assert names["result"]["readout-accuracy"].accuracy.sel(step=40).shape == (3,)
    for name in execution.RECIPES:
        assert name in text or name.removeprefix("execution-figure") in text
