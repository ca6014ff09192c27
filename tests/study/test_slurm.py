"""The ways of the cluster guide as real jobs; `examples/slurm/one_machine.sh` starts a SLURM.

They are skipped where no controller answers. Results are compared with those of one process.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.paths import GUIDES, TESTS
from helpers.slurm_study import assert_same, write_study
from ontogeny.study import read_study

GUIDE = (GUIDES / "slurm.md").read_text(encoding="utf-8")
LONG = 900  # seconds; nothing here takes them unless it hangs


def _running():
    if shutil.which("sbatch") is None:
        return False
    asked = subprocess.run(
        ["scontrol", "ping"], capture_output=True, text=True, check=False
    )
    return asked.returncode == 0 and "UP" in asked.stdout


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _running(), reason="no SLURM controller answers"),
]


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """A study file, and the folder of the study computed in one process."""
    path = write_study(tmp_path_factory.mktemp("slurm"))
    read_study(path).run(path.parent / "alone", progress=False)
    return path, path.parent / "alone"


@pytest.fixture
def jobs(monkeypatch):
    """Jobs find the library, the helpers and the command of this environment."""
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv(
        "PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def _wait_for(found):
    end = time.monotonic() + LONG
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return value


def _code(language):
    """Return the blocks of the guide in one language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def _submit(script):
    asked = subprocess.run(
        ["sbatch", "--parsable", str(script)],
        capture_output=True,
        text=True,
        cwd=script.parent,
    )
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.strip()


def _ended(job):
    asked = subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True)
    return asked.stdout.strip() == ""


def _at_work(claims):
    """Return an array task that holds a claim, stopped, with the id of its process."""
    for path in claims.glob("*.json"):
        try:
            process = json.loads(path.read_text())["process"]
            os.kill(process, signal.SIGSTOP)
            if json.loads(path.read_text())["process"] == process:
                variables = Path(f"/proc/{process}/environ").read_text().split("\0")
                found = dict(v.partition("=")[::2] for v in variables)
                return found["SLURM_ARRAY_TASK_ID"]
            os.kill(process, signal.SIGCONT)
        except (OSError, ValueError, KeyError):  # it has just ended
            continue
    return None


def test_a_job_array_of_which_one_task_is_cancelled_gives_the_same_bits(
    serial, jobs, tmp_path
):
    path, alone = serial
    (script,) = (block for block in _code("bash") if "#SBATCH --array" in block)
    script = (
        script.replace("1-16", "1-3")
        .replace("16G", "1G")
        .replace("study.toml", str(path))
    )
    array = tmp_path / "array.sh"
    array.write_text(script.replace("/shared/studies/ica", str(tmp_path / "s")))
    job = _submit(array)
    task = _wait_for(lambda: _at_work(tmp_path / "s" / ".claims"))
    subprocess.run(["scancel", f"{job}_{task}"], check=True)
    _wait_for(lambda: _ended(job))
    assert_same(tmp_path / "s", alone)
    again = _submit(array)
    _wait_for(lambda: _ended(again))
    assert_same(tmp_path / "s", alone)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Port .* is already in use",
)
def test_the_dask_cluster_of_the_guide_gives_the_same_bits(serial, jobs, tmp_path):
    pytest.importorskip("dask_jobqueue")
    path, alone = serial
    (code,) = (block for block in _code("python") if "SLURMCluster" in block)
    code = code.replace("/shared/studies/ica", str(tmp_path / "s")).replace(
        "16GB", "1GB"
    )
    code = code.replace("jobs=16", "jobs=2")
    names = {"study": read_study(path)}
    try:
        exec(code, names)
    finally:
        for name in ("client", "cluster"):
            if name in names:
                names[name].close()
    assert_same(tmp_path / "s", alone)


def test_the_submitit_executor_of_the_guide_gives_the_same_bits(
    serial, jobs, tmp_path, monkeypatch
):
    pytest.importorskip("submitit")
    path, alone = serial
    monkeypatch.chdir(tmp_path)
    (code,) = (block for block in _code("python") if "AutoExecutor" in block)
    code = code.replace("/shared/studies/ica", str(tmp_path / "s")).replace(
        "mem_gb=16", "mem_gb=1"
    )
    exec(code, {"study": read_study(path)})
    assert_same(tmp_path / "s", alone)
