"""Recording that also observes: cheap numbers of a model while it trains, sent to any logger.

`Recorder` and `RecorderCallback` write checkpoints as those of `ontogeny.trajectory` do. With
``observe=`` they also measure the live model, bit for bit without changing the training, within a
budget of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .loggers import to_mlflow, to_tensorboard, to_trainer, to_wandb
from .observed import read_observed
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


def __getattr__(name: str) -> Any:
    if name == "RecorderCallback":  # subclasses transformers' TrainerCallback, slow to import
        from .callback import RecorderCallback

        return RecorderCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
