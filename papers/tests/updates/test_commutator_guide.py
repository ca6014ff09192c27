"""The guide to ranks, commutators and projections runs from top to bottom."""

import re

import numpy as np

from helpers.paths import PAPERS_GUIDES

GUIDE = PAPERS_GUIDES / "execution.md"


def test_the_guide_runs(capsys):
    text = GUIDE.read_text(encoding="utf-8").partition("## What came out")[0]
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 5
    names = {"__name__": "guide"}
    exec("\n".join(blocks), names)
    assert len(names["defects"]) == 4 and np.isfinite(names["defects"]).all()
    assert set(names["tree"].status.values) == {"done"}
    assert set(names["node"].status.values) == {"done"}
    assert names["found"].sizes["run"] == 2
