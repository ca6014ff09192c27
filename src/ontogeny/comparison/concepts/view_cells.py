"""The view of one checkpoint as a cell in the folder of its run, computed as those of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...arrays import to_numpy
from ...concepts.joint.snapshots import standardised
from ...needs import Activations, Need
from ...study import Progress
from ...study.cells.graph import Context, Outcome, StudyCell
from ...study.folder.code import READING
from ...study.planning.parts import RunPart
from ...study.running.mapping import TaskRunner, Work
from ...study.running.run import Task, left_of

FOLDER = "shared-concepts"
VIEWS = (f"{__name__}:ViewCell.compute", *READING)  # what computes them


@dataclass(frozen=True, eq=False)
class ViewCell(StudyCell):
    """The activations of one checkpoint as the dictionary over all runs takes them.

    Parameters
    ----------
    need
        What is read.
    rows
        Which of its tokens; None means all.
    """

    need: Activations = field(kw_only=True)
    rows: np.ndarray | None = field(kw_only=True)
    observed: ClassVar[bool] = False
    phase: ClassVar[str] = "reading"

    def needs(self, by_name: Mapping[str, Any]) -> list[Need]:
        """Return the need."""
        return [self.need]

    def compute(self, context: Context) -> Outcome:
        """Return activations centred and scaled, in half precision, each value about 1."""
        layers = {}
        for i, (path, A) in enumerate(context.values[self.need].items()):
            values = to_numpy(A if self.rows is None else A[self.rows])
            X, _ = standardised(values, np.arange(len(values)))
            half_precision = (X * np.float32(np.sqrt(X.shape[1]))).astype(np.float16)
            layers[path] = ((f"token{i}", f"feature{i}"), half_precision)
        return Outcome(xr.Dataset(layers))


def compute(part: RunPart, cells: Iterable[StudyCell], progress: Progress) -> None:
    """Compute what is left of cells of a run, and say what went wrong."""
    tasks = [task_of(part, cell) for cell in cells]
    works = [Work(part.job, task) for task in tasks if left_of(part.job, task)]
    for _, done in TaskRunner(None, None, progress.note).run(works):
        for problem in done.problems:
            progress.note(problem)


def task_of(part: RunPart, cell: StudyCell) -> Task:
    """Return the task of one cell of a run."""
    step = cell.key if isinstance(cell.key, int) else None
    return Task(cell.label, part.trajectory, (cell,), step)
