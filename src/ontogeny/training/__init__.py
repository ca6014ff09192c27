"""The one small training loop, its tasks, and the recorded runs of demo and reproductions.

::

    train                       an optimiser's steps on batches, with callbacks (any model or loss)
    masked_language_modelling   random crops of a text, and the loss at their masked positions
    next_token_modelling        random crops of a text, and the loss of every next token
    demo_model                  a small EuroBERT
    record_training_run         all of it on texts, with checkpoints: a folder to study
    train_seeds                 many seeds of one training, recorded, resumable
    record_marker_runs          that on the marker task (MarkerRun holds the settings)
    record_logits               a network's logits while it learns a ContextTask or a DigitTask
"""

from __future__ import annotations

from .contexts import ContextTask, context_model, record_logits
from .digits import DigitTask, digit_network
from .loop import TrainingLog, adamw_one_cycle, train
from .marker_run import MarkerRun, readout_loss, record_marker_runs
from .masked import MaskedBatch, MaskedLanguageModelling, masked_language_modelling
from .models import demo_model
from .next_token import NextTokenModelling, next_token_modelling
from .run import RunSettings, record_training_run
from .seeds import train_seeds
from .stacked import OptimizerSettings, StackedModels

__all__ = [
    "ContextTask",
    "DigitTask",
    "MarkerRun",
    "MaskedBatch",
    "MaskedLanguageModelling",
    "NextTokenModelling",
    "OptimizerSettings",
    "RunSettings",
    "StackedModels",
    "TrainingLog",
    "adamw_one_cycle",
    "context_model",
    "demo_model",
    "digit_network",
    "masked_language_modelling",
    "next_token_modelling",
    "readout_loss",
    "record_logits",
    "record_marker_runs",
    "record_training_run",
    "train",
    "train_seeds",
]
