"""Processes of the command share out the GPUs of the machine."""

import pytest

from helpers.worker_meeting import gpus_seen
from ontogeny.cli import main
from ontogeny.cli.executors import executor_for
from ontogeny.errors import ArgumentError


def _seen(folder, device, workers):
    with executor_for(workers, None, device) as executor:
        tasks = [executor.submit(gpus_seen, folder, workers) for _ in range(workers)]
        return sorted(task.result() for task in tasks)


def test_each_process_takes_the_next_gpu_and_they_are_shared_when_there_are_too_few(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-5,-1,7")
    assert _seen(tmp_path, "cuda", 3) == ["3", "3", "GPU-5"]


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_named_device_and_the_cpu_are_left_as_they_are(device, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert _seen(tmp_path, device, 2) == ["3,5", "3,5"]


def test_a_single_gpu_is_shared(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4")
    assert _seen(tmp_path, "cuda", 2) == ["4", "4"]


def test_processes_and_a_scheduler_are_not_given_together():
    with (
        pytest.raises(ArgumentError, match="give one of"),
        executor_for(2, "tcp://127.0.0.1:1", "cpu"),
    ):
        pass


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_watching_computes_on_the_device_of_the_study(device, tmp_path, monkeypatch):
    asked = []

    def executor(workers, scheduler, device, installed):
        asked.append(device)
        raise ArgumentError("enough.")

    monkeypatch.setattr("ontogeny.cli.executors.executor_for", executor)
    study = tmp_path / "study.toml"
    study.write_text(f'[trajectory]\nfolder = "runs"\n[options]\ndevice = "{device}"\n')
    with pytest.raises(SystemExit):
        main(["run", str(study), "--watch", "60"])
    assert asked == [device]


def test_a_device_that_is_not_there_is_refused_before_watching(tmp_path, capsys):
    study = tmp_path / "study.toml"
    study.write_text('[options]\ndevice = "gpu"\n')
    with pytest.raises(SystemExit):
        main(["run", str(study), "--watch", "60"])
    said = capsys.readouterr().err
    assert "device must be 'auto' or one that is here: cpu" in said
    assert "got 'gpu'" in said and said.count("\n") == 1
