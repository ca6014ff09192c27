"""Which checkpoints: a training run as an ordered, audited set of models.

`Trajectory` opens the checkpoints of a run, `Recorder` and `RecorderCallback` write them while a
model trains. Weights are read from safetensors, or from pickled files with ``weights_only=True``;
code that comes with a checkpoint never runs unless it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .checkpoint import Checkpoint
from .downloading import download
from .findings import Findings
from .hub.names import UnknownRevisionError
from .hub.revision import NotDownloadedError
from .prefetch import Prefetch
from .recorder.recorder import Recorder
from .retention import retain, retained
from .trajectory import Trajectory, UnknownStepError

if TYPE_CHECKING:
    from .recorder.callback import RecorderCallback

__all__ = [
    "Checkpoint",
    "Findings",
    "NotDownloadedError",
    "Prefetch",
    "Recorder",
    "RecorderCallback",
    "Trajectory",
    "UnknownRevisionError",
    "UnknownStepError",
    "download",
    "retain",
    "retained",
]


def __getattr__(name: str) -> Any:
    if name == "RecorderCallback":  # subclasses transformers' TrainerCallback, slow to import
        from .recorder.callback import RecorderCallback

        return RecorderCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
