"""Control runs are runs of the same study: planned, resumed, compared, never in the way."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import (
    LAYERS,
    STEPS,
    Counting,
    developing,
    observables,
    tiny_inputs,
)
from ontogeny.errors import OntogenyError
from ontogeny.study import read_study


@pytest.fixture(scope="module")
def trajectory():
    return og.Trajectory.from_models(developing())


def study_of(trajectory, extractors=("ica",), **options):
    chosen = observables(extractors)
    return og.Study(
        trajectory, tiny_inputs(), chosen, **{"device": "cpu", "noise": 2, **options}
    )


@pytest.fixture(scope="module")
def folder(trajectory, tmp_path_factory):
    path = tmp_path_factory.mktemp("controls") / "study"
    study_of(trajectory, controls=2, control_steps=4).run(path)
    return path


@pytest.fixture(scope="module")
def alone(trajectory, tmp_path_factory):
    """The folder of the same study without controls."""
    path = tmp_path_factory.mktemp("alone") / "study"
    study_of(trajectory).run(path)
    return path


def test_a_node_holds_the_run_and_its_controls(folder):
    tree = og.open_study(folder).tree
    controls = json.loads(tree.attrs["controls"])
    assert [c["name"] for c in controls] == ["turned 0", "turned 1"]
    assert controls[0]["kind"] == "turned" and len(controls[0]["steps"]) == 4
    node = tree["activation-decay"]
    assert node.rotation_removed_control.dims == ("run", "step", "layer")
    assert node.run.values.tolist() == ["turned 0", "turned 1"]
    read = node.rotation_removed_control.notnull().all("layer").isel(run=0)
    assert node.step.values[read].tolist() == controls[0]["steps"]
    assert set(node.control_half_step.dims) == {"row", "run"}
    # They move as far by construction.
    assert "control" not in tree["weight-rank"].variables
    figures = json.loads(node.attrs["figures"])
    assert any("control runs" in json.dumps(figure["bands"]) for figure in figures)


def test_the_run_itself_is_the_same_with_and_without(alone, folder):
    verdicts = (
        "beyond",
        "learned",
        "changed",
        "judgeable",
        "outside",
        "p_learned_uncorrected",
    )
    beside = og.open_study(folder).tree
    for name, node in og.open_study(alone).tree.children.items():
        for variable, values in node.data_vars.items():
            if variable not in verdicts:
                there = beside[name][variable].drop_vars("run", errors="ignore")
                for one in (values, there):
                    one.attrs.pop("nulls", None)  # names what it is held against
                xr.testing.assert_identical(values, there)


def test_a_control_has_the_numbers_of_a_study_of_its_own(trajectory, folder, tmp_path):
    steps = json.loads(og.open_study(folder).tree.attrs["controls"])[1]["steps"]
    control = trajectory.select(steps=steps).control("turned", 1)
    own = study_of(control, (), noise=0).run(tmp_path / "own")
    beside = og.open_study(folder).tree
    for name, variable in (("loss", "loss"), ("activation-decay", "rotation_removed")):
        found = beside[name][f"{variable}_control"].sel(
            run="turned 1", step=steps, drop=True
        )
        np.testing.assert_array_equal(found.values, own[name][variable].values)


@pytest.mark.slow
def test_nothing_is_computed_again_and_a_lost_cell_is(trajectory, folder, tmp_path):
    study = study_of(trajectory, controls=2, control_steps=4)
    assert study.plan(folder).to_do == 0
    cell = next((folder / "runs").glob("*/cells/loss/*.safetensors"))
    content = cell.read_bytes()
    cell.unlink()
    progress = Counting()
    study.run(folder, progress=progress)
    assert progress.planned == 1 and cell.read_bytes()[:8] == content[:8]


def test_controls_are_planned_and_priced(trajectory, tmp_path):
    alone, with_controls = (
        study_of(trajectory, controls=count, control_steps=4).plan(tmp_path / "s")
        for count in (0, 3)
    )
    own = len(
        [o for o in observables() if o.name not in ("concepts-pca", "weight-rank")]
    )
    assert with_controls.to_do == alone.to_do + 3 * 4 * own
    assert with_controls.checkpoints == alone.checkpoints + 3 * 4
    assert with_controls.forwards > alone.forwards
    assert "control run turned 2, 4 steps: 16 new" in str(with_controls)


def test_adding_controls_later_keeps_what_there_is(trajectory, alone):
    plan = study_of(trajectory, controls=1, control_steps=3).plan(alone)
    assert {entry.run for entry in plan.entries if entry.to_do} == {"turned 0"}


@pytest.mark.slow
def test_a_given_control_is_read_at_the_steps_in_common(trajectory, tmp_path):
    other = og.Trajectory.from_models(developing((0, 2, 8, 32, 100, 128)))
    study = study_of(trajectory, (), control_runs={"trained on nothing": other})
    tree = study.run(tmp_path / "s")
    found = tree["loss"].loss_control.sel(run="trained on nothing")
    assert found.step.values[found.notnull()].tolist() == [0, 2, 8, 32, 128]


@pytest.mark.slow
def test_what_fails_of_a_control_is_said_and_costs_nothing_else(trajectory, tmp_path):
    models = developing((0, 2, 8, 32, 128))
    models[8].model.layers[0].mlp.down_proj.weight.data.fill_(np.nan)
    damaged = og.Trajectory.from_models(models)
    tree = study_of(trajectory, (), control_runs={"damaged": damaged}).run(
        tmp_path / "s"
    )
    problems = json.loads(tree.attrs["problems"])
    assert problems and all(line.startswith("damaged: ") for line in problems)
    assert tree["loss"].loss.notnull().all()
    assert tree["loss"].loss_control.sel(run="damaged", step=2).notnull()


def test_study_files_have_controls(tmp_path):
    og_run = tmp_path / "run"
    recorder = og.Recorder(og_run, every=lambda step: True)
    for step, model in developing(STEPS[:4]).items():
        recorder(step, model)
    study_file = tmp_path / "study.toml"
    text = f"""
        [trajectory]
        folder = "run"
        [inputs]
        texts = ["a"]
        [[observables]]
        kind = "activation-decay"
        layers = "{LAYERS}"
        [controls]
        kind = "spun"
    """
    study_file.write_text(text)
    with pytest.raises(
        OntogenyError, match="texts, but the checkpoints have no tokenizer"
    ):
        read_study(study_file)
    study_file.write_text(text.replace('kind = "spun"', "seeds = 3"))
    with pytest.raises(OntogenyError, match=r"\[controls\] has no key 'seeds'"):
        read_study(study_file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"controls": -1}, "controls must be"),
        ({"controls": 1, "control_kind": "spun"}, "kind must be one of"),
        ({"controls": 1, "control_steps": 2}, "control_steps must be"),
        ({"control_runs": ["run"]}, "must hold Trajectory"),
        ({"control_runs": 5}, "must hold Trajectory"),
        ({"control_runs": "run"}, "must hold Trajectory"),
    ],
)
def test_wrong_arguments_are_refused_at_once(trajectory, options, message):
    with pytest.raises(OntogenyError, match=message):
        study_of(trajectory, **options)


def test_a_given_run_cannot_take_the_name_of_a_made_one(trajectory):
    with pytest.raises(OntogenyError, match="must not be called 'turned 0'"):
        study_of(trajectory, controls=1, control_runs={"turned 0": trajectory})
