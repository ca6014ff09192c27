"""Studies: observables mapped over a trajectory, resumable, stacked into one labelled result."""

from ..atlas import accessor as accessor  # registers result.concept

# Registers result.problems.
from ..problems.table import ProblemsAccessor as ProblemsAccessor
from .file import make_study, read_study
from .planning.plan import Plan
from .progress import Progress
from .results.opening import open_study
from .results.study_result import StudyResult
from .study import Study
from .watching import watch

__all__ = [
    "Plan",
    "Progress",
    "Study",
    "StudyResult",
    "make_study",
    "open_study",
    "read_study",
    "watch",
]
