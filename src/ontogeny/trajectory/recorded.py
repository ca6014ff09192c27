"""Losses that a run wrote down itself, beside its checkpoints: what it says that it reached."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError
from .checkpoint import Checkpoint
from .weights.pickled import held
from .weights.states import TRAINER_STATE, trainer_state

VALIDATION = "validation"
TRAINING = "training"
TRAINING_LOG = "training_log.json"
WINDOW = 20  # training losses of single batches that are averaged before a checkpoint
# Under which keys training loops save a loss beside the weights.
_KEYS = {
    VALIDATION: (
        "val_loss",
        "valid_loss",
        "validation_loss",
        "eval_loss",
        "test_loss",
        "val_losses",
        "test_losses",
    ),
    TRAINING: ("train_loss", "training_loss", "loss", "train_losses"),
}
# Of nanoGPT: the lowest so far, which is that of the checkpoint where it has just fallen.
_BEST = "best_val_loss"
# nanoGPT prints "step 250: train loss 1.9690, val loss 2.0529".
_PRINTED = re.compile(
    r"step (\d+): train loss ([0-9.]+(?:e-?\d+)?), val loss ([0-9.]+(?:e-?\d+)?)"
)
_LOGS = ("*.log", "*.txt", "*.out")
_MOST_BYTES = 20_000_000  # of a log; a larger one is none

Entries = list[tuple[int, float]]


@dataclass(frozen=True)
class RecordedLosses:
    """Losses that a run wrote down, at some of its checkpoints.

    Attributes
    ----------
    steps
        The checkpoints, increasing.
    losses
        One for each of them, in nats per token. Of training losses the mean of the last 20 batches
        since the checkpoint before.
    of
        ``"validation"`` or ``"training"``: the texts that they are of.
    where
        What they stand in, such as ``"trainer_state.json"``.
    """

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    of: str
    where: str

    @property
    def pairs(self) -> tuple[tuple[int, float], ...]:
        """Each step with its loss, of six digits."""
        losses = (float(f"{loss:.6g}") for loss in self.losses)
        return tuple(zip(self.steps, losses, strict=True))

    @property
    def line(self) -> str:
        """What is found, before a study starts."""
        return (
            f"the run recorded {self.of} losses at {len(self.steps)} of them ({self.where}): a "
            "dashed line beside the loss"
        )


def recorded_losses(
    folder: Path | None, checkpoints: Sequence[Checkpoint], unit: str = "step"
) -> RecordedLosses | None:
    """Return the losses that a run wrote down, those of validation before those of training.

    Read are the Trainer's ``trainer_state.json``, ``training_log.json``, what nanoGPT prints, where
    it lies in a ``.log``, ``.txt`` or ``.out`` file of the run's folder, and numbers that were saved
    beside the weights, such as ``val_loss``.

    Parameters
    ----------
    folder
        Of the run.
    checkpoints
        In their order.
    unit
        What they count. Logs count steps; of others only what each file holds itself is taken.
    """
    steps = [checkpoint.step for checkpoint in checkpoints]
    logs = _logs(folder, checkpoints) if unit == "step" else []
    for of in (VALIDATION, TRAINING):
        for where, read in logs:
            entries = read(of)
            found = (
                at_checkpoints(entries, steps)
                if of == TRAINING
                else _exactly(entries, steps)
            )
            if found[0]:
                return RecordedLosses(tuple(found[0]), tuple(found[1]), of, where)
        if beside := _beside_weights(checkpoints, of):
            return beside
    return None


def training_losses(folder: Path | None, checkpoints: Sequence[Checkpoint]) -> Entries:
    """Return the ``(step, loss)`` of a training log, increasing, finite ones only."""
    for _, read in _logs(folder, checkpoints):
        if entries := read(TRAINING):
            return entries
    return []


def at_checkpoints(
    logged: Entries, steps: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Return, for each checkpoint, the mean of the last losses since the checkpoint before.

    Examples
    --------
    >>> at_checkpoints([(5, 3.0), (10, 2.0), (20, 1.0)], [0, 10, 20])
    ([10, 20], [2.5, 1.0])
    """
    with_loss = []
    values = []
    before = -1
    for step in steps:
        since = [loss for at, loss in logged if before < at <= step][-WINDOW:]
        if since:
            with_loss.append(step)
            values.append(float(np.mean(since)))
        before = step
    return with_loss, values


def _exactly(logged: Entries, steps: Sequence[int]) -> tuple[list[int], list[float]]:
    by_step = dict(logged)
    shared = [step for step in steps if step in by_step]
    return shared, [by_step[step] for step in shared]


def _logs(
    folder: Path | None, checkpoints: Sequence[Checkpoint]
) -> list[tuple[str, Callable[[str], Entries]]]:
    """Return the logs of a run by their names, each with what reads one of both losses of it."""
    folders = [] if folder is None else [folder]
    local = [c.path for c in checkpoints if c.path is not None and c.source is None]
    logs: list[tuple[str, Callable[[str], Entries]]] = []
    for place in [*folders, *local[-1:]]:
        logs.append((TRAINER_STATE, partial(_of_trainer, place)))
        logs.append((TRAINING_LOG, partial(_of_log, place)))
    logs += [(path.name, partial(_printed, path)) for path in _printed_in(folder)]
    return logs


def _of_trainer(folder: Path, of: str) -> Entries:
    history = trainer_state(folder).get("log_history")
    key = "loss" if of == TRAINING else "eval_loss"
    entries = history if isinstance(history, list) else []
    return _finite((e.get("step"), e.get(key)) for e in entries if isinstance(e, dict))


def _of_log(folder: Path, of: str) -> Entries:
    key = "loss" if of == TRAINING else "val_loss"
    try:
        log = json.loads((folder / TRAINING_LOG).read_text(encoding="utf-8"))
        return _finite(zip(log["step"], log[key], strict=True))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _printed_in(folder: Path | None) -> list[Path]:
    if folder is None or not folder.is_dir():
        return []
    files = sorted(set(chain.from_iterable(map(folder.glob, _LOGS))))
    return [
        path for path in files if path.is_file() and path.stat().st_size <= _MOST_BYTES
    ]


def _printed(path: Path, of: str) -> Entries:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    which = 2 if of == TRAINING else 3
    found = _PRINTED.finditer(text)
    return _finite((int(match[1]), float(match[which])) for match in found)


def _finite(entries: Any) -> Entries:
    """Return entries that are a step and a finite loss, the last of each step, increasing."""
    losses = {
        int(step): float(loss)
        for step, loss in entries
        if isinstance(step, int) and isinstance(loss, int | float) and np.isfinite(loss)
    }
    return sorted(losses.items())


def _beside_weights(
    checkpoints: Sequence[Checkpoint], of: str
) -> RecordedLosses | None:
    """Return losses saved in the files of the checkpoints, under one key in all of them."""
    keys = (*_KEYS[of], *([_BEST] if of == VALIDATION else []))
    found = [(c.step, values) for c in checkpoints if (values := _held(c, keys))]
    for key in keys:
        entries = [(step, values[key]) for step, values in found if key in values]
        if key == _BEST:
            entries = list(_fallen(entries))
        if len(entries) > 1 or (entries and len(checkpoints) == 1):
            steps, losses = zip(*entries, strict=True)
            return RecordedLosses(steps, losses, of, key)
    return None


def _held(checkpoint: Checkpoint, keys: Sequence[str]) -> dict[str, float]:
    path = checkpoint.path
    if path is None or not path.is_file():
        return {}
    try:
        values = held(path, keys)
    except CheckpointError:  # said when its weights are read
        return {}
    numbers = {key: _number(value) for key, value in values.items()}
    return {key: value for key, value in numbers.items() if value is not None}


def _number(value: Any) -> float | None:
    """Return a finite number, also one in a tensor; of a list of all so far the last."""
    if isinstance(value, list | tuple) and value:
        value = value[-1]
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if np.isfinite(number) else None


def _fallen(entries: Entries) -> Iterator[tuple[int, float]]:
    """Give the entries that are lower than all before."""
    lowest = np.inf
    for step, loss in entries:
        if loss < lowest:
            lowest = loss
            yield step, loss
