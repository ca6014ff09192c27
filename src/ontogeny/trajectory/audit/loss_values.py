"""Losses in the training log that are out of order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint import Checkpoint
from ..findings import Finding
from ..weights.states import trainer_state

_FEWEST = 5  # checkpoints with a loss
_WINDOW = 20  # logged values that are averaged before a checkpoint
_OUTLIER = 6.0  # times the median distance of a value from the middle of its neighbours
_SHARE = 0.1  # of the loss itself


def losses(folder: Path | None, checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield checkpoints at which the logged loss is far above those before and after.

    Read are ``training_log.json`` of our own training runs and ``trainer_state.json`` of the
    Trainer, in the run's folder or its last checkpoint.
    """
    steps, values = _at_checkpoints(
        _logged(folder, checkpoints), [c.step for c in checkpoints]
    )
    if len(steps) < _FEWEST:
        return
    bend = np.abs(np.convolve(values, [-0.5, 1.0, -0.5], mode="valid"))
    for k in range(1, len(values) - 1):
        low, value, high = values[k - 1 : k + 2]
        elsewhere = np.delete(
            bend, [j for j in (k - 2, k - 1, k) if 0 <= j < len(bend)]
        )
        usual = float(np.median(elsewhere)) if elsewhere.size else 0.0
        if value - max(low, high) > max(_OUTLIER * usual, _SHARE * abs(value)):
            text = (
                f"the logged loss at {{step}} {steps[k]} is {value:.3g}, well above those at "
                f"{{step}}s "
                f"{steps[k - 1]} ({low:.3g}) and {steps[k + 1]} ({high:.3g})"
            )
            yield Finding("loss", "suspected", (steps[k],), text)


def _logged(
    folder: Path | None, checkpoints: Sequence[Checkpoint]
) -> list[tuple[int, float]]:
    """Return the logged ``(step, loss)``, increasing, finite ones only."""
    folders = [folder] if folder is not None else []
    local = [c.path for c in checkpoints if c.path is not None and c.source is None]
    entries: list[tuple[Any, Any]] = []
    for place in [*folders, *local[-1:]]:
        history = trainer_state(place).get("log_history")
        history = history if isinstance(history, list) else []
        entries = [
            (e.get("step"), e.get("loss")) for e in history if isinstance(e, dict)
        ]
        entries = entries or _training_log(place)
        if entries:
            break
    losses = {
        int(step): float(loss)
        for step, loss in entries
        if isinstance(step, int) and isinstance(loss, int | float) and np.isfinite(loss)
    }
    return sorted(losses.items())


def _training_log(folder: Path) -> list[tuple[Any, Any]]:
    try:
        log = json.loads((folder / "training_log.json").read_text(encoding="utf-8"))
        return list(zip(log["step"], log["loss"], strict=True))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _at_checkpoints(
    logged: Sequence[tuple[int, float]], steps: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Return, for each checkpoint, the mean of the last losses since the checkpoint before."""
    with_loss = []
    values = []
    before = -1
    for step in steps:
        since = [loss for at, loss in logged if before < at <= step][-_WINDOW:]
        if since:
            with_loss.append(step)
            values.append(float(np.mean(since)))
        before = step
    return with_loss, values
