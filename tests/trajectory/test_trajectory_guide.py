"""The guide's code runs from top to bottom and prints what it says."""

import re

from helpers.paths import GUIDES

GUIDE = GUIDES / "checkpoints.md"


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert len(blocks) >= 7
    exec("\n".join(blocks), {"__name__": "guide"})
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\(.*\)  # (.*)", "\n".join(blocks))
    assert len(promised) == 3 and set(promised) <= set(printed)
