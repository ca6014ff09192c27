"""What another process deletes while it is looked at: the right answer or a clear error."""

import io
import json
import os
import shutil
from pathlib import Path

import pytest
from safetensors.torch import save_file

from helpers.hub_models import REPO, linear, linear_files, tokenizer_files
from helpers.hub_server import build_cache, commit_of
from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory import opening
from ontogeny.trajectory.hub.revision import HubRevision
from ontogeny.trajectory.tokenizers import file_digests
from ontogeny.trajectory.weights.folders import find_weights

REVISIONS = {f"step{s}": linear_files(s) for s in (0, 1, 2)}


@pytest.fixture
def vanishing(monkeypatch):
    """Return a function of a path that is there to every look, and gone when it is first opened."""
    doomed = set()

    def strike(path):
        if isinstance(path, str | Path) and Path(path) in doomed:
            doomed.discard(Path(path))
            shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()

    def watched(call):
        def opening(path=".", *args, **options):
            strike(path)
            return call(path, *args, **options)

        return opening

    for module, name in (
        (os, "listdir"),
        (os, "scandir"),
        (os, "readlink"),
        (io, "open"),
    ):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return doomed.add


@pytest.mark.parametrize("gone", ["refs/step1", "refs/pr", "refs/pr/7"])
def test_offline_a_name_that_vanishes_is_not_there_and_the_others_are(
    tmp_path, vanishing, gone
):
    folder = build_cache(tmp_path, REPO, {**REVISIONS, "pr/7": linear_files(3)})
    vanishing(folder / gone)
    trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, local_files_only=True)
    assert not (folder / gone).exists()
    assert trajectory.steps.tolist() == [
        s for s in (0, 1, 2) if gone != f"refs/step{s}"
    ]


@pytest.mark.parametrize("gone", ["", "config.json"])
def test_offline_a_listing_holds_what_is_still_there(tmp_path, vanishing, gone):
    files = linear_files(0, **{"config.json": b"{}"})
    folder = build_cache(tmp_path, REPO, {"step0": files})
    revision = HubRevision(REPO, "step0", commit_of(files), tmp_path, offline=True)
    vanishing(folder / "snapshots" / revision.commit / gone)
    left = {"model.safetensors"} if gone else set()
    assert set(revision.listing()) == left


def test_a_checkpoint_that_the_trainer_deletes_meanwhile_is_not_called_incomplete(
    tmp_path, monkeypatch
):
    for step in (1, 2, 3):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        save_file(dict(linear(step).state_dict()), folder / "model.safetensors")
    (tmp_path / "checkpoint-3" / "model.safetensors").unlink()

    def rotating(path, *key):
        if path.name == "checkpoint-1":
            shutil.rmtree(path)
        return find_weights(path, *key)

    monkeypatch.setattr(opening, "find_weights", rotating)
    trajectory = Trajectory.from_folder(tmp_path)
    assert trajectory.steps.tolist() == [2]
    assert [f.steps for f in trajectory.audit() if f.kind == "incomplete"] == [(3,)]


def test_files_of_a_folder_that_vanish_between_two_looks_are_said_to_be_gone(
    tmp_path, vanishing
):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {}}')
    vanishing(index)
    with pytest.raises(CheckpointError, match=r"index.json is gone"):
        find_weights(tmp_path)
    save_file(dict(linear(0).state_dict()), tmp_path / "model.safetensors")
    for name, data in {**tokenizer_files(), "config.json": b"{}"}.items():
        (tmp_path / name).write_bytes(data)
    vanishing(tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match=r"tokenizer.json is gone"):
        file_digests(tmp_path)
    (tmp_path / "checkpoint-1").mkdir()
    for path in (tmp_path / "model.safetensors", tmp_path / "config.json"):
        path.rename(tmp_path / "checkpoint-1" / path.name)
    checkpoint = Trajectory.from_folder(tmp_path)[1]
    vanishing(tmp_path / "checkpoint-1" / "config.json")
    with pytest.raises(CheckpointError, match=r"config.json is gone"):
        checkpoint.configuration()


def test_a_recorders_note_that_is_deleted_meanwhile_is_no_note(tmp_path, vanishing):
    (tmp_path / "checkpoint-1").mkdir()
    save_file(
        dict(linear(0).state_dict()), tmp_path / "checkpoint-1" / "model.safetensors"
    )
    note = {"class": "Linear", "schedules": [], "digests": {}}
    (tmp_path / "recorder.json").write_text(json.dumps(note))
    vanishing(tmp_path / "recorder.json")
    assert Trajectory.from_folder(tmp_path).steps.tolist() == [1]
