"""Checkpoints that a training loop or transformers' Trainer writes, and numbers while it trains.

`Recorder` and `RecorderCallback` write checkpoints. With ``observe=`` they also measure the live
model, bit for bit without changing the training, within a budget of its time, and send the numbers
to any logger.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .loggers import read_observed, to_mlflow, to_tensorboard, to_trainer, to_wandb
from .recorder import Recorder

if TYPE_CHECKING:
    from .callback import RecorderCallback

__all__ = [
    "Recorder",
    "RecorderCallback",
    "read_observed",
    "to_mlflow",
    "to_tensorboard",
    "to_trainer",
    "to_wandb",
]


_SLOW = {
    "RecorderCallback": "callback",  # subclasses transformers' TrainerCallback
    "Observer": "observer",  # takes observables and what studies compute with
}


def __getattr__(name: str) -> Any:
    if name in _SLOW:
        return getattr(importlib.import_module(f".{_SLOW[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
