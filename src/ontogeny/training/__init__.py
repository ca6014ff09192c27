"""The one small training loop, and the recorded run of the demo.

What the papers train is in `ontogeny.reproduce.training`.

::

    train                       an optimiser's steps on batches, with callbacks (any model or loss)
    masked_language_modelling   random crops of a text, and the loss at their masked positions
    next_token_modelling        random crops of a text, and the loss of every next token
    demo_model                  a small EuroBERT
    record_training_run         all of it on texts, with checkpoints: a folder to study
"""

from __future__ import annotations

from typing import Any

from ..deprecation import moved_name
from .loop import TrainingLog, adamw_one_cycle, train
from .masked import MaskedBatch, MaskedLanguageModelling, masked_language_modelling
from .models import demo_model
from .next_token import NextTokenModelling, next_token_modelling
from .run import RunSettings, record_training_run

__all__ = [
    "MaskedBatch",
    "MaskedLanguageModelling",
    "NextTokenModelling",
    "RunSettings",
    "TrainingLog",
    "adamw_one_cycle",
    "demo_model",
    "masked_language_modelling",
    "next_token_modelling",
    "record_training_run",
    "train",
]

_MOVED = (
    "ContextTask",
    "DigitTask",
    "MarkerRun",
    "OptimizerSettings",
    "StackedModels",
    "context_model",
    "digit_network",
    "readout_loss",
    "record_logits",
    "record_marker_runs",
    "train_seeds",
)


def __getattr__(name: str) -> Any:
    return moved_name(name, _MOVED, __name__, "ontogeny.reproduce.training")
