"""Folders of checkpoints that somebody else has made, with files that ask for too much."""

import json
import shutil

import pytest

from helpers import tiny_models
from ontogeny import Recorder, Trajectory
from ontogeny.cli import main
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.schedule import Schedule

DEEP = '{"a":' + "[" * 100_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    record = Recorder(folder, every=1)
    model = tiny_models.gpt2()
    for step in range(3):
        record(step, model)
    return folder


@pytest.fixture
def run(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "run")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("recorder.json", "is not a recorder's note"),
        ("checkpoint-1/config.json", "is not JSON"),
        ("checkpoint-1/tokenizer.json", ""),
        ("checkpoint-1/trainer_state.json", ""),
        ("checkpoint-1/model.safetensors.index.json", "is not an index"),
        ("training_log.json", ""),
    ],
)
def test_json_that_is_too_deep_is_said_like_any_damage(run, file, said):
    if "index" in file:
        (run / "checkpoint-1" / "model.safetensors").unlink()
    (run / file).write_text(DEEP)
    try:
        message = str(Trajectory.from_folder(run).audit())
    except CheckpointError as error:
        message = str(error)
    assert said in message and "Recursion" not in message


def test_a_note_that_plans_any_number_of_steps_costs_no_time(run):
    note = json.loads((run / "recorder.json").read_text())
    (run / "checkpoint-2").rename(run / f"checkpoint-{10**15}")
    for every in (1, "log"):
        note["schedules"] = [{"from": 0, "every": every, "total": 10**18}]
        (run / "recorder.json").write_text(json.dumps(note))
        assert list(Trajectory.from_folder(run).steps) == [0, 1, 10**15]


def test_a_run_of_so_many_tokens_is_planned_at_once():
    steps = Schedule.coerce("log", 300 * 10**9).planned(300 * 10**9)
    assert steps[:4] == (0, 1, 2, 4) and steps[-1] == 300 * 10**9 and len(steps) < 50


def test_names_are_escaped_where_a_terminal_would_obey_them(run, capsys):
    for step in range(3):
        (run / f"checkpoint-{step}").rename(run / f"\u202echeckpoint-{step}\n\x1b[31m")
    shutil.copytree(next(run.glob("*checkpoint-1*")), run / "best\x1b[1m\u2066")
    for folder in (run, run / "a\x1b[31m"):
        with pytest.raises(SystemExit):
            main(["steps", str(folder)])
    said = "".join(capsys.readouterr())
    assert (
        not {"\x1b", "\u202e", "\u2066"} & set(said)
        and "left out: best\\x1b[1m\\u2066/" in said
    )
    assert said.count("\\u202echeckpoint-") == 4  # three steps and the pattern


def test_folders_that_are_links_to_themselves_are_passed_over(run, tmp_path):
    (run / "checkpoint-1" / "up").symlink_to(run)
    (run / "checkpoint-9").symlink_to(run / "checkpoint-9")
    assert list(Trajectory.from_folder(run).steps) == [0, 1, 2]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "self").symlink_to(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="holds no checkpoints"):
        Trajectory.from_folder(tmp_path / "empty")


@pytest.mark.parametrize("length", [0, 100, -4])
def test_a_file_that_is_cut_off_costs_its_own_step(run, length):
    file = run / "checkpoint-1" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:length])
    trajectory = Trajectory.from_folder(run)
    assert list(trajectory.steps) == [0, 2]
    assert trajectory.catalogue.incomplete[0][0] == 1
    assert "is not a readable safetensors file" in trajectory.catalogue.incomplete[0][1]


@pytest.mark.parametrize("step", ["NaN", "-5", "1e400", "[1]", '"2"'])
def test_a_state_of_the_trainer_without_a_step_leaves_the_names(run, step):
    for n in range(3):
        text = (
            f'{{"global_step": {step}, "log_history": [{{"loss": NaN, "step": null}}]}}'
        )
        (run / f"checkpoint-{n}" / "trainer_state.json").write_text(text)
    trajectory = Trajectory.from_folder(run)
    assert list(trajectory.steps) == [0, 1, 2]
    # As the run is.
    assert [finding.kind for finding in trajectory.audit()] == ["identical"]


def test_more_layers_than_tensors_are_refused_before_they_are_built(run):
    config = run / "checkpoint-1" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "n_layer": 10**7}))
    with pytest.raises(CheckpointError, match="10,000,000 layers of"):
        Trajectory.from_folder(run)[1].model()
