"""Cells that are extended by new checkpoints never keep a number of what is there no more."""

import shutil

import pytest
import xarray as xr

import ontogeny as og
from helpers import tiny_models
from helpers.control_runs import run_of
from helpers.study_examples import tiny_inputs
from ontogeny.study.planning import build

STEPS = (0, 2, 4, 6, 8)
BLOCKS = "**.c_fc.weight"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of five checkpoints, and others of the same model under the same names."""
    folder = tmp_path_factory.mktemp("runs")
    for name, size in (("run", 0.05), ("other", 0.2)):
        for step, model in run_of(tiny_models.gpt2, STEPS, size).items():
            model.save_pretrained(folder / name / f"checkpoint-{step}")
    return folder


@pytest.fixture
def begun(run, tmp_path):
    """A study of steps 2, 4 and 6, and the folder of its run."""
    shutil.copytree(run / "run", tmp_path / "run")
    study_of(tmp_path, (2, 4, 6)).run(tmp_path / "s")
    return tmp_path


def study_of(folder, steps=None):
    run = og.Trajectory.from_folder(folder / "run")
    return og.Study(
        run if steps is None else run.select(steps=steps),
        tiny_inputs(20),
        og.observables.WeightChange(BLOCKS),
        device="cpu",
    )


def replace(begun, run, step):
    """Put another model in the place of a checkpoint, under its name."""
    place = begun / "run" / f"checkpoint-{step}" / "model.safetensors"
    place.unlink()
    shutil.copy(run / "other" / place.parent.name / place.name, place)


def outcomes(study, folder):
    return {entry.outcome for entry in study.plan(folder / "s").entries}


def check_as_fresh(study, folder):
    """Check that what is in the study's folder now is what a new one would hold."""
    found = study.run(folder / "s")
    fresh = study.run(folder / "fresh")
    assert not found.problems()
    node = "weight-change"
    xr.testing.assert_equal(*(result[node].to_dataset() for result in (found, fresh)))


@pytest.mark.parametrize(
    ("step", "outcome"), [(4, "extended"), (6, "extended"), (2, "stale")]
)
def test_a_checkpoint_replaced_under_its_name_is_read_again(begun, run, step, outcome):
    replace(begun, run, step)
    later = study_of(begun, (2, 4, 6, 8))
    assert outcomes(later, begun) == {outcome}
    check_as_fresh(later, begun)


def test_where_an_earlier_checkpoint_is_added_all_is_measured_from_it(begun):
    earlier = study_of(begun)  # with step 0
    assert outcomes(earlier, begun) == {"stale"}
    check_as_fresh(earlier, begun)


def test_what_other_code_has_computed_is_not_extended(begun, monkeypatch):
    code = build.code_of_cell
    monkeypatch.setattr(
        build, "code_of_cell", lambda *of: {**code(*of), "code": "another digest"}
    )
    assert outcomes(study_of(begun, (2, 4, 6, 8)), begun) == {"stale"}


def test_what_is_stopped_while_it_is_extended_goes_on(begun, run, monkeypatch):
    """Some cells have the new steps then, and one checkpoint is replaced before it goes on."""
    observe, calls = og.observables.WeightChange.observe, []

    def stopping(self, reading, state):
        calls.append(reading.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return observe(self, reading, state)

    later = study_of(begun, (2, 4, 6, 8))
    with monkeypatch.context() as patched:
        patched.setattr(og.observables.WeightChange, "observe", stopping)
        with pytest.raises(KeyboardInterrupt):
            later.run(begun / "s")
    later = study_of(begun, (2, 4, 6, 8))
    assert outcomes(later, begun) == {"done", "extended"}
    replace(begun, run, 8)
    check_as_fresh(study_of(begun, (2, 4, 6, 8)), begun)


def test_weights_written_over_while_a_cell_is_extended_are_not_kept(
    begun, run, monkeypatch
):
    observe, calls = og.observables.WeightChange.observe, []

    def writing_over(self, reading, state):
        found = observe(self, reading, state)
        if not calls:
            replace(begun, run, 4)  # which is kept, and is not read now
        calls.append(reading.name)
        return found

    later = study_of(begun, (2, 4, 6, 8))
    with monkeypatch.context() as patched:
        patched.setattr(og.observables.WeightChange, "observe", writing_over)
        first = later.run(begun / "s")
    (problem,) = first.problems()
    assert "step 4 was written over" in problem.why
    check_as_fresh(study_of(begun, (2, 4, 6, 8)), begun)
