"""Weights stay in the precision that they are stored in, and are not loaded to be looked at."""

import json

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors.torch import load_file

import ontogeny as og
from helpers.study_examples import tiny_inputs
from helpers.tiny_models import bert, eurobert, gpt2, gpt_neox, mixtral
from ontogeny.errors import CheckpointError
from ontogeny.trajectory import Checkpoint
from ontogeny.trajectory.skeleton import Skeleton

STEPS = (0, 1, 2)


def record(folder, dtypes):
    recorder = og.Recorder(folder, every=1)
    for step, dtype in zip(STEPS, dtypes, strict=True):
        torch.manual_seed(step)
        recorder(step, gpt_neox().to(dtype))
    return og.Trajectory.from_folder(folder)


def run_study(trajectory, folder, *observables, **options):
    study = og.Study(
        trajectory, tiny_inputs(), observables, device="cpu", noise=0, **options
    )
    return study.run(folder, progress=False)


def dtype_of(result):
    return json.loads(result.tree.attrs["settings"])["dtype"]


@pytest.mark.parametrize(
    ("stored", "used"),
    [
        (3 * [torch.bfloat16], "bfloat16"),
        (
            [torch.bfloat16, torch.float32, torch.bfloat16],
            "float32",
        ),  # nothing may be lost
        ([torch.float16, torch.bfloat16, torch.bfloat16], "float32"),
    ],
)
def test_a_study_runs_in_the_stored_precision(tmp_path, stored, used):
    trajectory = record(tmp_path / "run", stored)
    decay = og.observables.ActivationDecay("resid")
    default = run_study(trajectory, tmp_path / "default", decay)
    assert dtype_of(default) == used
    named = run_study(trajectory, tmp_path / "named", decay, dtype=used)
    a, b = (each.tree["activation-decay"].to_dataset() for each in (default, named))
    assert a.drop_attrs().equals(b.drop_attrs())
    assert all(
        v.dtype in (np.float32, np.float64)
        for v in a.data_vars.values()
        if v.dtype.kind == "f"
    )


def test_norms_of_weights_are_read_without_loading_a_model(tmp_path, monkeypatch):
    trajectory = record(tmp_path / "run", 3 * [torch.bfloat16])
    loaded = []
    for owner, name in ((Checkpoint, "model"), (Skeleton, "load")):
        monkeypatch.setattr(owner, name, lambda *_, **__: loaded.append(1))
    norms = og.observables.WeightNorms("**.dense.weight")
    rank = og.observables.WeightRank("**.dense.weight", n_draws=4)
    words = og.observables.VocabularyConcepts(
        n_concepts=2, n_active=1, fit_steps=3, nulls=0
    )
    result = run_study(trajectory, tmp_path / "s", norms, rank, words)
    assert loaded == []
    found = result.tree["weight-norms"].norm
    assert found.sizes["layer"] == 2
    for step in STEPS:
        stored = load_file(trajectory[step].path / "model.safetensors")
        for layer in found.layer.values:
            expected = stored[str(layer)].double().norm()
            np.testing.assert_allclose(
                found.sel(step=step, layer=layer), expected, rtol=1e-12
            )


@pytest.mark.slow
@pytest.mark.parametrize("build", [gpt2, gpt_neox, bert, eurobert])
def test_streamed_weights_give_the_same_bits(tmp_path, build):
    recorder = og.Recorder(tmp_path / "run", every=1)
    for step in STEPS:
        torch.manual_seed(step)
        recorder(step, build())
    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    observed = og.observables.EffectiveDimensions("resid"), og.observables.Loss()
    trees = [
        run_study(trajectory, tmp_path / weights, *observed, weights=weights).tree
        for weights in ("loaded", "streamed")
    ]
    for node in (each.name for each in observed):
        loaded, streamed = (tree[node].to_dataset().drop_attrs() for tree in trees)
        xr.testing.assert_identical(loaded, streamed)


def test_what_cannot_be_streamed_is_refused(tmp_path):
    recorder = og.Recorder(tmp_path, every=1)
    recorder(0, mixtral())
    trajectory = og.Trajectory.from_folder(tmp_path)
    with pytest.raises(
        CheckpointError, match='not one tensor of its files; use weights="loaded"'
    ):
        trajectory.skeleton().streamed(trajectory[0])


def test_streamed_weights_run_in_the_precision_that_is_asked_for(tmp_path):
    trajectory = record(tmp_path / "run", 3 * [torch.bfloat16])
    decay = og.observables.ActivationDecay("resid")
    loaded, streamed, stored = (
        run_study(trajectory, tmp_path / name, decay, **options)
        .tree[decay.name]
        .to_dataset()
        for name, options in {
            "loaded": {"dtype": "float32"},
            "streamed": {"dtype": "float32", "weights": "streamed"},
            "stored": {"weights": "streamed"},
        }.items()
    )
    xr.testing.assert_identical(loaded.drop_attrs(), streamed.drop_attrs())
    assert not loaded.norm.equals(stored.norm)


def test_a_plan_counts_that_streamed_weights_are_read_for_every_batch(tmp_path):
    trajectory = record(tmp_path / "run", 3 * [torch.bfloat16])

    def read(**options):
        study = og.Study(
            trajectory,
            tiny_inputs(24),
            og.observables.Loss(),
            device="cpu",
            noise=0,
            **options,
        )
        return study.plan().weight_bytes

    assert (
        read(weights="streamed", batch_size=8) == 3 * read(batch_size=8) == 3 * read()
    )
    assert read(weights="streamed", batch_size=24) == read()


def test_a_plan_counts_the_weights_as_they_are_held(tmp_path):
    trajectory = record(tmp_path / "run", 3 * [torch.bfloat16])
    sizes = [p.numel() for p in trajectory[0].model().parameters()]
    dimensions, norms = (
        og.observables.EffectiveDimensions("resid"),
        og.observables.WeightNorms(),
    )

    def plan(observable, **options):
        return og.Study(
            trajectory, tiny_inputs(), observable, device="cpu", **options
        ).plan()

    assert plan(dimensions).model_bytes == 2 * (sum(sizes) + max(sizes))
    assert plan(dimensions, dtype="float32").model_bytes == 4 * (
        sum(sizes) + max(sizes)
    )
    assert plan(dimensions, weights="streamed").model_bytes == 2 * max(sizes)
    assert plan(norms).model_bytes == 0
    loss = og.observables.Loss()
    assert plan(loss).memory_bytes > plan(loss, batch_size=1).memory_bytes
