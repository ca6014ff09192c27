"""The guide's code runs from top to bottom and gives the same table twice."""

import re

import numpy as np

from helpers.paths import PAPERS_GUIDES


def test_the_guide_runs(capsys):
    text = (PAPERS_GUIDES / "tcav.md").read_text(encoding="utf-8")
    names = {"__name__": "guide"}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), names)
    assert names["data"].sizes["layer"] == 3
    for name in ("difference", "sum_difference", "sigma_aware_sum"):
        np.testing.assert_allclose(names["again"][name], names["table"][name])
    capsys.readouterr()
