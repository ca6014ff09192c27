"""Studies: observables mapped over a trajectory, resumable, stacked into one labelled result."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..atlas import accessor as accessor  # registers result.concept

# Registers result.problems.
from ..problems.table import ProblemsAccessor as ProblemsAccessor

if TYPE_CHECKING:
    from .file import make_study as make_study
    from .file import read_study as read_study
    from .planning.plan import Plan as Plan
    from .progress import Progress as Progress
    from .results.opening import open_study as open_study
    from .results.study_result import StudyResult as StudyResult
    from .study import Study as Study
    from .watching import watch as watch

# What is finished is opened without PyTorch, which takes a second to load.
_HOMES = {
    "Plan": "planning.plan",
    "Progress": "progress",
    "Study": "study",
    "StudyResult": "results.study_result",
    "make_study": "file",
    "open_study": "results.opening",
    "read_study": "file",
    "watch": "watching",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ontogeny.study' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
