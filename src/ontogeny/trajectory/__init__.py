"""Which checkpoints: a training run as an ordered, audited set of models.

`Trajectory` opens the checkpoints of a run. Weights are read from safetensors, or from pickled
files inertly; code that comes with a checkpoint never runs unless it is asked for. What writes
checkpoints while a model trains is in `ontogeny.recording`.
"""

from .checkpoint import Checkpoint
from .downloading import download
from .findings import Findings
from .hub.names import UnknownRevisionError
from .hub.revision import NotDownloadedError
from .prefetch import Prefetch
from .retention import retain, retained
from .trajectory import Trajectory, UnknownStepError

__all__ = [
    "Checkpoint",
    "Findings",
    "NotDownloadedError",
    "Prefetch",
    "Trajectory",
    "UnknownRevisionError",
    "UnknownStepError",
    "download",
    "retain",
    "retained",
]
