"""Folders of checkpoints that somebody else has made, with files that ask for too much."""

import json
import shutil

import pytest

from helpers import tiny_models
from ontogeny import Recorder, Trajectory
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


def test_more_layers_than_tensors_are_refused_before_they_are_built(run):
    config = run / "checkpoint-1" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "n_layer": 10**7}))
    with pytest.raises(CheckpointError, match="10,000,000 layers of"):
        Trajectory.from_folder(run)[1].model()
