"""Ctrl-C with worker processes, by real signals to the process group as a terminal sends them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.paths import environment

LIMIT = 600  # seconds; only what hangs takes so long, on any machine
POSIX = pytest.mark.skipif(os.name != "posix", reason="sends signals as POSIX has them")
PROGRAM = """
import sys, time
from pathlib import Path
from ontogeny.cli.executors import executor_for

def work(folder, number, seconds):
    Path(folder, f"begun-{number}").touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not Path(folder, "go").exists():
        time.sleep(0.05)
    Path(folder, f"done-{number}").touch()

if __name__ == "__main__":
    with executor_for(2, None) as pool:
        futures = [pool.submit(work, sys.argv[1], n, 600) for n in range(6)]
        for future in futures:
            future.result()
"""


def wait_for(condition):
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < LIMIT
        time.sleep(0.05)


@pytest.fixture
def working(tmp_path):
    """A process with two workers that are at work, in a process group of its own."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [
            sys.executable,
            str(program),
            str(tmp_path),
            b"\xff",
        ],  # no UTF-8, as names of files may be
        env=environment(),
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for(
        lambda: len(list(tmp_path.glob("begun-*"))) >= 2 or process.poll() is not None
    )
    yield process
    if not is_over(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def is_over(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def interrupt(process):
    os.killpg(process.pid, signal.SIGINT)
    said = b""
    while b"Ctrl-C again" not in said:  # said at once, while the workers still work
        line = process.stderr.readline()
        assert line, said
        said += line


@POSIX
def test_once_finishes_what_is_under_way_and_begins_nothing_more(working, tmp_path):
    interrupt(working)
    assert not list(tmp_path.glob("done-*"))
    (tmp_path / "go").touch()
    working.stderr.read()
    assert working.wait(LIMIT) != 0
    begun = {path.name[-1] for path in tmp_path.glob("begun-*")}
    assert {path.name[-1] for path in tmp_path.glob("done-*")} == begun
    wait_for(lambda: is_over(working.pid))


@POSIX
def test_twice_ends_at_once_with_no_process_left(working, tmp_path):
    interrupt(working)
    os.killpg(working.pid, signal.SIGINT)
    assert working.wait(LIMIT) == 130
    wait_for(lambda: is_over(working.pid))
    last = working.stderr.read().decode().strip()  # nothing of Python's own after it
    again = f"To go on: ontogeny {tmp_path} '\\udcff'"
    assert last == f"ontogeny: stopped; what is finished is kept. {again}"
    assert not list(tmp_path.glob("done-*"))


@POSIX
def test_workers_end_with_a_parent_that_is_killed(working, tmp_path):
    os.kill(working.pid, signal.SIGKILL)
    working.wait(LIMIT)
    wait_for(lambda: is_over(working.pid))
    assert not list(tmp_path.glob("done-*"))
