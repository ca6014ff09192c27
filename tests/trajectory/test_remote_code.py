"""Code that comes with a checkpoint: never run, and never asked about, unless it is asked for."""

import builtins
import json

import pytest

import ontogeny as og
from helpers.study_examples import record, tiny_model
from ontogeny.cli import main
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.study import read_study
from ontogeny.study.file import read_sources
from ontogeny.trajectory.tokenizers import named_tokenizer

CODE = "from pathlib import Path\nPath({target!r}).touch()\n"


@pytest.fixture
def target(tmp_path, monkeypatch):
    """A file that the code would make; a question on the terminal fails the test."""

    def asked(*words):
        raise AssertionError(f"asked on the terminal: {words}")

    monkeypatch.setattr(builtins, "input", asked)
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m")
    )
    return tmp_path / "it-ran"


def _edit(path, **changes):
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | changes))


def _hostile(folder, target, *, known):
    """Let tokenizer and configuration of a folder name code of its own."""
    (folder / "evil.py").write_text(CODE.format(target=str(target)))
    kind = "PreTrainedTokenizerFast" if known else "EvilTokenizer"
    if not known:
        (folder / "tokenizer.json").unlink()
    own = ["evil.EvilTokenizer", "evil.EvilTokenizer"]
    _edit(
        folder / "tokenizer_config.json",
        tokenizer_class=kind,
        auto_map={"AutoTokenizer": own},
    )
    maps = {"AutoConfig": "evil.Config", "AutoModelForMaskedLM": "evil.Model"}
    _edit(
        folder / "config.json",
        auto_map=maps,
        **({} if known else {"model_type": "evil"}),
    )


@pytest.mark.parametrize(
    "known", [True, False], ids=["a known class", "an unknown class"]
)
def test_a_tokenizer_with_code_of_its_own_is_refused_without_a_question(
    tmp_path, target, known
):
    run = tmp_path / "run"
    record({0: tiny_model(0)}, run)
    folder = run / "checkpoint-0"
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(
        folder
    )
    _hostile(folder, target, known=known)
    trajectory = og.Trajectory.from_folder(run)
    for read in (trajectory.tokenizer, lambda: named_tokenizer(folder)):
        if known:  # what transformers itself has is used, and the code is not
            assert read() is not None
        else:
            with pytest.raises(CheckpointError, match=r"tokenizer .* cannot be read"):
                read()
    if known:
        assert trajectory[0].model() is not None
    assert not target.exists()


FILE = """
[trajectory]
hub = "mallory/gift"
trust_remote_code = true
[inputs]
texts = ["a b"]
[[observables]]
kind = "loss"
"""


@pytest.fixture
def opened(monkeypatch):
    """What is asked of the Hub: nothing, where a file is refused."""
    asked = []

    def from_hub(repo, **options):
        asked.append((repo, options))
        raise CheckpointError("no network in this test")

    monkeypatch.setattr(og.Trajectory, "from_hub", from_hub)
    return asked


def test_a_study_file_alone_cannot_let_code_run(tmp_path, opened, capsys):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    for read in (read_study, read_sources):
        with pytest.raises(
            ArgumentError, match=r"code of mallory/gift .* --trust-remote-code"
        ):
            read(path)
    for command in ("plan", "prefetch", "run"):
        with pytest.raises(SystemExit) as stop:
            main([command, str(path)])
        said = capsys.readouterr().err
        assert (
            stop.value.code == 1
            and "--trust-remote-code" in said
            and said.count("\n") == 1
        )
    assert opened == []
    for command in ("plan", "prefetch", "run"):
        with pytest.raises(SystemExit):
            main([command, str(path), "--trust-remote-code"])
    with pytest.raises(CheckpointError):
        read_study(path, trust_remote_code=True)
    assert opened == [("mallory/gift", {"trust_remote_code": True})] * 4
