"""Studies: observables mapped over a trajectory, resumable, stacked into one labelled result."""

from __future__ import annotations

from .file import read_sources as read_sources
from .file import read_study as read_study
from .folder import StudyFolder as StudyFolder
from .folder import open_study as open_study
from .plan import Plan as Plan
from .progress import Progress as Progress
from .study import Study as Study

__all__ = ["Plan", "Progress", "Study", "StudyFolder", "open_study", "read_sources", "read_study"]
