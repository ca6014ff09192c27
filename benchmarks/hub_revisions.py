"""Study many Hub revisions on a small disk, killed and resumed; see `benchmarks/README.md`.

Run it as ``PYTHONPATH=src:tests python benchmarks/hub_revisions.py [REVISIONS] [PROCESSES]``. A
stand-in server on this machine gives REVISIONS (120) revisions of a small model. A study with
``max_revisions=1`` is killed when half of its steps are computed, and gone on with by PROCESSES (1)
processes in one folder. Whenever weights are asked for, the server looks what else lies on disk.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import xarray as xr

from helpers.hub_counted import CountedHub, snapshots, suite
from helpers.hub_study import study
from helpers.paths import environment, script


def main(count: int = 120, processes: int = 1) -> None:
    """Print what was counted, and whether the numbers are those of a run that keeps everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared = folder / "caches"
        (folder / "model").mkdir()
        with CountedHub(suite(range(count), folder / "model"), shared) as hub:
            # Two cells a step.
            killed = _command(hub.url, shared / "0", folder / "s", str(count))
            assert (
                subprocess.run(killed, env=environment()).returncode == -signal.SIGKILL
            )
            assert len(snapshots(shared)) <= 1
            print(
                f"killed: {len(list((folder / 's').rglob('cells/*/*')))} cells are kept"
            )
            before = hub.downloads.total()
            begin = time.perf_counter()
            spent = sum(os.times()[2:4])
            commands = [
                _command(hub.url, shared / str(k), folder / "s")
                for k in range(processes)
            ]
            started = [
                subprocess.Popen(command, env=environment()) for command in commands
            ]
            assert [process.wait() for process in started] == [0] * processes
            seconds = time.perf_counter() - begin
            spent = sum(os.times()[2:4]) - spent
            again = hub.downloads.total() - before
            print(f"resumed by {processes} processes: {again} downloads")
            print(f"that took {seconds:.0f} s, and {spent:.0f} s of processor time")
            print(f"downloads a revision: {hub.downloads.total() / count:.3f}")
            print(
                f"other revisions on disk when one was asked for: at most {hub.beside}"
            )
            print(
                f"requests: {dict(hub.calls)}; left on disk: {len(snapshots(shared))}"
            )
            study(hub.url, folder / "whole").run(folder / "expected", progress=False)
        one = _result(folder / "s")
        other = _result(folder / "expected")
        assert one.keys() == other.keys()
        print(
            f"the same bits: {all(one[name].identical(other[name]) for name in other)}"
        )


def _command(url: str, cache: Path, out: Path, *kill: str) -> list[str]:
    return [
        sys.executable,
        script("hub_study.py"),
        url,
        str(cache),
        str(out),
        "1",
        *kill,
    ]


def _result(folder: Path) -> dict[str, xr.Dataset]:
    tree = xr.open_datatree(folder / "result.zarr", engine="zarr")
    return {name: node.to_dataset() for name, node in tree.children.items()}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
