"""References of control runs are dropped once nothing needs them, and computed again if it does."""

import shutil

import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, observables, record, tiny_inputs
from ontogeny.store import read_header
from ontogeny.study import study
from ontogeny.study.cells import graph

STEPS = (0, 1, 2, 4)


def _study(run, **options):
    trajectory = og.Trajectory.from_folder(run)
    options = {"device": "cpu", "noise": 0, "controls": 2, **options}
    return og.Study(trajectory, tiny_inputs(), observables(("pca",)), **options)


def _references(folder):
    return sorted(folder.glob("runs/*/states/reference-*"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dropped") / "run"
    record(developing(STEPS), folder)
    return folder


@pytest.fixture
def kept(recorded, tmp_path, monkeypatch):
    """The folder and the result of a study that has dropped nothing."""
    with monkeypatch.context() as patched:
        patched.setattr(study, "drop_references", lambda controls: None)
        return tmp_path / "kept", _study(recorded).run(tmp_path / "kept").tree


def _stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/cells/*/*")}


def test_references_of_finished_controls_are_dropped_and_results_are_the_same(
    recorded, tmp_path, kept
):
    folder, expected = kept
    tree = _study(recorded).run(tmp_path / "s").tree
    assert all(tree[node].identical(expected[node]) for node in expected.children)
    assert len(_references(tmp_path / "s")) == len(_references(folder)) == 2
    for dropped, whole in zip(_references(tmp_path / "s"), _references(folder), strict=True):
        assert (
            read_header(dropped)["status"] == "dropped" and read_header(whole)["status"] == "done"
        )
        assert read_header(dropped)["checksum"] == read_header(whole)["checksum"]
        assert dropped.stat().st_size < whole.stat().st_size / 2
    (studied,) = (tmp_path / "s").glob("states/reference-*")
    assert read_header(studied)["status"] == "done"
    assert _study(recorded).plan(tmp_path / "s").to_do == 0


def test_a_cell_of_a_control_that_is_gone_comes_back_with_the_same_numbers(
    recorded, tmp_path, kept
):
    _study(recorded).run(tmp_path / "s")
    before = _stamps(tmp_path / "s")
    lost = next(path for path in before if path.parent.name == "activation-decay")
    lost.unlink()
    plan = _study(recorded).plan(tmp_path / "s")
    assert (
        plan.forwards > 0 and plan.to_do > 1 and not plan.changes()
    )  # the reference may come out otherwise
    tree = _study(recorded).run(tmp_path / "s").tree
    assert all(tree[node].identical(kept[1][node]) for node in kept[1].children)
    after = _stamps(tmp_path / "s")
    assert {path for path in after if after[path] != before[path]} == {lost}
    assert all(read_header(path)["status"] == "dropped" for path in _references(tmp_path / "s"))


def test_a_reference_that_comes_out_otherwise_has_all_that_read_it_computed_again(
    recorded, tmp_path, monkeypatch
):
    _study(recorded).run(tmp_path / "s")
    before = _stamps(tmp_path / "s")
    lost = next(path for path in before if path.parent.name == "activation-decay")
    lost.unlink()
    as_dataset = graph.as_dataset
    monkeypatch.setattr(graph, "as_dataset", lambda value: as_dataset(value) * 1.001)
    _study(recorded).run(tmp_path / "s")
    after = _stamps(tmp_path / "s")
    changed = {path for path in after if after[path] != before[path]}
    compared = lost.parents[1]
    assert changed == {*compared.glob("activation-decay/*"), *compared.glob("concepts-pca/*")}


def test_an_extended_study_gives_the_same_with_and_without_dropped_references(
    recorded, tmp_path, monkeypatch
):
    def extended(folder):
        run = shutil.copytree(recorded, folder / "run")
        later = shutil.move(run / "checkpoint-2", folder / "later")
        # Of concepts a state is prepared over the steps there are, so they are another's.
        kinds = [og.observables.Loss(), og.observables.ActivationDecay(layers=LAYERS)]
        options = {"device": "cpu", "noise": 0, "controls": 1}
        for _ in range(2):
            tree = og.Study(og.Trajectory.from_folder(run), tiny_inputs(), kinds, **options).run(
                folder / "s"
            )
            if later.exists():
                shutil.move(later, run / "checkpoint-2")
        return tree

    tree = extended(tmp_path / "dropped")
    monkeypatch.setattr(study, "drop_references", lambda controls: None)
    expected = extended(tmp_path / "kept")
    assert tree["loss"].sizes["step"] == 4
    assert all(tree[node].identical(expected[node]) for node in expected.children)
