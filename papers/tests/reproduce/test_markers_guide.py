"""The guide's code runs from top to bottom."""

import re

from helpers.paths import PAPERS_GUIDES
from ontogeny_papers.reproduce import execution
from ontogeny_papers.reproduce.stored_claims import CLAIMS

GUIDE = PAPERS_GUIDES / "marker-task.md"


def test_the_guide_runs():
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names = {"__name__": "guide"}
    exec("\n".join(blocks), names)
    assert names["task"].placements(4) == 495
    assert names["result"].attrs["problems"] == "[]"
    assert names["result"]["readout-accuracy"].accuracy.sel(step=40).shape == (3,)


def test_the_papers_page_names_every_recipe():
    # The table of the page is made of these claims when the site is built.
    lines = CLAIMS.read_text(encoding="utf-8").splitlines()
    assert {line.partition(",")[0] for line in lines} >= set(execution.RECIPES)
