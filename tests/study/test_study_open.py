"""A result that is open while a run merges into its folder never gives another run's numbers."""

import pickle
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import developing, tiny_inputs
from ontogeny.errors import StoreError
from ontogeny.study.results import opened, result_files
from ontogeny.study.results.opened import OpenResult
from ontogeny.study.results.result_files import write_result

MODELS = developing((0, 1, 2, 4))
REPLACED = "no longer the result that was opened.*Open it again"


def _run(folder, steps, observables=None):
    trajectory = og.Trajectory.from_models({s: MODELS[s] for s in steps})
    chosen = observables or [og.observables.Loss(), og.observables.AttentionEntropy()]
    return og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=0).run(
        folder
    )


def _tree(value, steps=3):
    data = xr.Dataset(
        {"x": ("step", np.full(steps, float(value)))}, {"step": np.arange(steps)}
    )
    root = xr.Dataset(attrs={"created": f"at {value}"})
    return xr.DataTree.from_dict({"/": root, "node": data})


def _study(folder, value):
    (folder / "study.json").parent.mkdir(exist_ok=True)
    (folder / "study.json").write_text("{}")
    write_result(folder, _tree(value))
    return og.open_study(folder)


@pytest.mark.slow
def test_what_was_not_read_before_a_run_merged_is_refused_and_not_nan(tmp_path):
    _run(tmp_path / "s", (0, 1))
    before = og.open_study(tmp_path / "s").tree.load()
    study = og.open_study(tmp_path / "s")
    result = study.tree
    loss = result["loss"].loss.load()
    _run(tmp_path / "s", (0, 1, 2, 4))
    assert np.isfinite(loss).all()  # it was read
    others = result["attention-entropy"].data_vars
    refused = []
    for name, variable in others.items():
        try:
            # What both results hold alike is that of the old one.
            xr.testing.assert_equal(variable.load(), before["attention-entropy"][name])
        except StoreError as error:
            refused.append((name, str(error)))
    assert {"layer_entropy", "entropy"} <= {name for name, _ in refused}
    assert all(re.search(REPLACED, said) for _, said in refused)
    with pytest.raises(StoreError, match=REPLACED):
        result.load()
    with pytest.raises(StoreError, match=REPLACED):
        study.report(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
    assert og.open_study(tmp_path / "s").result["loss"].step.values.tolist() == [
        0,
        1,
        2,
        4,
    ]


def test_a_result_without_a_variable_of_the_old_one_is_no_nan_either(tmp_path):
    _run(tmp_path / "s", (0, 1))
    result = og.open_study(tmp_path / "s").result
    _run(tmp_path / "s", (0, 1), [og.observables.Loss()])
    with pytest.raises(StoreError, match=REPLACED):
        result["attention-entropy"].to_dataset().load()


def test_a_run_that_finds_nothing_new_leaves_an_open_result_alone(tmp_path):
    _run(tmp_path / "s", (0, 1))
    result = og.open_study(tmp_path / "s").result
    again = _run(tmp_path / "s", (0, 1))
    for name in ("loss", "attention-entropy"):
        xr.testing.assert_identical(
            result[name].to_dataset().load().drop_attrs(deep=False),
            again[name].to_dataset().drop_attrs(deep=False),
        )
    shutil.rmtree(tmp_path / "s" / "result.zarr" / "loss" / "loss")
    _run(tmp_path / "s", (0, 1))  # the same again, but the old one is damaged
    assert np.isfinite(og.open_study(tmp_path / "s").result["loss"].loss).all()


def test_a_deleted_result_is_said_to_be_gone(tmp_path):
    result = _study(tmp_path / "s", 1).result
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(StoreError, match=REPLACED):
        result["node"].x.load()


def test_an_open_result_knows_itself_after_pickling(tmp_path):
    _study(tmp_path / "s", 1)
    copy = pickle.loads(pickle.dumps(OpenResult(tmp_path / "s" / "result.zarr")))
    write_result(tmp_path / "s", _tree(2))
    with pytest.raises(StoreError, match=REPLACED):
        xr.open_datatree(copy, engine="zarr", zarr_format=2, consolidated=True)


def test_a_result_that_is_swapped_while_it_is_opened_is_opened_anew(
    tmp_path, monkeypatch
):
    study = _study(tmp_path / "s", 1)
    check, runs = opened.check_data_only, [2]

    def meanwhile(path):
        if runs:
            write_result(tmp_path / "s", _tree(runs.pop()))
        return check(path)

    monkeypatch.setattr(opened, "check_data_only", meanwhile)
    assert study.tree["node"].x.values.tolist() == [2.0] * 3


def test_between_the_two_renames_of_a_run_opening_waits(tmp_path, monkeypatch):
    _study(tmp_path / "s", 1)
    path = tmp_path / "s" / "result.zarr"
    moved = result_files.temporary(path)
    path.rename(moved)
    monkeypatch.setattr(opened.time, "sleep", lambda _: moved.rename(path))
    assert og.open_study(tmp_path / "s").result["node"].x.values.tolist() == [1.0] * 3


def test_runs_that_merge_at_the_same_time_leave_one_whole_result(tmp_path):
    (tmp_path / "study.json").write_text("{}")
    barrier = threading.Barrier(4)

    def work(number):
        barrier.wait(600)
        for i in range(3):
            write_result(tmp_path, _tree(10 * number + i, steps=2 + number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    x = og.open_study(tmp_path).result["node"].x.values
    assert len(set(x)) == 1 and len(x) == 2 + x[0] // 10
    left = {p.name for p in tmp_path.iterdir()} - {".claims"}
    assert left == {"result.zarr", "study.json"}


def test_a_run_that_finds_another_ones_result_in_its_place_takes_its_turn(
    tmp_path, monkeypatch
):
    write_result(tmp_path, _tree(1))
    path, rename, others = tmp_path / "result.zarr", Path.rename, [True]

    def crowded(source, target):
        if target == path and others:
            others.pop()
            shutil.copytree(source, path)  # another run's, between our two renames
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", crowded)
    write_result(tmp_path, _tree(2))
    assert xr.open_datatree(path, engine="zarr")["node"].x.values.tolist() == [2.0] * 3
    assert {p.name for p in tmp_path.iterdir()} - {".claims"} == {"result.zarr"}
