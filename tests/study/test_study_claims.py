"""Claims: one holder at a time, and none of processes that have ended."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from ontogeny import machine
from ontogeny.study.folder import claims, frozen
from ontogeny.study.folder.claims import claimed, held, holder, sweep_claims
from ontogeny.study.folder.layout import claim_path, run_folder


def _leave(folder, task, **changes):
    """Leave the claim of another process behind."""
    with claimed(folder, task):
        path = claim_path(folder, task)
        content = path.read_text()
    for old, new in changes.values():
        content = content.replace(old, new)
    path.write_text(content)
    return path


def _elsewhere(folder, task):
    place = machine.writer().partition("-")[0]
    return _leave(folder, task, place=(place, "0" * 8))


def _ended(folder, task):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    writer = machine.writer()
    return _leave(
        folder, task, writer=(writer, f"{writer.partition('-')[0]}-{ended.pid}")
    )


def test_a_claim_is_held_by_one_and_free_afterwards(tmp_path):
    for _ in range(2):
        with claimed(tmp_path, "step 8") as ours:
            assert ours
            with (
                claimed(tmp_path, "step 8") as again,
                claimed(tmp_path, "step 9") as other,
            ):
                assert (again, other) == (False, True)
            said = holder(tmp_path, "step 8")
            assert said == f"process {os.getpid()} on {socket.gethostname()}"
        assert holder(tmp_path, "step 8") == ""
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_of_many_threads_one_holds_a_claim_at_a_time(tmp_path):
    inside, most, lock = 0, 0, threading.Lock()

    def work():
        nonlocal inside, most
        with held(tmp_path, "settings"):
            with lock:
                inside += 1
                most = max(most, inside)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)


def test_the_claim_of_an_ended_process_of_this_machine_is_taken_over_at_once(tmp_path):
    _ended(tmp_path, "step 8")
    assert holder(tmp_path, "step 8") == ""
    with claimed(tmp_path, "step 8") as ours:
        assert ours


def test_the_claim_of_another_machine_holds_until_it_is_not_touched_any_more(tmp_path):
    path = _elsewhere(tmp_path, "step 8")
    with claimed(tmp_path, "step 8") as ours:
        assert not ours and path.exists()
    long_ago = time.time() - 2 * claims._STALE
    os.utime(path, (long_ago, long_ago))
    with claimed(tmp_path, "step 8") as ours:
        assert ours


@pytest.mark.parametrize(
    "content",
    ['{"writer": 5}', '{"writer": "a-1", "identity": 5}', "[5]", "[" * 100_000],
)
def test_what_is_no_claim_holds_for_a_moment(tmp_path, content):
    path = claim_path(tmp_path, "run-a")
    path.parent.mkdir()
    path.write_text(content)
    with claimed(tmp_path, "run-a") as ours:
        assert not ours
    assert (
        frozen.conflict(claims.claims_of(tmp_path, "run-")[0].get("identity", {}), {})
        == []
    )
    a_while_ago = time.time() - 2 * claims._UNWRITTEN
    os.utime(path, (a_while_ago, a_while_ago))
    sweep_claims(tmp_path)
    assert not path.exists()


def test_a_claim_from_before_a_clock_was_set_back_holds_up_nobody(tmp_path):
    path = _elsewhere(tmp_path, "step 8")
    for hours, is_ours in ((0.1, False), (24, True)):
        ahead = time.time() + 3600 * hours
        os.utime(path, (ahead, ahead))
        with claimed(tmp_path, "step 8") as ours:
            assert ours is is_ours


def test_a_claim_that_was_never_written_holds_for_a_moment(tmp_path):
    path = claim_path(tmp_path, "step 8")
    path.parent.mkdir()
    path.touch()
    with claimed(tmp_path, "step 8") as ours:
        assert not ours
    assert holder(tmp_path, "step 8") == "process ? on another machine"
    a_while_ago = time.time() - 2 * claims._UNWRITTEN
    os.utime(path, (a_while_ago, a_while_ago))
    with claimed(tmp_path, "step 8") as ours:
        assert ours


def test_a_held_claim_is_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_BEAT", 0.01)
    with claimed(tmp_path, "step 8"):
        path = claim_path(tmp_path, "step 8")
        os.utime(path, (0, 0))
        end = time.monotonic() + 600
        while path.stat().st_mtime == 0 and time.monotonic() < end:
            time.sleep(0.01)
        assert time.time() - path.stat().st_mtime < 600


def test_whoever_was_thought_to_have_ended_leaves_the_claim_to_who_has_it_now(tmp_path):
    with ExitStack() as first:
        first.enter_context(claimed(tmp_path, "step 8"))
        path = claim_path(tmp_path, "step 8")
        os.utime(path, (0, 0))
        with claimed(tmp_path, "step 8") as ours:
            assert ours
            first.close()
            assert holder(tmp_path, "step 8")
    assert not path.exists()


def test_a_claim_that_was_just_taken_over_is_not_removed(tmp_path, monkeypatch):
    path = _ended(tmp_path, "step 8")
    ended = claims._read(path)
    with claimed(tmp_path, "step 8") as ours:
        assert ours
        # Another process that read the stale claim before comes to remove it only now.
        assert not claims._alive(ended)
        claims._remove_stale(path)
        assert holder(tmp_path, "step 8")


def test_a_claim_that_is_let_go_while_it_is_looked_at_is_taken_and_not_removed(
    tmp_path, monkeypatch
):
    path, read, removed = _elsewhere(tmp_path, "step 8"), claims._read, []

    def let_go(path):
        path.unlink(missing_ok=True)
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(claims, "_read", let_go)
        # By then it may be another one's.
        patched.setattr(claims, "_remove_stale", removed.append)
        assert claims._take(path, "token")
        sweep_claims(tmp_path)
    assert removed == []


def test_only_the_claims_of_ended_processes_are_swept(tmp_path):
    dead, elsewhere = _ended(tmp_path, "step 1"), _elsewhere(tmp_path, "step 2")
    with claimed(tmp_path, "step 3"):
        sweep_claims(tmp_path)
        left = sorted(p.name for p in dead.parent.iterdir())
        assert left == sorted([elsewhere.name, claim_path(tmp_path, "step 3").name])


def test_a_claim_that_a_killed_run_left_of_a_control_is_swept_by_the_next_run(tmp_path):
    # After its last cell there is no task any more that would take the claim over.
    folder = tmp_path / "s"
    with frozen.entered(folder, False, lambda _: ({}, {"title": "a"}), lambda _: {}):
        pass
    control = run_folder(folder, "turned 0")
    control.mkdir(parents=True)
    dead = _ended(control, "turned 0: step 1")
    with frozen.entered(folder, False, lambda _: ({}, {"title": "a"}), lambda _: {}):
        assert not dead.exists()


def test_an_error_in_the_work_frees_the_claim(tmp_path):
    with pytest.raises(ValueError, match="work"), claimed(tmp_path, "step 8"):
        raise ValueError("work")
    assert holder(tmp_path, "step 8") == ""
