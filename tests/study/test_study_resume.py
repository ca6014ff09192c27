"""A study that was stopped goes on, and what has changed is computed again, and only that."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers import warm_process
from helpers.paths import script
from helpers.study_examples import (
    LAYERS,
    Counting,
    developing,
    observables,
    record,
    tiny_inputs,
)
from ontogeny.errors import StoreError
from ontogeny.store import read_cell
from ontogeny.study.cells import cache
from ontogeny.study.cells.cache import read_verified
from ontogeny.study.progress import Silent

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8, 16, 32)


def _study(trajectory, inputs=None, chosen=None, **options):
    chosen = chosen or observables()
    return og.Study(
        trajectory, inputs or tiny_inputs(), chosen, device="cpu", noise=1, **options
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    record(developing(STEPS), folder)
    return folder


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    """The uninterrupted study's folder."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    study = _study(og.Trajectory.from_folder(run))
    study.run(folder)
    return folder


def values(folder):
    """Return every number of a result, and every attribute but times."""
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    attrs = {k: v for k, v in tree.attrs.items() if k not in ("created", "provenance")}
    return {
        name: node.to_dataset().load() for name, node in tree.children.items()
    }, attrs


def assert_same(a, b):
    nodes_a, attrs_a = values(a)
    nodes_b, attrs_b = values(b)
    assert attrs_a == attrs_b
    assert nodes_a.keys() == nodes_b.keys()
    for name, node in nodes_a.items():
        xr.testing.assert_identical(node, nodes_b[name])


def test_a_result_holds_a_digest_of_the_weights_of_each_checkpoint(
    run, whole, tmp_path
):
    source = json.loads(values(whole)[1]["trajectory"])
    trajectory = og.Trajectory.from_folder(run)
    assert (source["source"], source["name"]) == ("folder", trajectory.title)
    assert list(source["digests"]) == [str(step) for step in STEPS]
    assert len(set(source["digests"].values())) == len(STEPS)
    copy = og.Trajectory.from_models({s: trajectory[s].model() for s in (4, 32)})
    other = og.Study(copy, tiny_inputs(), [og.observables.Loss()], device="cpu").run(
        tmp_path
    )
    again = json.loads(other.attrs["trajectory"])
    assert again["source"] == "memory"
    assert again["digests"] == {step: source["digests"][step] for step in ("4", "32")}


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs fork to start a study quickly"
)
def test_killed_at_every_phase_and_started_again_it_gives_the_same_bits(
    run, whole, tmp_path
):
    phases = ["loading 1", "preparing 1", "capturing 2", "fitting 9", "writing 12"]
    phases += ["summarising 3", "merging 1"]
    starts = [*(f"phase={phase}" for phase in phases), "to the end"]
    done = warm_process.run([script("killed_study.py"), run, tmp_path / "s", *starts])
    assert json.loads(done.stdout) == [-signal.SIGKILL] * len(phases) + [0], done.stderr
    assert_same(tmp_path / "s", whole)
    assert not [
        p
        for p in (tmp_path / "s").rglob("*")
        if p.name.endswith((".tmp", ".new", ".old"))
    ]


def _again(folder, trajectory, inputs=None, chosen=None, **options):
    """Run the study again in a copy of `folder` and return (cells computed, notes)."""
    progress = Counting()
    _study(trajectory, inputs, chosen, **options).run(folder, progress=progress)
    return progress


def _copy(folder, to):
    shutil.copytree(folder, to)
    return to


def test_nothing_is_computed_twice(run, whole, tmp_path):
    folder = _copy(whole, tmp_path / "s")
    progress = _again(folder, og.Trajectory.from_folder(run))
    assert (progress.planned, progress.labels, progress.notes) == (0, [], [])
    assert_same(folder, whole)


def test_one_changed_text_changes_everything_but_the_weights(run, whole, tmp_path):
    inputs = tiny_inputs()
    ids = inputs.ids.copy()
    ids[3, 1] = 5 if ids[3, 1] != 5 else 6
    changed = og.Inputs.from_tokens(
        ids, mask=inputs.mask, special=inputs.special, mask_token_id=1
    )
    progress = _again(
        _copy(whole, tmp_path / "s"), og.Trajectory.from_folder(run), changed
    )
    assert progress.planned == 5 * len(STEPS)  # loss, decay, two extractors, attention
    (changed_line,) = [note for note in progress.notes if note.startswith("changed")]
    assert changed_line.startswith("changed: the texts of input set 'text' (")


def test_one_changed_option_changes_one_observable(run, whole, tmp_path):
    chosen = observables()
    chosen[2] = og.observables.Concepts("pca", n_concepts=3, layers=LAYERS)
    progress = _again(
        _copy(whole, tmp_path / "s"), og.Trajectory.from_folder(run), chosen=chosen
    )
    assert progress.planned == len(STEPS)
    assert any("arguments.n_concepts: 4 -> 3" in note for note in progress.notes)


@pytest.mark.parametrize(
    ("tensor", "nodes"),
    [
        # The first layer's MLP: everything at that step, and its own block over all steps.
        ("model.layers.0.mlp.up_proj.weight", 6),
        # The last layer's attention output: as above, but it is no studied block.
        ("model.layers.1.self_attn.o_proj.weight", 5),
        # The prediction head is read by the loss alone.
        ("lm_head.weight", 1),
    ],
)
def test_one_changed_weight_changes_the_cells_that_read_it(
    whole, tmp_path, tensor, nodes
):
    models = developing(STEPS)
    with torch.no_grad():
        dict(models[4].named_parameters(remove_duplicate=False))[tensor][0, 0] += 0.5
    trajectory = record(models, tmp_path / "run")
    if "lm_head.weight" not in trajectory[4].digests():
        pytest.skip("tied head")
    folder = _copy(whole, tmp_path / "s")
    study = _study(trajectory)
    stale = [e for e in study.plan(folder).entries if e.to_do]
    assert len(stale) == nodes
    assert {e.key for e in stale} <= {4, "model.layers.0.mlp.up_proj.weight"}
    assert all(e.outcome == "stale" and "weights" in "".join(e.why) for e in stale)


def test_a_changed_reference_step_weight_makes_what_compares_with_it_stale(
    whole, tmp_path
):
    models = developing(STEPS)
    with torch.no_grad():
        models[32].model.layers[0].mlp.up_proj.weight[0, 0] += 0.5
    trajectory = record(models, tmp_path / "run")
    folder = _copy(whole, tmp_path / "s")
    progress = _again(folder, trajectory)
    # decay and both extractors at all steps; loss and attention at the changed step; one block
    assert progress.planned == 3 * len(STEPS) + 2 + 1


def test_a_growing_run_keeps_its_reference_and_computes_only_the_new_step(
    run, whole, tmp_path
):
    models = developing((*STEPS, 64))
    # the first seven models differ from `run`'s, whose S-curve has another midpoint: reuse those
    old = og.Trajectory.from_folder(run)
    trajectory = record(
        {**{s: old[s].model() for s in STEPS}, 64: models[64]}, tmp_path / "run"
    )
    folder = _copy(whole, tmp_path / "s")
    progress = _again(folder, trajectory)
    # One step of five observables; six blocks gain a snapshot.
    assert progress.planned == 5 + 6
    assert values(folder)[1]["reference_step"] == 32


def test_a_checkpoint_deleted_while_the_study_runs_costs_only_its_own_cells(
    whole, tmp_path
):
    record(developing(STEPS), tmp_path / "run")

    class Deleting(Silent):
        """Deletes the last checkpoint as soon as the first is observed."""

        def advance(self, label, cells, seconds):
            if label == "step 0":
                shutil.rmtree(tmp_path / "run" / "checkpoint-32")

    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    study = og.Study(
        trajectory, tiny_inputs(), og.observables.Loss(), device="cpu", noise=0
    )
    tree = study.run(tmp_path / "s", progress=Deleting())
    (problem,) = json.loads(tree.attrs["problems"])
    assert problem.startswith("loss at step 32: missing: ") and "is gone" in problem
    digests = json.loads(tree.attrs["trajectory"])["digests"]
    assert [s for s, digest in digests.items() if digest == "unreadable"] == ["32"]
    expected = xr.open_datatree(whole / "result.zarr", engine="zarr")["loss"].loss
    np.testing.assert_array_equal(tree["loss"].loss[:-1], expected[:-1])
    assert np.isnan(tree["loss"].loss[-1])


def test_a_damaged_cell_is_computed_again(run, whole, tmp_path):
    folder = _copy(whole, tmp_path / "s")
    cell = folder / "cells" / "loss" / "8.safetensors"
    cell.write_bytes(cell.read_bytes()[:-3])
    assert _again(folder, og.Trajectory.from_folder(run)).planned == 1
    assert_same(folder, whole)


def test_every_cell_is_checksummed_once_in_a_run_and_a_damaged_one_is_still_found(
    run, whole, tmp_path, monkeypatch
):
    checked = Counter()

    def reading(path, *, verify=True):
        checked[path] += verify
        return read_cell(path, verify=verify)

    monkeypatch.setattr(cache, "read_cell", reading)
    folder = _copy(whole, tmp_path / "s")
    # Planned twice.
    chosen = [*observables(), og.observables.ConceptDistances("concepts-pca")]
    assert _again(folder, og.Trajectory.from_folder(run), chosen=chosen).planned == 2
    cells = set((folder / "cells").rglob("*.safetensors"))
    assert cells <= checked.keys() and set(checked.values()) == {1}
    damaged = folder / "cells" / "loss" / "8.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert _again(folder, og.Trajectory.from_folder(run)).planned == 1


def test_a_cell_that_is_damaged_after_it_was_found_sound_is_refused(whole, tmp_path):
    folder = _copy(whole, tmp_path / "s")
    path, read = folder / "cells" / "loss" / "8.safetensors", read_verified
    assert read(path).status == "done"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(StoreError, match="damaged"):
            read(path)


def test_a_lost_result_is_merged_again_from_cells(run, whole, tmp_path):
    folder = _copy(whole, tmp_path / "s")
    shutil.rmtree(folder / "result.zarr")
    with pytest.raises(StoreError, match="no merged result"):
        og.open_study(folder)
    assert _again(folder, og.Trajectory.from_folder(run)).planned == 0
    assert_same(folder, whole)


def test_a_folder_with_other_files_is_refused(run, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    study = _study(og.Trajectory.from_folder(run))
    with pytest.raises(StoreError, match="no study"):
        study.run(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_result_opens_without_ontogeny(whole):
    code = (
        "import sys, json, xarray as xr\n"
        f"t = xr.open_datatree({str(whole / 'result.zarr')!r}, engine='zarr')\n"
        "assert json.loads(t.attrs['nodes'])[0] == 'loss'\n"
        "assert t['loss'].loss.attrs['units'] == 'nats per token'\n"
        "assert t['loss'].to_dataset().to_dataframe() is not None\n"
        "assert not {'ontogeny', 'torch'} & set(sys.modules)\n"
        "print(float(t['loss'].loss[0]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert np.isfinite(float(done.stdout))


def test_plan_says_what_is_done_and_writes_nothing(run, whole, tmp_path):
    study = _study(og.Trajectory.from_folder(run))
    fresh = study.plan(tmp_path / "nowhere")
    assert (fresh.done, fresh.to_do) == (0, 5 * 7 + 6)
    # plain and corrupted at every step; references and maps are read in the plain pass
    assert fresh.forwards == 2 * 7
    assert not (tmp_path / "nowhere").exists()
    again = study.plan(whole)
    assert (again.done, again.to_do, again.forwards) == (41, 0, 0)
    assert "cells: 41 done, 0 to do" in str(again)


def test_problems_stand_in_the_result(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    # Found whole, and damaged afterwards.
    trajectory = og.Trajectory.from_folder(folder)
    weights = folder / "checkpoint-8" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    progress = Counting()
    study = og.Study(trajectory, tiny_inputs(), observables()[:2], device="cpu")
    tree = study.run(tmp_path / "s", progress=progress)
    assert str(tree["loss"].status.sel(step=8).item()).startswith("missing: ")
    assert np.isnan(tree["loss"].loss.sel(step=8).item())
    assert np.isfinite(tree["loss"].loss.drop_sel(step=8)).all()
    assert set(tree["activation-decay"].status.sel(step=8).values.tolist()) == {
        tree["loss"].status.sel(step=8).item()
    }
    assert len(json.loads(tree.attrs["problems"])) == 2
