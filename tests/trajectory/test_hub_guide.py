"""The guide's code runs from top to bottom and prints what it says, against a stand-in server."""

import re

import huggingface_hub.constants

from helpers.hub_models import model_files, neox, tokenizer_files
from helpers.hub_server import StandIn
from helpers.paths import GUIDES

GUIDE = GUIDES / "hub.md"


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    steps = [0, *(2**k for k in range(10)), *range(1000, 144_000, 1000)]
    real = {
        s: model_files(neox(s), tmp_path / str(s)) | tokenizer_files()
        for s in (0, 512, 1000)
    }
    revisions = {
        f"step{s}": real.get(s, {"model.safetensors": str(s).encode()}) for s in steps
    }
    work, cache = tmp_path / "work", tmp_path / "cache"
    work.mkdir()
    with StandIn({"EleutherAI/pythia-70m": revisions}) as hub:
        monkeypatch.chdir(work)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
        template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(
            huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template
        )
        blocks = re.findall(
            r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
        )
        exec("\n".join(blocks), {"__name__": "guide"})
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert len(promised) == 5 and printed == promised
    assert not list(cache.glob("models--*/snapshots/*/*.safetensors"))
