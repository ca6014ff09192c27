"""A reference step that cannot be read costs only what is compared with it."""

import json
import shutil

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import (
    Counting,
    developing,
    observables,
    record,
    tiny_inputs,
)
from ontogeny.cli import main

STEPS = (0, 1, 2, 4)
COMPARED = ("activation-decay", "concepts-pca")


def _run(trajectory, folder, reference):
    progress = Counting()
    options = {"device": "cpu", "noise": 0, "reference": reference}
    study = og.Study(trajectory, tiny_inputs(), observables(("pca",)), **options)
    return study.run(folder, progress=progress), progress


def _broken(run, step):
    """Put NaN into a weight of the checkpoint at `step` and return the whole file's content."""
    from safetensors.torch import load_file, save_file

    path = run / f"checkpoint-{step}" / "model.safetensors"
    whole = path.read_bytes()
    tensors = load_file(path)
    tensors["model.layers.1.mlp.up_proj.weight"][0, 0] = float("nan")
    save_file(tensors, path, metadata={"format": "pt"})
    return path, whole


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference") / "run"
    record(developing(STEPS), folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "step"), [("last", 4), ("first", 0)])
def test_nan_at_the_reference_step_fails_what_is_compared_with_it_until_it_is_mended(
    recorded, tmp_path, reference, step
):
    run = shutil.copytree(recorded, tmp_path / "run")
    path, whole = _broken(run, step)
    tree, progress = _run(og.Trajectory.from_folder(run), tmp_path / "s", reference)
    layer, problems = "model.layers.1.mlp", json.loads(tree.attrs["problems"])
    for name in COMPARED:
        reasons = set(tree[name].status.values.ravel().tolist())
        assert len(reasons) == 1 and layer in (why := reasons.pop())
        assert why.startswith(f"failed: reference step {step} failed: NonFiniteError: ")
        assert (
            len([line for line in problems if line.startswith(f"{name}: failed in ")])
            == 1
        )
    others = [s for s in STEPS if s != step]
    assert np.isfinite(tree["loss"].loss.sel(step=others)).all()
    assert (tree["attention-entropy"].status == "done").all()
    assert problems[0].startswith(
        f"Activations of reference step {step}: failed: NonFinite"
    )
    assert any(
        f"activation-decay: failed in {len(STEPS)} cells" in line for line in problems
    )

    path.write_bytes(whole)
    mended, progress = _run(og.Trajectory.from_folder(run), tmp_path / "s", reference)
    assert json.loads(mended.attrs["problems"]) == []
    # what is compared at all steps, the loss at the mended step, and the block that held NaN
    assert progress.planned == len(COMPARED) * len(STEPS) + 1 + 1
    fresh, _ = _run(og.Trajectory.from_folder(run), tmp_path / "fresh", reference)
    for name, node in fresh.children.items():
        assert node.to_dataset().load().identical(mended[name].to_dataset().load()), (
            name
        )


def test_a_reference_checkpoint_that_is_damaged_later_is_missing_and_not_the_end(
    recorded, tmp_path
):
    run = shutil.copytree(recorded, tmp_path / "run")
    trajectory = og.Trajectory.from_folder(run)
    weights = run / "checkpoint-4" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    tree, _ = _run(trajectory, tmp_path / "s", "last")
    assert str(tree["loss"].status.sel(step=4).item()).startswith("missing: ")
    (why,) = set(tree["activation-decay"].status.values.ravel().tolist())
    assert why.startswith("failed: reference step 4 is missing: ")


def test_a_first_checkpoint_with_nan_does_not_end_the_plan(recorded, tmp_path):
    run = shutil.copytree(recorded, tmp_path / "run")
    _broken(run, 0)
    study = og.Study(
        og.Trajectory.from_folder(run), tiny_inputs(), observables(()), device="cpu"
    )
    assert study.plan().to_do == 3 * len(STEPS) + 6


def test_three_checkpoints_with_nan_are_refused_with_the_first_reason():
    models = developing((0, 1, 2))
    with torch.no_grad():
        for model in models.values():
            model.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    study = og.Study(og.Trajectory.from_models(models), tiny_inputs(), observables(()))
    with pytest.raises(og.errors.NonFiniteError, match=r"layers\.1\.mlp"):
        study.plan()


def test_the_command_exits_with_three_where_the_reference_step_failed(
    recorded, tmp_path, monkeypatch, capsys
):
    run = shutil.copytree(recorded, tmp_path / "run")
    _broken(run, 4)
    study = og.Study(
        og.Trajectory.from_folder(run),
        tiny_inputs(),
        observables(("pca",)),
        device="cpu",
    )
    monkeypatch.setattr("ontogeny.study.read_study", lambda path, **_: study)
    (tmp_path / "study.toml").write_text("")
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "run",
                str(tmp_path / "study.toml"),
                "--output",
                str(tmp_path / "s"),
                "--strict",
            ]
        )
    assert stop.value.code == 3
    said = capsys.readouterr().err
    assert "concepts-pca (4): reference step 4 failed: NonFiniteError" in said
