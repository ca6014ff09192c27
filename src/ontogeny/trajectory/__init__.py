"""Which checkpoints: a training run as an ordered, audited set of models.

`Trajectory` opens the checkpoints of a run, `Recorder` and `RecorderCallback` write them while a
model trains. Weights are read from safetensors, or from pickled files with ``weights_only=True``;
code that comes with a checkpoint never runs unless it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .checkpoint import Checkpoint
from .download import download, missing_bytes
from .findings import Finding, Findings
from .hub.names import UnknownRevisionError
from .hub.revision import NotDownloadedError
from .loading import load_model
from .prefetch import Prefetch
from .recorder.recorder import Recorder
from .retained import retain, retained
from .skeleton import Skeleton
from .tokenizers import named_tokenizer
from .trajectory import Trajectory, UnknownStepError
from .weights.files import Reader

if TYPE_CHECKING:
    from .recorder.callback import RecorderCallback

__all__ = [
    "Checkpoint",
    "Finding",
    "Findings",
    "NotDownloadedError",
    "Prefetch",
    "Reader",
    "Recorder",
    "RecorderCallback",
    "Skeleton",
    "Trajectory",
    "UnknownRevisionError",
    "UnknownStepError",
    "download",
    "load_model",
    "missing_bytes",
    "named_tokenizer",
    "retain",
    "retained",
]


def __getattr__(name: str) -> Any:
    if name == "RecorderCallback":  # subclasses transformers' TrainerCallback, slow to import
        from .recorder.callback import RecorderCallback

        return RecorderCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
