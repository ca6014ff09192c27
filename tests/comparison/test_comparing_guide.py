"""The code of the guide to comparisons runs and gives what it says."""

import re

import pytest

import ontogeny as og
from helpers.paths import GUIDES


@pytest.mark.slow
def test_the_guide_runs_as_printed(tmp_path, monkeypatch, capsys):
    text = (GUIDES / "comparing.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "comparing.md", "exec"), {})
    dims, lines = capsys.readouterr().out.splitlines()
    assert dims == "('run', 'step')"
    assert "Loss improved by learning in 3 of 3 runs" in lines
    assert "No control was run" in lines
    assert (tmp_path / "seeds.html").stat().st_size > 100_000
    assert og.open_study(tmp_path / "comparison").result["runs"].sizes["run"] == 3
