"""Where observed numbers go: JSON lines beside the checkpoints, and loggers.

A logger is a function ``log(metrics, step)``, with metrics as ``{name: number}``. Those below
send to what is installed; none of it is a dependency of ontogeny.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ArgumentError, CheckpointError

if TYPE_CHECKING:
    import pandas as pd

Log: TypeAlias = Callable[[Mapping[str, float], int], object]

_NOT_IN_MLFLOW = re.compile(r"[^0-9A-Za-z_\-. :/]")
OBSERVED = "observed.jsonl"


def as_logs(log: Any) -> tuple[Log, ...]:
    """Return the loggers that an argument names: none, one or several.

    Raises
    ------
    ArgumentError
        If one is no function.
    """
    if log is None:
        return ()
    logs = tuple(log) if isinstance(log, Iterable) else (log,)
    for target in logs:
        if not callable(target):
            raise ArgumentError(
                f"log must be a function of (metrics, step), or several; got "
                f"{type(target).__name__}. ontogeny.recording has some: to_trainer(trainer), "
                "to_tensorboard(writer), to_wandb(run), to_mlflow()."
            )
    return logs


def to_trainer(trainer: Any) -> Log:
    """Send to the loggers of transformers' Trainer, whatever its ``report_to`` names.

    Examples
    --------
    >>> class Trainer:
    ...     def __init__(self):
    ...         self.control = type("Control", (), {"should_log": True})()
    ...
    ...     def log(self, logs):
    ...         print(logs)
    >>> to_trainer(Trainer())({"observed/loss": 3.5}, 10)
    {'observed/loss': 3.5}
    """

    def log(metrics: Mapping[str, float], step: int) -> None:
        due = trainer.control.should_log
        trainer.log(dict(metrics))
        # Which logging resets: the Trainer's own is still to come.
        trainer.control.should_log = due

    return log


def to_history(state: Any) -> Log:
    """Send to the history of transformers' Trainer, which its callbacks are handed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> state = SimpleNamespace(epoch=0.5, log_history=[])
    >>> to_history(state)({"observed/loss": 3.5}, 10)
    >>> state.log_history
    [{'observed/loss': 3.5, 'epoch': 0.5, 'step': 10}]
    """

    def log(metrics: Mapping[str, float], step: int) -> None:
        state.log_history.append({**metrics, "epoch": state.epoch, "step": step})

    return log


def to_tensorboard(writer: Any) -> Log:
    """Send to a TensorBoard ``SummaryWriter``.

    Examples
    --------
    >>> class Writer:
    ...     def add_scalar(self, name, value, step):
    ...         print(name, value, step)
    >>> to_tensorboard(Writer())({"observed/loss": 3.5}, 10)
    observed/loss 3.5 10
    """

    def log(metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)

    return log


def to_wandb(run: Any = None) -> Log:
    """Send to a Weights & Biases run, by default the one that is active when something is sent.

    Curves are drawn over ``observed/step``, so that the steps that the run counts itself are left
    alone.
    """
    calls: list[bool] = []

    def log(metrics: Mapping[str, float], step: int) -> None:
        import wandb  # type: ignore[import-not-found, unused-ignore]

        target = run or wandb.run
        if target is None:
            raise ArgumentError(
                "no Weights & Biases run is active; call wandb.init first."
            )
        if not calls:
            target.define_metric("observed/*", step_metric="observed/step")
            calls.append(True)
        target.log({**metrics, "observed/step": step})

    return log


def to_mlflow() -> Log:
    """Send to the active MLflow run; characters that MLflow forbids in names become ``_``."""

    def log(metrics: Mapping[str, float], step: int) -> None:
        import mlflow  # type: ignore[import-not-found, unused-ignore]

        mlflow.log_metrics(
            {_NOT_IN_MLFLOW.sub("_", n): v for n, v in metrics.items()}, step=step
        )

    return log


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add one line to the record; one that an interrupted process left half-written is cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(entry, allow_nan=False) + "\n"
    with path.open("ab+") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())


def read_observed(folder: str | Path) -> pd.DataFrame:
    """Return what was observed while a run was recorded, as a tidy table.

    Parameters
    ----------
    folder
        The recorder's folder.

    Returns
    -------
    pandas.DataFrame
        Columns ``step``, ``name`` and ``value``; of a step that was observed twice, the last. What
        was observed after a step at which the run was resumed is left out.

    Raises
    ------
    CheckpointError
        If nothing was observed there.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> append(folder / OBSERVED, {"step": 0, "metrics": {"observed/loss": 3.5}})
    >>> read_observed(folder)
       step           name  value
    0     0  observed/loss    3.5
    """
    import pandas as pd

    path = Path(folder) / OBSERVED
    if not path.is_file():
        raise CheckpointError(
            f"{folder} has no {OBSERVED}: nothing was observed while it trained."
        )
    values = {}
    for entry in standing(path):
        for name, value in entry.get("metrics", {}).items():
            values[entry["step"], name] = value
    rows = [(step, name, value) for (step, name), value in sorted(values.items())]
    return pd.DataFrame(rows, columns=["step", "name", "value"])


def standing(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a record without those that a run left behind when it went back.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / OBSERVED
    >>> for entry in (
    ...     {"step": 5},
    ...     {"step": 9},
    ...     {"step": 5, "resumed": True},
    ...     {"step": 7},
    ... ):
    ...     append(path, entry)
    >>> [entry["step"] for entry in standing(path)]
    [5, 5, 7]
    """
    kept: list[dict[str, Any]] = []
    for entry in entries(path):
        if entry.get("resumed"):
            kept = [before for before in kept if before["step"] <= entry["step"]]
        kept.append(entry)
    return kept


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the entries of a record; a half-written line is left out."""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            yield entry
