# Written by .ci/stubs.py.
# ruff: noqa
from ._version import __version__ as __version__
from . import atlas as atlas
from . import capture as capture
from . import claims as claims
from . import comparison as comparison
from . import concepts as concepts
from . import describe as describe
from . import distances as distances
from . import dynamics as dynamics
from . import errors as errors
from . import figures as figures
from . import geometry as geometry
from . import inputs as inputs
from . import needs as needs
from . import observables as observables
from . import quantities as quantities
from . import recording as recording
from . import report as report
from . import semantics as semantics
from . import share as share
from . import study as study
from . import summary as summary
from . import tasks as tasks
from . import training as training
from . import trajectory as trajectory
from . import updates as updates
from .trajectory import Trajectory as Trajectory
from .trajectory import Checkpoint as Checkpoint
from .recording import Recorder as Recorder
from .recording import RecorderCallback as RecorderCallback
from .inputs import Inputs as Inputs
from .observables import Observable as Observable
from .observables import observable as observable
from .study import Study as Study
from .study import open_study as open_study
from .comparison import compare as compare

__all__ = [
    "__version__",
    "Trajectory",
    "Checkpoint",
    "Recorder",
    "RecorderCallback",
    "Inputs",
    "Observable",
    "observable",
    "Study",
    "open_study",
    "compare",
    "atlas",
    "capture",
    "claims",
    "comparison",
    "concepts",
    "describe",
    "distances",
    "dynamics",
    "errors",
    "figures",
    "geometry",
    "inputs",
    "needs",
    "observables",
    "quantities",
    "recording",
    "report",
    "semantics",
    "share",
    "study",
    "summary",
    "tasks",
    "training",
    "trajectory",
    "updates",
]
