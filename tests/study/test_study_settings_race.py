"""Two settings in one folder at once: the second is refused, and no cell is ever wrong."""

import json
import shutil
from contextlib import nullcontext

import numpy as np
import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, Counting, developing, tiny_inputs
from ontogeny.errors import StoreError
from ontogeny.store import read_cell
from ontogeny.study.folder import frozen

pytestmark = pytest.mark.slow

STEPS = (0, 1, 4)


@pytest.fixture(scope="module")
def trajectory():
    return og.Trajectory.from_models(developing(STEPS))


@pytest.fixture(scope="module")
def alone(trajectory, tmp_path_factory):
    """The folder of a run that nobody disturbs, and its result."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, _study(trajectory).run(folder, progress=False)


def _study(trajectory, **options):
    chosen = [og.observables.Loss(), og.observables.ActivationDecay(LAYERS)]
    return og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=0, **options)


class Meanwhile(Counting):
    """Runs another study in the same folder as soon as a task of this one is done."""

    def __init__(self, label, other, folder):
        super().__init__()
        self.label, self.other, self.folder, self.said = label, other, folder, ""

    def advance(self, label, cells, seconds):
        super().advance(label, cells, seconds)
        if label == self.label:
            try:
                self.other.run(self.folder, progress=False)
            except StoreError as error:
                self.said = str(error)


def _cells(folder):
    return {
        p.relative_to(folder): read_cell(p)
        for p in sorted(folder.rglob("*/*.safetensors"))
    }


def _assert_same_cells(found, expected):
    found, expected = _cells(found), _cells(expected)
    assert found.keys() == expected.keys()
    for place, cell in expected.items():
        assert found[place].fingerprint == cell.fingerprint, place
        assert found[place].checksum == cell.checksum, place


OTHERS = [{"reference": "first"}, {"dtype": "bfloat16"}]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_run_with_other_settings_is_refused_while_one_is_at_work(
    trajectory, alone, tmp_path, other
):
    beside = Meanwhile("step 1", _study(trajectory, **other), tmp_path / "s")
    _study(trajectory).run(tmp_path / "s", progress=beside)
    (key,) = other
    name = {"reference": "reference_step"}.get(key, key)
    assert (
        f"computes in this folder with other settings (settings.{name}: " in beside.said
    )
    assert "Wait until it has ended, or give another folder" in beside.said
    _assert_same_cells(tmp_path / "s", alone[0])
    kept = json.loads((tmp_path / "s" / "study.json").read_text())
    assert kept["reference"] == "last"  # the refused run has not written its own
    assert not list((tmp_path / "s" / ".claims").glob("*"))
    _study(trajectory, **other).run(tmp_path / "s", progress=False)  # and now it may


def test_a_further_observable_or_step_is_no_other_setting(trajectory, tmp_path):
    more = og.Study(
        trajectory.select(stop=1),
        tiny_inputs(),
        [og.observables.Loss()],
        device="cpu",
        noise=0,
    )
    beside = Meanwhile(
        "step 1", more.over(more.trajectory, reference=1), tmp_path / "s"
    )
    _study(trajectory.select(stop=1)).run(tmp_path / "s", progress=beside)
    assert beside.said == ""


@pytest.mark.parametrize(
    ("other", "label"),
    [(OTHERS[0], "references"), (OTHERS[0], "step 1"), (OTHERS[1], "step 4")],
    ids=str,
)
def test_where_two_settings_meet_in_spite_of_that_no_cell_is_wrong(
    trajectory, alone, tmp_path, monkeypatch, other, label
):
    """As on a file system on which neither sees the other's claim in time."""
    monkeypatch.setattr(frozen, "present", lambda *_: nullcontext())
    beside = Meanwhile(label, _study(trajectory, **other), tmp_path / "s")
    with pytest.warns(og.errors.StudyWarning):
        mixed = _study(trajectory).run(tmp_path / "s", progress=beside)
    for node, name in (("loss", "loss"), ("activation-decay", "procrustes")):
        if name not in mixed[node]:
            continue
        there = mixed[node][name].values
        right = np.isnan(there) | (there == alone[1][node][name].values)
        assert right.all()  # what it shows is right, the rest is said to be missing
    assert any("another run has put its own" in row.why for row in mixed.problems())
    _study(trajectory).run(tmp_path / "s", progress=False)
    _assert_same_cells(tmp_path / "s", alone[0])


def test_a_folder_that_is_moved_during_a_run_is_said_and_nothing_is_lost(
    trajectory, tmp_path
):
    class Moving(Counting):
        def advance(self, label, cells, seconds):
            super().advance(label, cells, seconds)
            if label == "step 1":
                (tmp_path / "s").rename(tmp_path / "moved")

    with pytest.raises(
        StoreError, match=r"is gone: it was moved or deleted while a run was using"
    ):
        _study(trajectory).run(tmp_path / "s", progress=Moving())
    assert not (tmp_path / "s").exists()
    progress = Counting()
    _study(trajectory).run(tmp_path / "moved", progress=progress)
    assert progress.labels == ["step 4"]
    shutil.rmtree(tmp_path / "moved")
