"""Slots that revisions lie in: how many there are, and what may take the place of what."""

import threading

import pytest

from ontogeny.errors import CheckpointError
from ontogeny.trajectory.hub.slots import Slots


def written(folder):
    """Fill the folder of a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_text(folder.name)
    return folder


def on_disk(slots):
    return sorted(path.parent.name for path in slots.folder.glob("*/*/weights"))


def test_a_slot_holds_one_commit_and_the_next_takes_its_place(tmp_path):
    slots = Slots(tmp_path, 1)
    for commit in ("a", "b"):
        with slots.hold(commit, written) as folder:
            assert (folder / "weights").read_text() == commit
            assert on_disk(slots) == [commit]
    assert on_disk(slots) == ["b"]


def test_what_is_fetched_ahead_displaces_nothing_that_is_kept(tmp_path):
    slots = Slots(tmp_path, 2)
    assert slots.fill("a", written, {"a", "b", "c"})
    assert slots.fill("b", written, {"a", "b", "c"})
    assert not slots.has_room({"a", "b"})
    assert not slots.fill("c", written, {"a", "b"})
    assert on_disk(slots) == ["a", "b"]
    assert slots.has_room({"b"}) and slots.fill("c", written, {"b"})
    assert on_disk(slots) == ["b", "c"]


def test_a_slot_in_use_is_no_room_and_two_threads_share_a_commit(tmp_path):
    slots = Slots(tmp_path, 1)
    with slots.hold("a", written) as folder:
        assert not slots.has_room(set()) and not slots.fill("b", written, set())
        others = []

        def read():
            with slots.hold("a", written) as same:
                others.append(same)

        thread = threading.Thread(target=read)
        thread.start()
        thread.join(timeout=600)
        assert others == [folder]


def test_a_thread_that_holds_all_slots_is_not_left_waiting_for_itself(tmp_path):
    slots = Slots(tmp_path, 1)
    with (
        slots.hold("a", written),
        pytest.raises(CheckpointError, match="close one"),
        slots.hold("b", written),
    ):
        pass
    with slots.hold("b", written):
        assert on_disk(slots) == ["b"]


def test_a_slot_whose_filling_failed_is_free_again(tmp_path):
    slots = Slots(tmp_path, 1)

    def fails(folder):
        raise CheckpointError("the Hub is gone")

    with pytest.raises(CheckpointError, match="is gone"), slots.hold("a", fails):
        pass
    assert slots.fill("b", written, set())
