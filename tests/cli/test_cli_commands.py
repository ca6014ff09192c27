"""The command: bad input gets one clear line and a non-zero exit; good input gets its result."""

import errno
import json
import logging
import os
import shutil
from contextlib import nullcontext

import pytest
import typer

from helpers import warm_process
from helpers.command import call
from helpers.study_examples import developing, record
from helpers.text_models import save_tokenizer, with_tokenizer
from ontogeny.cli import main
from ontogeny.cli.commands import app
from ontogeny.cli.main import _said_once
from ontogeny.tasks import train_tokenizer

STEPS = (0, 1, 2, 4, 8, 16)
STUDY = """
[trajectory]
folder = "run"

[inputs]
files = ["texts.txt"]
max_length = 12

[options]
device = "cpu"
noise = 0

[[observables]]
kind = "loss"

[[observables]]
kind = "concepts"
extractor = "pca"
n_concepts = 3
layers = "model.layers.*.mlp"
max_tokens = 200
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a run that has a tokenizer, texts, and a study file."""
    folder = tmp_path_factory.mktemp("cli")
    text = (
        "a model learns to read and write the words of a text that it has never seen. "
    )
    texts = [(text * 2)[5 * i :][:40] for i in range(15)]
    (folder / "texts.txt").write_text("\n\n".join(texts))
    tokenizer = train_tokenizer(texts, 300)
    record(with_tokenizer(developing(STEPS), tokenizer), folder / "run")
    save_tokenizer(tokenizer, folder / "run")
    (folder / "study.toml").write_text(STUDY)
    return folder


def test_run_then_again_then_report(place, tmp_path, capsys):
    folder = tmp_path / "my study"
    code, out, err = call(capsys, "run", place / "study.toml", "--output", folder)
    # As a shell reads.
    assert code == 0 and out.endswith(f"\npage: ontogeny report '{folder}'\n")
    assert "\r" not in err and len(err.splitlines()) <= 2 * len(STEPS)
    code, out, err = call(capsys, "run", place / "study.toml", "--output", folder)
    assert code == 0 and "nothing to do: 12 cells are there" in err
    code, out, _ = call(
        capsys, "plan", place / "study.toml", "--output", folder, "--time"
    )
    assert code == 0 and "12 done, 0 to do" in out and "time:" not in out
    code, out, _ = call(capsys, "report", folder)
    assert code == 0 and (folder / "report.html").stat().st_size > 100_000
    # What a reviewer may have is the result alone.
    shutil.copytree(folder / "result.zarr", tmp_path / "sent" / "result.zarr")
    code, out, _ = call(capsys, "report", tmp_path / "sent" / "result.zarr")
    page = tmp_path / "sent" / "report.html"
    assert (code, out) == (0, f"page: {page}\n") and page.stat().st_size > 100_000
    code, _, err = call(capsys, "report", tmp_path / "sent")
    assert code == 1 and "is no study folder" in err


def test_a_plan_says_from_one_checkpoint_what_the_rest_takes(place, tmp_path, capsys):
    code, out, _ = call(
        capsys, "plan", place / "study.toml", "--output", tmp_path / "s", "--time"
    )
    assert code == 0 and "0 done, 12 to do" in out and not (tmp_path / "s").exists()
    *_, disk, took = out.splitlines()
    assert disk.startswith("on disk: 1") and disk.endswith("MB of results")
    assert f"for one of {len(STEPS)} checkpoints on cpu" in took and "minute" in took


def test_quiet_says_nothing_on_standard_error(place, tmp_path, capsys):
    code, _, err = call(
        capsys, "run", place / "study.toml", "--output", tmp_path / "s", "--quiet"
    )
    assert (code, err) == (0, "")


def test_a_checkpoint_that_went_away_is_a_named_gap_and_an_error_only_if_asked(
    place, tmp_path, capsys
):
    shutil.copytree(place, tmp_path / "c")
    shutil.rmtree(tmp_path / "c" / "run" / "checkpoint-4")
    study, out = tmp_path / "c" / "study.toml", tmp_path / "s"
    code, _, err = call(capsys, "run", study, "--output", out)
    assert (
        code == 0 and "audit: step 4, which the recorder had planned, is missing" in err
    )
    assert call(capsys, "run", study, "--output", out, "--strict")[0] == 3
    assert call(capsys, "report", out)[0] == 0
    assert "step 4, which the recorder had planned" in (out / "report.html").read_text()


def test_audit_layers_and_list(place, capsys):
    code, out, _ = call(capsys, "audit", place / "run")
    assert code == 0 and "6 checkpoints" in out and "no findings" in out
    code, out, _ = call(capsys, "layers", place / "run", "model.layers.*.mlp")
    assert code == 0 and "model.layers.1.mlp" in out and "16" in out
    code, out, _ = call(capsys, "list", "observables")
    assert code == 0 and "weight-rank" in out
    code, out, _ = call(capsys, "--version")
    assert code == 0 and out.startswith("ontogeny ")


def _edited(place, old, new):
    path = place / "edited.toml"
    text = (place / "study.toml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("extractor =", "extracter =", "Did you mean 'extractor'?"),
        ('"pca"', '"pcaa"', "Did you mean 'pca'?"),
        ('kind = "loss"', 'kind = "los"', "Did you mean 'loss'?"),
        ('kind = "loss"', 'name = "loss"', "needs kind"),
        ("[options]", "[optoins]", "Did you mean 'options'?"),
        ("max_length", "max_lenght", "Did you mean 'max_length'?"),
        ('folder = "run"', 'folder = "runs"', "runs"),
        ("texts.txt", "text.txt", "text.txt"),
        ("model.layers.*.mlp", "model.layers.*.mlpp", "model.layers.*.mlp"),
        ("[trajectory]", "[trajectory", "not a readable TOML"),
        ('device = "cpu"', 'device = "cpuu"', "got 'cpuu'"),
        ("max_tokens = 200", "max_tokens = 1", "max_tokens"),
        ("n_concepts = 3", "n_concepts = 0", "n_concepts"),
    ],
)
def test_a_mistake_in_the_study_file_gets_one_line(
    place, tmp_path, capsys, old, new, message
):
    study = _edited(place, old, new)
    code, _, err = call(
        capsys, "run", study, "--output", tmp_path / "s", "--strict", "--quiet"
    )
    if code == 3:  # said in the result, where only the data can show it
        from ontogeny import open_study

        assert message in open_study(tmp_path / "s").result.attrs["problems"]
        return
    assert code == 1
    assert message in err and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "missing.toml"],
        ["audit", "missing"],
        ["report", "missing"],
        ["layers", "missing"],
        ["list", "extractor"],
    ],
)
def test_missing_things_get_one_line(capsys, arguments):
    code, _, err = call(capsys, *arguments)
    assert code == 1 and err.startswith("ontogeny: ") and err.count("\n") == 1


def test_unknown_commands_and_options_exit_with_2(capsys):
    assert call(capsys, "rnu")[0] == 2
    code, _, err = call(capsys, "run", "x.toml", "--wrokers", "2")
    assert code == 2 and "--workers" in err


def _options():
    """Return (command, name of an option, its flags) for all commands."""
    commands = typer.main.get_command(app).commands
    return [
        (command, each.name, (*each.opts, *each.secondary_opts))
        for command, verb in commands.items()
        for each in verb.params
        if each.param_type_name == "option"
    ]


def test_every_verb_that_writes_takes_the_place_of_its_result_by_output_or_o():
    places = {verb: flags for verb, name, flags in _options() if name == "output"}
    assert places.keys() >= {
        "study",
        "init",
        "demo",
        "run",
        "report",
        "compare",
        "reproduce",
    }
    assert set(places.values()) == {("--output", "-o")}


def test_an_option_is_spelled_alike_by_all_verbs():
    flags = {}
    for _, name, spelled in _options():
        assert flags.setdefault(name, spelled) == spelled


def test_o_says_where_the_result_of_run_and_report_goes(place, tmp_path, capsys):
    assert call(capsys, "run", place / "study.toml", "-o", tmp_path / "s")[0] == 0
    assert call(capsys, "report", tmp_path / "s", "-o", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").exists() and not (
        tmp_path / "s" / "report.html"
    ).exists()


def test_debug_shows_where_an_error_comes_from():
    from ontogeny.errors import ArgumentError

    with pytest.raises(ArgumentError, match=r"missing\.toml"):
        main(["run", "missing.toml", "--debug"])


def test_problems_are_json(place, tmp_path, capsys):
    from ontogeny import open_study

    call(capsys, "run", place / "study.toml", "--output", tmp_path / "s", "--quiet")
    attrs = open_study(tmp_path / "s").result.attrs
    assert json.loads(attrs["problems"]) == []
    assert json.loads(attrs["inputs"])[0]["texts"] > 5


@pytest.mark.parametrize(
    ("number", "place", "line"),
    [
        (
            errno.ENOSPC,
            ["/far/away"],
            "device: /far/away. The disk is full: what is finished is",
        ),
        (
            errno.ENOSPC,
            [],
            "ontogeny: No space left on device. The disk is full: what is",
        ),
        (
            errno.EMFILE,
            ["/far/away"],
            "/far/away. Allow more open files: ulimit -n 4096",
        ),
        (
            errno.EEXIST,
            ["/far/away"],
            "exists: /far/away. A folder is to be there: give another",
        ),
    ],
)
def test_what_the_system_refuses_is_one_line_with_path_and_remedy(
    monkeypatch, capsys, number, place, line
):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number), *place)

    monkeypatch.setattr("ontogeny.study.read_study", refuse)
    with pytest.raises(SystemExit):
        main(["plan", "any.toml"])
    written = capsys.readouterr().err
    assert written.count("\n") == 1 and line in written


@pytest.mark.slow
def test_a_library_that_aborts_says_where():
    code = (
        "import os, ontogeny.cli.sources as sources\n"
        "from ontogeny.cli import main\n"
        "sources.open_trajectory = lambda *_, **__: os.abort()\n"
        "main(['steps', 'somewhere'])"
    )
    ended = warm_process.run(["-c", code])
    assert ended.returncode < 0 and "Fatal Python error: Aborted" in ended.stderr


def test_what_is_read_often_is_said_once_by_a_command(caplog):
    # Of a library's user each time.
    for context, count in ((_said_once(), 1), (nullcontext(), 3)):
        caplog.clear()
        with context:
            for _ in range(3):
                logging.getLogger("ontogeny.inputs").warning("text %d is cut", 1)
        assert [r.getMessage() for r in caplog.records] == ["text 1 is cut"] * count
