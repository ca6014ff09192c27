"""The networks of the papers, and how they are trained and recorded.

::

    train_seeds          many seeds of one training, recorded, resumable
    record_marker_runs   that on the marker task (MarkerRun holds the settings)
    record_logits        a network's logits while it learns a ContextTask, a DigitTask
                         or a RunningTask
"""

from .contexts import ContextTask, context_model, record_logits, spaced_steps
from .digits import DigitTask, digit_network
from .marker_run import MarkerRun, readout_loss, record_marker_runs
from .running import RunningTask, rows_of
from .seeds import train_seeds
from .stacked import OptimizerSettings, StackedModels

__all__ = [
    "ContextTask",
    "DigitTask",
    "MarkerRun",
    "OptimizerSettings",
    "RunningTask",
    "StackedModels",
    "context_model",
    "digit_network",
    "readout_loss",
    "record_logits",
    "record_marker_runs",
    "rows_of",
    "spaced_steps",
    "train_seeds",
]
