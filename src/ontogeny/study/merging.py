"""The result of a run: opened where it is whole, and else put together of what was computed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from .. import activity
from ..words.formats import plural
from .cells.environment import environment
from .folder.claims import claimed, claims_of, held
from .folder.frozen import AT_END, AT_WORK
from .folder.layout import result_path
from .planning.parts import RunPart
from .progress import Progress
from .results.checksums import root_attributes
from .results.finished import is_finished, is_whole, mark_of, note_finished
from .results.result import READ_OTHERWISE, Stated, described, merged
from .results.study_result import StudyResult
from .running.schedule import drop_references
from .speaking import say_environments, say_problems


@dataclass(frozen=True)
class Merging:
    """A run of a study into its folder, seen from its end.

    Attributes
    ----------
    folder
        Of the study.
    parts
        The run that is studied, and its control runs.
    stated
        What the study was given.
    audited
        Stamps of the files of its checkpoints, before they were read.
    progress
        Receives what is said.
    """

    folder: Path
    parts: Sequence[RunPart]
    stated: Stated
    audited: Sequence[Any]
    progress: Progress

    @property
    def is_finished(self) -> bool:
        """Whether the folder holds the whole result of this run."""
        return is_finished(self.folder, self._mark)

    def opened(self) -> StudyResult:
        """Return the result that the folder holds."""
        # Its attributes alone are read: it is opened by what is asked of it.
        self._say_audit(root_attributes(result_path(self.folder)))
        return StudyResult(self.folder, is_whole=True)

    def say_nothing_to_do(self) -> None:
        """Say how many cells are there."""
        cells = chain.from_iterable(part.graph.cells() for part in self.parts)
        count = sum(cell.observed for cell in cells)
        self.progress.start(0, 0)  # an object of a user's counts on it
        self.progress.note(f"nothing to do: {plural(count, 'cell')} are there")
        self.progress.finish()

    def result(self, problems: Sequence[str], elsewhere: Sequence[str]) -> StudyResult:
        """Put the result together; of the tasks of a job array, which all end so, one does it.

        Parameters
        ----------
        problems
            What went wrong, one line each.
        elsewhere
            Which of its cells were computed in another environment.
        """
        activity.now("putting the result together")
        folder = self.folder
        claim = f"{AT_END}{uuid.uuid4().hex}"
        with claimed(folder, claim), held(folder, "merging"):
            whole = not problems and self.is_finished
            if whole:
                result = StudyResult(folder)
            else:
                tree = merged(folder, self.parts, self.stated, problems)
                result = StudyResult(tree)
                self._say_audit(tree.attrs)
                say_problems(tree)
                say_environments(tree)
                here = environment(self.parts[0].job.settings.device)
                whole = not (problems or elsewhere) and is_whole(tree, here)
            at_work = len(claims_of(folder, AT_WORK))
            if not problems and at_work <= len(claims_of(folder, AT_END)):
                drop_references(self.parts[1:])  # nobody reads them any more
            if whole:
                note_finished(folder, self._mark())
        return result

    def _mark(self) -> str:
        attributes = described(self.parts, self.stated)
        return mark_of(self.folder, self.parts, attributes, self.audited)

    def _say_audit(self, attributes: Mapping[Any, Any]) -> None:
        """Note what the audit of a result's checkpoints has found."""
        for finding in json.loads(attributes["findings"]):
            if finding["kind"] != READ_OTHERWISE:  # said before anything was computed
                self.progress.note(f"audit: {finding['message']}")
