"""What a command says that is given something else of this library than what it takes."""

import pytest
import torch
from safetensors.torch import save_file

from helpers.command import call

OF_RUNS = (("study",), ("audit",), ("steps",), ("layers",), ("init",))
OF_STUDIES = (("report",), ("texts",), ("claims",))


@pytest.fixture
def things(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = {"w": torch.ones(2, 2)}
    (tmp_path / "studied").mkdir()
    (tmp_path / "studied" / "study.json").write_text("{}")
    save_file(weights, tmp_path / "studied" / "probe.safetensors")
    (tmp_path / "compared").mkdir()
    (tmp_path / "compared" / "comparison.json").write_text("{}")
    (tmp_path / "mine.toml").write_text("[trajectory]\nfolder = 'run'\n")
    (tmp_path / "page.html").write_text("<p>")
    (tmp_path / "run" / "checkpoint-1").mkdir(parents=True)
    save_file(weights, tmp_path / "run" / "checkpoint-1" / "model.safetensors")


@pytest.mark.parametrize("verb", OF_RUNS, ids=" ".join)
@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("studied", "the folder of a study: ontogeny report"),
        ("compared", "the folder of a comparison: ontogeny report"),
        ("mine.toml", "a study file: ontogeny run"),
        ("page.html", "a page: open it"),
    ],
)
def test_a_command_of_runs_names_what_it_was_given(verb, given, what, things, capsys):
    code, _, err = call(capsys, *verb, given)
    assert code in (1, 2) and what in err


@pytest.mark.parametrize("verb", OF_STUDIES, ids=" ".join)
@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("nowhere", "is no study folder (it does not exist)."),
        ("run", "It holds checkpoints: ontogeny study run begins"),
        ("mine.toml", "It is a study file: ontogeny run mine.toml"),
        ("page.html", "It is a page: open it"),
    ],
)
def test_a_command_of_studies_does_so_too(verb, given, what, things, capsys):
    code, _, err = call(capsys, *verb, given)
    assert code in (1, 2) and what in err


def test_the_folder_of_a_study_is_no_study_file(things, capsys):
    code, _, err = call(capsys, "run", "studied")
    assert code == 1 and "the folder of a study: ontogeny report studied" in err
    code, _, err = call(capsys, "run", "run")
    assert code == 1 and "begin one: ontogeny study run" in err


def test_a_study_beside_the_weights_of_its_model_hides_them_from_nobody(
    things, tmp_path, capsys
):
    """A study of one model may be written to the folder of the model itself."""
    save_file({"w": torch.ones(2, 2)}, tmp_path / "studied" / "model.safetensors")
    code, out, _ = call(capsys, "steps", "studied")
    assert code == 0 and "1 checkpoint" in out
