"""References of control runs are dropped once nothing needs them, and computed again if it does."""

import shutil
from dataclasses import dataclass
from typing import ClassVar

import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, observables, record, tiny_inputs
from ontogeny.needs import Activations
from ontogeny.needs.derived import Reference
from ontogeny.observables import Observable
from ontogeny.quantities import Quantity
from ontogeny.store import Cell, drop_numbers, read_header, write_cell
from ontogeny.study import merging
from ontogeny.study.cells import graph
from ontogeny.study.folder.claims import claimed
from ontogeny.study.folder.frozen import AT_END, present

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def kept(recorded, tmp_path_factory):
    """The folder and the result of a study that has dropped nothing."""
    folder = tmp_path_factory.mktemp("kept") / "s"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(merging, "drop_references", lambda controls: None)
        return folder, _study(recorded).run(folder).tree


@pytest.fixture(scope="module")
def whole(recorded, tmp_path_factory):
    """The folder, which each test copies, and the result of a study that has dropped references."""
    folder = tmp_path_factory.mktemp("whole") / "s"
    return folder, _study(recorded).run(folder).tree


def _stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/cells/*/*")}


def _with_a_lost_cell(whole, folder):
    """Copy a study, and remove a cell of a control; return the stamps from before, and which."""
    shutil.copytree(whole[0], folder)
    before = _stamps(folder)
    lost = next(path for path in before if path.parent.name == "activation-decay")
    lost.unlink()
    return before, lost


def test_references_of_finished_controls_are_dropped_and_results_are_the_same(
    recorded, whole, tmp_path, kept
):
    folder, expected = kept
    tree = whole[1]
    shutil.copytree(whole[0], tmp_path / "s")
    assert all(tree[node].identical(expected[node]) for node in expected.children)
    assert len(_references(tmp_path / "s")) == len(_references(folder)) == 2
    for dropped, whole in zip(
        _references(tmp_path / "s"), _references(folder), strict=True
    ):
        assert (
            read_header(dropped)["status"] == "dropped"
            and read_header(whole)["status"] == "done"
        )
        assert read_header(dropped)["checksum"] == read_header(whole)["checksum"]
        assert dropped.stat().st_size < whole.stat().st_size / 2
    (studied,) = (tmp_path / "s").glob("states/reference-*")
    assert read_header(studied)["status"] == "done"
    assert _study(recorded).plan(tmp_path / "s").to_do == 0


def test_a_cell_of_a_control_that_is_gone_comes_back_with_the_same_numbers(
    recorded, whole, tmp_path, kept
):
    before, lost = _with_a_lost_cell(whole, tmp_path / "s")
    plan = _study(recorded).plan(tmp_path / "s")
    # The reference may come out otherwise.
    assert plan.forwards > 0 and plan.to_do > 1 and not plan.changes()
    tree = _study(recorded).run(tmp_path / "s").tree
    assert all(tree[node].identical(kept[1][node]) for node in kept[1].children)
    after = _stamps(tmp_path / "s")
    assert {path for path in after if after[path] != before[path]} == {lost}
    assert all(
        read_header(path)["status"] == "dropped" for path in _references(tmp_path / "s")
    )


def test_a_reference_that_comes_out_otherwise_has_all_that_read_it_computed_again(
    recorded, whole, tmp_path, monkeypatch
):
    before, lost = _with_a_lost_cell(whole, tmp_path / "s")
    as_dataset = graph.as_dataset
    monkeypatch.setattr(graph, "as_dataset", lambda value: as_dataset(value) * 1.001)
    _study(recorded).run(tmp_path / "s")
    after = _stamps(tmp_path / "s")
    changed = {path for path in after if after[path] != before[path]}
    compared = lost.parents[1]
    assert changed == {
        *compared.glob("activation-decay/*"),
        *compared.glob("concepts-pca/*"),
    }


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
            tree = og.Study(
                og.Trajectory.from_folder(run), tiny_inputs(), kinds, **options
            ).run(folder / "s")
            if later.exists():
                shutil.move(later, run / "checkpoint-2")
        return tree

    tree = extended(tmp_path / "dropped")
    monkeypatch.setattr(merging, "drop_references", lambda controls: None)
    expected = extended(tmp_path / "kept")
    assert tree["loss"].sizes["step"] == 4
    assert all(tree[node].identical(expected[node]) for node in expected.children)


@dataclass(frozen=True)
class Compared(Observable):
    """A user's, which is compared with a reference of each of its layers."""

    layers: tuple[str, ...] = (LAYERS, "model.layers.*.self_attn")
    kind: ClassVar[str] = "compared"
    quantities: ClassVar = (Quantity("mean", "mean activation"),)

    def needs(self):
        read = [Activations(layers) for layers in self.layers]
        return [*read, *map(Reference, read)]

    def observe(self, reading, state):
        values = reading[self.needs()[0]].values()
        return xr.Dataset({"mean": float(next(iter(values)).mean())})


def test_cells_that_read_two_dropped_references_have_both_computed_again(
    recorded, tmp_path
):
    def study_of(kinds):
        options = {"device": "cpu", "noise": 0, "controls": 1}
        return og.Study(
            og.Trajectory.from_folder(recorded), tiny_inputs(), kinds, **options
        )

    study_of([Compared()]).run(tmp_path / "s")
    assert {read_header(path)["status"] for path in _references(tmp_path / "s")} == {
        "dropped"
    }
    both = [Compared(), Compared((LAYERS,), label="first")]
    assert not study_of(both).plan(tmp_path / "s").changes()
    study_of(both).run(tmp_path / "s")
    assert study_of(both).plan(tmp_path / "s").to_do == 0


def test_nothing_is_dropped_while_another_process_is_at_work_in_the_folder(
    recorded, tmp_path
):
    (tmp_path / "s").mkdir()
    study_ = _study(recorded)
    study_.run(tmp_path / "other")
    with present(tmp_path / "s", {}):
        shutil.copytree(tmp_path / "other", tmp_path / "s", dirs_exist_ok=True)
        for path in _references(tmp_path / "s"):
            path.unlink()
        study_.run(tmp_path / "s")
        assert all(
            read_header(path)["status"] == "done"
            for path in _references(tmp_path / "s")
        )


def test_references_go_once_every_process_in_the_folder_has_computed_its_part(
    recorded, tmp_path
):
    folder = tmp_path / "s"
    folder.mkdir()
    with present(folder, {}), claimed(folder, f"{AT_END}other"):  # it waits to merge
        _study(recorded).run(folder)
    assert {read_header(path)["status"] for path in _references(folder)} == {"dropped"}


def test_the_last_process_drops_references_though_another_has_merged(
    recorded, tmp_path, monkeypatch
):
    folder, finished = tmp_path / "s", merging.is_finished
    folder.mkdir()
    with present(folder, {}):
        _study(recorded).run(folder)
    at_first = iter([False])  # it began before the other one had ended
    monkeypatch.setattr(
        merging, "is_finished", lambda *of: next(at_first, True) and finished(*of)
    )
    monkeypatch.setattr(merging, "merged", None)
    _study(recorded).run(folder)
    assert {read_header(path)["status"] for path in _references(folder)} == {"dropped"}
    _study(recorded).run(folder)  # it is finished still


def test_a_reference_that_is_dropped_is_not_written_again(tmp_path):
    path = tmp_path / "reference.safetensors"
    write_cell(path, Cell(xr.Dataset({"mlp": 4.25})))
    drop_numbers(path)
    before = path.stat()
    drop_numbers(path)
    assert path.stat() == before


def test_references_of_control_runs_that_are_given_stay(recorded, tmp_path):
    given = og.Trajectory.from_folder(recorded)
    options = {"device": "cpu", "noise": 0, "control_runs": {"seed": given}}
    kinds = [og.observables.Loss(), og.observables.ActivationDecay(layers=LAYERS)]
    run = og.Trajectory.from_folder(recorded)
    og.Study(run, tiny_inputs(), kinds, **options).run(tmp_path / "s")
    assert [read_header(path)["status"] for path in _references(tmp_path / "s")] == [
        "done"
    ]
