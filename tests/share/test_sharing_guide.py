"""The guide's code runs from top to bottom against a stand-in for the Hub."""

import re

import pytest

import ontogeny as og
from helpers.hub_account import use_account
from helpers.hub_uploads import Uploads
from helpers.paths import GUIDES
from helpers.text_models import text_study

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.mark.slow
def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    study = text_study(tmp_path / "made")
    (tmp_path / "studies").mkdir()
    study.rename(tmp_path / "studies" / "tiny")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```", (GUIDES / "sharing.md").read_text("utf-8"), re.DOTALL
    )
    opening, pushing, alone = blocks
    with Uploads({}, owner="ada") as hub:
        use_account(monkeypatch, hub.url, tmp_path / "home")
        names = {"og": og}
        exec(pushing, names)
        exec(opening, names)
        data = hub.repos["datasets/ada/tiny-development"]["main"]
    (tmp_path / "result.zarr.zip").write_bytes(data["result.zarr.zip"])
    exec(alone, names)
    assert names["tree"].identical(og.open_study("studies/tiny").tree)
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert "predictions: gap_before" in capsys.readouterr().out
    promised = re.findall(
        r"^\| `([\w.]+)` \|", (GUIDES / "sharing.md").read_text("utf-8"), re.MULTILINE
    )
    assert set(data) <= set(promised)
