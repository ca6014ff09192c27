"""The code of the guide to watching runs as printed."""

import re

import pytest

import ontogeny as og
from helpers.paths import GUIDES


@pytest.mark.filterwarnings("ignore")
def test_the_guide_runs_as_printed(tmp_path, monkeypatch):
    text = (GUIDES / "watching.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "watching.md", "exec"), names)
    assert names["result"]["loss"].step.values.tolist() == [0, 10, 20, 30]
    assert "Provisional" not in (tmp_path / "studies/live/report.html").read_text()
    assert [e for e in names["trainer"].state.log_history if "observed/loss" in e]
    assert og.Trajectory.from_folder("runs/observed").steps[-1] == 20
