"""TensorBoard, Weights & Biases and MLflow, offline as they really are, where installed."""

import time

import pytest

from ontogeny.recording import to_mlflow, to_tensorboard, to_wandb

LIMIT = 300  # seconds; only what hangs takes so long, on any machine
METRICS = [
    {"observed/loss": 3.5, "observed/entropy/layers[0]": 1.25},
    {"observed/loss": 3.0},
]


def test_tensorboard_writes_them(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        log = to_tensorboard(writer)
        log(METRICS[0], 10)
        log(METRICS[1], 20)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("observed/loss")] == [
        (10, 3.5),
        (20, 3.0),
    ]
    assert events.Scalars("observed/entropy/layers[0]")[0].value == 1.25


@pytest.mark.filterwarnings("ignore")  # of a library that is no dependency
def test_wandb_keeps_them_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    log = to_wandb()
    with wandb.init(project="test", dir=str(tmp_path)) as run:
        run.log({"loss": 1.0})  # its own steps are left alone
        log(METRICS[0], 10)
        run.log({"loss": 0.5})
        log(METRICS[1], 20)
        summary = dict(run.summary)
    assert summary["observed/loss"] == 3.0 and summary["observed/step"] == 20
    assert summary["loss"] == 0.5
    (stored,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    begin = time.monotonic()
    # Another process of theirs writes it.
    while b"observed/loss" not in stored.read_bytes():
        assert time.monotonic() - begin < LIMIT
        time.sleep(0.05)


def test_without_an_active_run_wandb_is_refused():
    pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    with pytest.raises(ValueError, match=r"call wandb\.init first"):
        to_wandb()(METRICS[0], 10)


@pytest.mark.filterwarnings("ignore")  # of a library that is no dependency
def test_mlflow_stores_them(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    log = to_mlflow()
    with mlflow.start_run() as run:
        log(METRICS[0], 10)
        log(METRICS[1], 20)
    client = mlflow.MlflowClient()
    history = client.get_metric_history(run.info.run_id, "observed/loss")
    assert [(m.step, m.value) for m in history] == [(10, 3.5), (20, 3.0)]
    (entropy,) = client.get_metric_history(
        run.info.run_id, "observed/entropy/layers_0_"
    )
    assert entropy.value == 1.25
