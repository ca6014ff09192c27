"""A Dask cluster of several processes, of which one is killed and one paused."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import xarray as xr

from helpers.gated_study import process_at, study, wait_for
from helpers.study_examples import Counting, developing, record
from helpers.warm_process import warm_context

STEPS = (0, 1, 2, 4, 8, 16)


def _lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_worker_that_is_killed_and_one_that_is_paused_cost_no_bit(
    tmp_path, monkeypatch
):
    import dask
    from distributed import Client, LocalCluster, utils

    warm_context()
    monkeypatch.setattr(utils, "_forkserver_preload_set", True)
    trajectory = record(developing(STEPS), tmp_path / "run")
    chosen, progress = study(trajectory, tmp_path), Counting()

    def disturb():
        killed = process_at(tmp_path, 4)
        os.kill(killed, signal.SIGKILL)
        (tmp_path / "4.go").touch()
        paused = process_at(tmp_path, 8)
        os.kill(paused, signal.SIGSTOP)
        wait_for(lambda: not _lives(killed))
        assert "step 8" not in progress.labels
        (tmp_path / "8.go").touch()
        os.kill(paused, signal.SIGCONT)
        return killed != paused

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
    with cluster, Client(cluster) as client, ThreadPoolExecutor(1) as beside:
        disturbed = beside.submit(disturb)
        found = chosen.run(tmp_path / "s", client.get_executor(), progress)
        assert disturbed.result()
    assert sorted(progress.labels) == sorted(f"step {step}" for step in STEPS)
    expected = chosen.run(tmp_path / "alone", progress=False)
    xr.testing.assert_identical(
        found["gated"].to_dataset(), expected["gated"].to_dataset()
    )
