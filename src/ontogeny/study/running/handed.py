"""What a run has read for cells to come, handed on to a study that reads the same in the same way.

Whoever asks what a study takes has one checkpoint of it computed. Files of what was read there do
not say how it was read, so each is handed on with what the cell of a reference depends on that
holds the same: weights, texts, dtype, device, and how positions and batches are given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from weakref import finalize

from ...needs import Need
from ...store import plain
from ..cells.ahead import Ahead, file_of, forget, is_kept, new_token, of_run
from ..cells.cache import settled
from ..cells.models import own_needs
from ..cells.readings import MADE
from ..planning.parts import RunPart


class Handed:
    """Values of needs at the steps of a run, in files that go with this object."""

    def __init__(self) -> None:
        token = new_token()
        self._place = of_run(token)
        self._depends_on: dict[str, Any] = {}
        finalize(self, forget, token)

    def take(self, part: RunPart) -> None:
        """Keep what lies in the files of a run."""
        for reading in filter(_Reading.is_there, _readings(part)):
            if _moved(reading.path, self._place / reading.path.name):
                self._depends_on[reading.path.name] = reading.depends_on()

    def give(self, part: RunPart) -> None:
        """Let a run find in its files what it would read in the same way."""
        for name, path in self.fitting(part).items():
            del self._depends_on[name]
            _moved(self._place / name, path)

    def fitting(self, part: RunPart) -> dict[str, Path]:
        """Return the files of what a run would read in the same way, and where it looks for it."""
        known = self._depends_on
        readings = [r for r in _readings(part) if r.path.name in known]
        return {
            r.path.name: r.path
            for r in readings
            if known[r.path.name] == r.depends_on()
        }


class Exchange(NamedTuple):
    """What a run is given that was read before, and what it hands on itself."""

    given: Handed | None = None
    handed: Handed | None = None

    def begin(self, part: RunPart) -> None:
        """Give a run what was read before."""
        if self.given is not None:
            self.given.give(part)

    def end(self, part: RunPart) -> None:
        """Keep what a run has read."""
        if self.handed is not None:
            self.handed.take(part)


@dataclass(frozen=True)
class _Reading:
    """What a run reads of a need: at a step, or of a model that it makes of one."""

    part: RunPart
    need: Need
    step: int

    @property
    def path(self) -> Path:
        """The file for it."""
        job = self.part.job
        return file_of(Ahead(job.token, job.folder), self.step, self.need)

    def is_there(self) -> bool:
        """Return whether it was read and kept."""
        return self.path.exists()

    def depends_on(self) -> Any:
        """Return what its value depends on; whoever asks for it may hash the checkpoint."""
        graph = self.part.graph
        if self.step not in MADE:
            return plain(settled(graph.reading(self.step, self.need)))
        step = graph.settings.reference_step
        whole = graph.digests.whole(graph.trajectory[step])
        return plain(settled({**graph.reading(step, self.need), "made of": whole}))


def _readings(part: RunPart) -> Iterator[_Reading]:
    needs = dict.fromkeys(n for o in part.graph.observables for n in own_needs(o))
    for need in filter(is_kept, needs):
        for step in (*part.graph.steps, *MADE):
            yield _Reading(part, need, step)


def _moved(path: Path, to: Path) -> bool:
    """Move a file; where that fails, what it holds is read once more."""
    try:
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.rename(to)
    except OSError:
        return False
    return True
