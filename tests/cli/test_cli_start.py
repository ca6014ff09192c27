"""From the name of a run to its page: init, study, list, help, completion, python -m ontogeny."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

import ontogeny as og
from helpers.command import call
from helpers.hub_models import model_files, neox
from helpers.hub_server import StandIn
from helpers.own_model import write_own
from helpers.paths import ROOT
from helpers.study_examples import developing, record
from helpers.text_models import save_tokenizer, text_run, with_tokenizer
from ontogeny.cli import catalogue
from ontogeny.cli.catalogue import described
from ontogeny.cli.commands import app
from ontogeny.start import cost
from ontogeny.study import read_study
from ontogeny.study.cells.graph import ReferenceCell, StateCell, StepCell
from ontogeny.study.file import make_study
from ontogeny.study.planning import examination
from ontogeny.tasks import bundled_texts, train_tokenizer

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8, 16)
SMALL = (
    "--set",
    "inputs.max_texts=20",
    "--set",
    "controls.count=0",
    "--set",
    "options.noise=0",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    text_run(folder / "run", STEPS)
    return folder


@pytest.fixture
def there(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


def test_init_writes_a_file_with_comments_that_runs(there, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    code, out, _ = call(
        capsys, "init", "run", "--preset", "quick", "--steps", "3", *SMALL, "-o", file
    )
    assert code == 0 and "masked predictions" in out and "to download: nothing" in out
    assert "time: about 1 minute, about 1 minute of processor time, by" in out
    assert "on disk: " in out
    text = file.read_text()
    content = tomllib.loads(text)
    assert (
        content["inputs"]["bundled"] == "english-and-python"
        and content["inputs"]["max_texts"] == 20
    )
    assert content["trajectory"]["select"] == {"count": 3, "spacing": "log"}
    assert (
        "# How well does the model predict these texts?" in text
        and "of 6 checkpoints" in text
    )
    assert len(read_study(file).trajectory) == 3
    code, out, err = call(capsys, "run", file, "--output", tmp_path / "s", "--quiet")
    assert (code, err) == (0, "")
    result = og.open_study(tmp_path / "s").result
    assert result["loss"].loss.notnull().all() and not len(result.problems())
    code, _, err = call(capsys, "init", "run", "-o", file)
    assert code == 1 and "exists; give another --output" in err


@pytest.mark.parametrize("preset", ["quick", "standard"])
def test_a_checkpoint_is_examined_once_for_the_estimate_and_the_run(
    there, tmp_path, capsys, monkeypatch, preset
):
    """Of SmolLM2-135M the second look took 3 s."""
    models, probe = [], examination.probe
    monkeypatch.setattr(
        examination,
        "probe",
        lambda run, *rest: models.append(rest[1]) or probe(run, *rest),
    )
    arguments = ("--steps", "0,4,16", "--workers", "1", *SMALL, "-o", tmp_path / "s")
    assert call(capsys, "study", "run", "--preset", preset, *arguments)[0] == 0
    # One: a matrix that is timed alone.
    whole = [names for names in models if len(names) > 1]
    assert len(whole) == 1


def test_study_goes_from_a_folder_to_a_page_and_then_on_with_it(
    there, tmp_path, capsys
):
    folder = tmp_path / "deep" / "q"
    arguments = ("study", "run", "--output", folder, "--workers", "1")
    code, out, _ = call(
        capsys, *arguments, "--preset", "quick", "--steps", "0,4,16", *SMALL
    )
    page = folder / "report.html"
    assert code == 0 and f"page: {page}" in out and "preset quick" in out
    assert "the English sample of ontogeny and Python" in page.read_text()
    for again in ((), ("--preset", "quick", "--steps", "0,4,16", *SMALL)):
        code, out, err = call(capsys, *arguments, *again)
        assert code == 0 and "going on with" in out and "nothing to do: " in err
    code, _, err = call(capsys, *arguments, "--preset", "quick")
    assert code == 1 and "It was begun with --preset quick --steps 0,4,16" in err
    assert err.count("\n") == 1
    (tmp_path / "elsewhere").mkdir()
    code, _, err = call(capsys, "study", tmp_path / "elsewhere", "--output", folder)
    assert code == 1 and f"for {tmp_path / 'elsewhere'} give another --output" in err


@pytest.mark.parametrize(
    ("reference", "noise"), [("last", 2), ("first", 2), ("last", 9)]
)
def test_what_the_estimate_computes_is_not_computed_again(
    there, tmp_path, monkeypatch, reference, noise
):
    done = []
    for kind in (StepCell, StateCell, ReferenceCell):
        compute = kind.compute
        monkeypatch.setattr(
            kind,
            "compute",
            lambda cell, job, compute=compute: (
                done.append(cell.place) or compute(cell, job)
            ),
        )
    content = {
        "trajectory": {"folder": "run", "select": {"steps": [0, 4, 16]}},
        "inputs": {"bundled": "english-and-python", "max_texts": 6, "max_length": 32},
        "observables": [
            {"kind": "loss"},
            {"kind": "similarity"},
            {"kind": "predictions"},
        ],
        "options": {"reference": reference, "noise": noise},
    }
    timed, in_all = cost._timed, []
    monkeypatch.setattr(
        cost, "_timed", lambda *of: in_all.append(timed(*of)) or in_all[0]
    )
    begun = cost.estimate(content, Path(), 0)
    assert begun.seconds > 0 and len(done) >= 5
    # The time of the checkpoint that is kept is no time left.
    assert begun.seconds <= in_all[0].seconds - begun.at_one
    begun.keep(tmp_path / "s")
    result = make_study(content).run(tmp_path / "s", progress=False)
    assert len(done) == len(set(done)) and not len(result.problems())
    if noise == 2 and reference == "last":
        alone = make_study(content).run(tmp_path / "alone", progress=False)
        for node, cells in alone.tree.children.items():
            assert cells.to_dataset().equals(result.tree[node].to_dataset())


def test_what_was_timed_in_another_way_is_no_change_at_the_first_start(there, tmp_path):
    content = {
        "trajectory": {"folder": "run", "select": {"steps": [0, 4, 16]}},
        "inputs": {"bundled": "english-and-python", "max_texts": 6, "max_length": 32},
        "observables": [
            {"kind": "loss"},
            {"kind": "concepts", "extractor": "svd", "layers": "mlp", "n_concepts": 3},
        ],
    }
    without_noise = make_study(content | {"options": {"noise": 0}})
    without_noise.run(tmp_path / "timed", progress=False)
    study = make_study(content | {"options": {"noise": 2}})
    study.begin(tmp_path / "s", tmp_path / "timed")
    plan = study.plan(tmp_path / "s")
    assert plan.done and not plan.changes()


def test_a_checkpoint_that_is_none_of_the_study_is_left_out(there, tmp_path):
    content = {
        "trajectory": {"folder": "run", "select": {"steps": [0, 4, 16]}},
        "inputs": {"bundled": "english-and-python", "max_texts": 6, "max_length": 32},
        "observables": [{"kind": "loss"}],
    }
    make_study(content).run(tmp_path / "timed", progress=False)
    steps = {"folder": "run", "select": {"steps": [0, 16]}}
    study = make_study(content | {"trajectory": steps})
    study.begin(tmp_path / "s", tmp_path / "timed")
    cells = (tmp_path / "s" / "cells").rglob("*.safetensors")
    assert {cell.stem for cell in cells} == {"0", "16"}


@pytest.mark.parametrize("unit", ["step", "epoch"])
def test_the_checkpoint_that_is_timed_is_known_by_what_the_run_counts(
    there, monkeypatch, unit
):
    monkeypatch.setattr(og.Trajectory, "unit", unit)
    content = {
        "trajectory": {"folder": "run", "select": {"steps": [0, 4, 16]}},
        "inputs": {"bundled": "english-and-python", "max_texts": 6, "max_length": 32},
        "observables": [{"kind": "loss"}],
    }
    estimate = cost.estimate(content, Path(), 0)
    assert estimate.at_one > 0 and estimate.why_not == ""


def test_what_is_fitted_to_several_steps_is_not_kept_from_the_one_that_was_timed(
    there, tmp_path, monkeypatch
):
    joint = {"kind": "joint-concepts", "layers": "mlp", "n_concepts": 6, "n_active": 1}
    content = {
        "trajectory": {"folder": "run", "select": {"steps": [0, 4, 8, 16]}},
        "inputs": {"bundled": "english-and-python", "max_texts": 12, "max_length": 32},
        "observables": [{"kind": "loss"}, joint | {"max_tokens": 200}],
    }
    estimate = cost.estimate(content, Path(), 0)
    assert "MB of results, but only 10 B are free" in "".join(
        estimate.lines(1, free=10)
    )

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(shutil, "copyfile", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*full"):
            estimate.keep(tmp_path / "full")
    assert not any(map(Path.is_file, (tmp_path / "full" / "cells").rglob("*")))
    estimate.keep(tmp_path / "s")
    trees = [
        make_study(content).run(tmp_path / name, progress=False)
        for name in ("s", "alone")
    ]
    kept, alone = (result.tree["joint-concepts"].to_dataset() for result in trees)
    assert alone.equals(kept) and alone.attrs.get("fitted_steps") == kept.attrs.get(
        "fitted_steps"
    )


def test_several_runs_become_one_page_that_compares_them(there, tmp_path, capsys):
    out = tmp_path / "seeds"
    tokenizer = train_tokenizer(bundled_texts(), 300)
    record(with_tokenizer(developing(STEPS, seed=1), tokenizer), tmp_path / "seed1")
    save_tokenizer(tokenizer, tmp_path / "seed1")
    shutil.copytree("run", tmp_path / "copy")
    given = (
        "--preset",
        "quick",
        "--steps",
        "0,4,16",
        "--workers",
        "1",
        *SMALL,
        "--output",
        out,
    )
    code, said, err = call(capsys, "study", "run", tmp_path / "seed1", *given)
    assert code == 0, err
    page = (out / "comparison.html").read_text()
    assert f"comparison: {out / 'comparison.html'}" in said
    assert (
        "seed1" in page
        and (out / "run.toml").exists()
        and (out / "seed1.toml").exists()
    )
    assert "for one of 6 checkpoints" in said and "model of seed1: " in said
    code, _, err = call(
        capsys, "study", "run", tmp_path / "seed1" / ".." / "seed1", "run", *given
    )
    assert code == 1 and "every run must be given once" in err
    code, said, _ = call(capsys, "study", "run", tmp_path / "seed1", *given)
    assert code == 0 and said.count("going on with") == 2
    code, _, err = call(capsys, "study", "run", tmp_path / "copy", *given)
    assert code == 1 and f"ontogeny compare {out / 'run'} {out / 'copy'}" in err
    page = tmp_path / "copies.html"
    allowed = ("--allow", "checkpoints", "-o", page)
    code, _, _ = call(capsys, "compare", out / "run", out / "copy", *allowed)
    assert code == 0 and page.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "is named OWNER/NAME"),
        (["run", "--steps", "1"], "at least 2 checkpoints, the first and the last"),
        (
            ["run", "--preset", "fast"],
            "'quick', 'standard', 'abilities', 'weights', 'circuits', 'fine-tuning'",
        ),
        (["run", "--steps", "some"], "--steps takes how many checkpoints (8)"),
        (["run", "--steps", "0,3"], "the nearest are"),
        (["run", "--set", "inputs.max_textz=3"], "Did you mean 'max_texts'?"),
        (["run", "--set", "inputs.max_texts"], "--set takes key=value"),
        (
            ["run", "--set", "controls.steps=2"],
            ": controls.steps must be a whole number",
        ),
        (
            ["run", "--set", "inputz.max_texts=3"],
            "trajectory., inputs., controls., options.",
        ),
        (["run", "--set", "observables.los.on=3"], "Did you mean 'loss'?"),
        (["run", "--set", "observables.loss.objectiv=3"], "Did you mean 'objective'?"),
        (["run", "--texts", "none.txt"], "--texts none.txt: there is no such file"),
        (["run", "--texts", "a.txt", "--texts", "b.bin"], "not both"),
        (["run", "--model", "model.py:build"], "there is no file"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(
    there, tmp_path, capsys, arguments, message
):
    file = tmp_path / "s.toml"
    for name in ("a.txt", "b.bin"):
        Path(name).touch()
    code, _, err = call(capsys, "init", *arguments, "-o", file)
    assert code == 1 and message in err and err.count("\n") == 1 and not file.exists()


def test_above_a_limit_it_asks_or_refuses_and_the_flag_it_names_works(
    there, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(cost, "MOST_SECONDS", 0.0)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    arguments = (
        "study",
        "run",
        "--preset",
        "quick",
        "--steps",
        "3",
        "--workers",
        "1",
        *SMALL,
    )
    code, _, err = call(capsys, *arguments, "--output", tmp_path / "a")
    assert code == 1 and "pass --yes" in err and not (tmp_path / "a.toml").exists()
    # A run of three checkpoints was advised to take eight.
    assert "less" not in err
    code, _, err = call(
        capsys, "study", "run", "--workers", "1", "--output", tmp_path / "a"
    )
    smaller = "ask for less: --preset quick, --set inputs.max_texts=80."
    assert code == 1 and err.rstrip().endswith(smaller)
    assert call(capsys, *arguments, "--output", tmp_path / "a", "--yes")[0] == 0


def test_an_own_model_is_told_what_it_lacks_and_then_studied(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(write_own(tmp_path))
    code, _, err = call(capsys, "study", "out")
    assert code == 1 and "--texts val.bin" in err
    code, _, err = call(capsys, "study", "out", "--texts", "val.bin")
    assert code == 1 and "--model model.py:build" in err
    code, out, _ = call(capsys, "layers", "out", "h.*.mlp", "--model", "model.py:build")
    assert code == 0 and "h.2.mlp" in out
    code, out, _ = call(
        capsys,
        "study",
        "out",
        "--texts",
        "val.bin",
        "--model",
        "model.py:build",
        "--preset",
        "quick",
        "--workers",
        "1",
        *SMALL,
    )
    assert code == 0 and (tmp_path / "studies" / "out" / "report.html").exists()
    assert read_study(tmp_path / "studies" / "out.toml").trajectory.steps.tolist() == [
        0,
        10,
        20,
        40,
    ]


def test_list_and_help_say_what_each_answers_needs_and_costs(capsys):
    _, out, _ = call(capsys, "list", "observables")
    lines = out.splitlines()
    assert len(lines) == 1 + len(og.observables.names())
    assert all(
        "?" in line and "Needs " in line and "costs " in line for line in lines[1:]
    )
    for kind in (*og.observables.names(), *og.concepts.names(), *og.distances.names()):
        code, out, _ = call(capsys, "help", kind)
        assert code == 0 and out.startswith(f"{kind}: ")
    _, out, _ = call(capsys, "help", "effective-dimensions")
    entry = tomllib.loads(out[out.index("[[observables]]") : out.index("\nlabel =")])
    (table,) = entry["observables"]
    assert og.observables.make(**table) == og.observables.EffectiveDimensions()
    code, _, err = call(capsys, "help", "los")
    assert code == 1 and "Did you mean 'loss'?" in err


def test_a_shell_completes_commands_presets_and_kinds():
    def completed(words):
        environment = {
            "_ONTOGENY_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        return (
            CliRunner()
            .invoke(app, [], env=environment, prog_name="ontogeny")
            .output.split()
        )

    assert "study" in completed("ontogeny st")
    assert completed("ontogeny study run --preset st") == ["standard"]
    assert completed("ontogeny help joint") == ["joint-concepts"]


def test_what_is_said_of_the_disk_counts_the_references_of_every_control_run(
    monkeypatch,
):
    """Of SmolLM2-135M, six checkpoints and three controls: 202 MB came, where 92 had been said."""
    watch = SimpleNamespace(
        noisy=False,
        before=100.0,
        step=10.0,
        kept=10.0,
        asked=0.0,
        of_run=0.0,
        late=4.0,
        written_before=43_000_000,
        written=630_000,
    )
    watch.failing, watch.references = (lambda _: []), 0
    monkeypatch.setattr(cost, "_one_checkpoint", lambda *_: watch)
    monkeypatch.setattr(cost, "_all_blocks", lambda *_: 0.0)
    study = SimpleNamespace(
        device="cpu", trajectory=(), examination=SimpleNamespace(bare=lambda: watch)
    )
    found = cost._timed(study, 0, (6, 18, 5, 4), 0.0)
    assert 202e6 / 1.2 < found.stored < 202e6 * 1.2
    assert found.seconds > 4 * watch.before
    # Of three checkpoints controls have three at most, and noise floors are as many.
    few, alone = found.fewer(3), cost._timed(study, 0, (3, 9, 3, 4), 0.0)
    assert (few.seconds, few.stored) == (alone.seconds, alone.stored)
    # With six controls and the references of these dropped, 119 MB came.
    watch.written_before, watch.references, watch.written = (
        33_480_000,
        27_650_000,
        700_000,
    )
    found = cost._timed(study, 0, (6, 18, 5, 7), 6 / 7)
    assert 119e6 / 1.2 < found.stored < 119e6 * 1.2
    assert found.dropped == 6 * watch.references
    said = cost.total([found, found]).lines(1, 300e6)
    assert (
        said[1]
        == "on disk: 224 MB of results, 390 MB while it runs, but only 300 MB are free"
    )
    # What is hardly more is not said twice.
    assert replace(found, dropped=1_000_000).lines()[1] == "on disk: 112 MB of results"


SAID = """
import sys
from ontogeny.cli.main import _run
codes = [_run(line.split()) for line in ("list", "help concepts", "help bures", "--help")]
from typer.testing import CliRunner
from ontogeny.cli.commands import app
words = {"COMP_WORDS": "ontogeny help joint", "COMP_CWORD": "2"}
words["_ONTOGENY_COMPLETE"] = "complete_bash"
print(CliRunner().invoke(app, [], env=words, prog_name="ontogeny").output)
print(codes, sorted({"torch", "transformers", "xarray", "scipy", "sklearn"} & set(sys.modules)))
"""


def test_what_there_is_is_said_without_libraries_until_a_file_changes(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    catalogue.catalogue.cache_clear()
    expected = catalogue.catalogue()
    assert expected == described(
        catalogue.PACKAGES
    ) and catalogue.place().is_relative_to(tmp_path)
    command = [sys.executable, "-c", SAID]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.endswith("joint-concepts\n\n[0, 0, 0, 0] []\n")
    assert all(line in said for line, _ in expected["observables"].values())
    stored = json.loads(catalogue.place().read_text())
    stored["content"]["presets"] = {"stale": ["stale", "of another version"]}
    for stamp, names in (
        (stored["stamp"], {"stale"}),
        ("changed", set(expected["presets"])),
    ):
        catalogue.place().write_text(json.dumps(stored | {"stamp": stamp}))
        catalogue.catalogue.cache_clear()
        assert set(catalogue.catalogue()["presets"]) == names
    forged = [
        stored | {"content": content}
        for content in ([], None, {"observables": {"loss": 5}})
    ]
    for text in (*map(json.dumps, forged), "[" * 100_000):
        catalogue.place().write_text(text)
        catalogue.catalogue.cache_clear()
        assert catalogue.catalogue() == expected
    catalogue.place().write_text("{")
    catalogue.catalogue.cache_clear()
    assert catalogue.catalogue() == expected


@pytest.mark.slow
def test_a_repository_becomes_a_page_in_a_process_of_its_own(tmp_path):
    tokenizer = train_tokenizer(bundled_texts(), 300)
    models = with_tokenizer({step: neox(0) for step in (0, 1, 2)}, tokenizer)
    revisions = {}
    for step, model in models.items():
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * step * torch.randn_like(p))
        folder = tmp_path / f"step{step}"
        tokenizer.save_pretrained(folder)
        revisions[f"step{step}"] = model_files(model, folder)
    with StandIn({"lab/tiny": revisions}) as hub:
        environment = {
            **os.environ,
            "HF_ENDPOINT": hub.url,
            "HF_HUB_CACHE": str(tmp_path / "cache"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "ontogeny",
                "study",
                "lab/tiny",
                "--preset",
                "quick",
                "--workers",
                "1",
                *SMALL,
            ],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert "causal predictions" in done.stdout and "in the Hub's cache" in done.stdout
    assert (tmp_path / "studies" / "tiny" / "report.html").exists()
    assert 'hub = "lab/tiny"' in (tmp_path / "studies" / "tiny.toml").read_text()
