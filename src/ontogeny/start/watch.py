"""What one checkpoint of a study took, and what was written for it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import xarray as xr

from ..problems.problem import of_node
from ..store import read_cell
from ..study import Study
from ..study.folder.controls import observed_of_controls
from ..study.folder.layout import cell_path, state_path
from ..study.planning.dry_run import DryFailure
from ..study.planning.probe import Probe
from ..study.progress import Silent
from ..study.running.handed import Handed
from ..study.speaking import doubts
from .sampled import Sample


def watched(
    study: Study, label: str = "", noisy: bool = False, probed: Probe | None = None
) -> Watch:
    """Return what a task of a study took; the first one that has cells, if none is named."""
    study.examination.spare(probed)
    controlled = observed_of_controls(study.observables)
    of_run = [o.name for o in study.observables if o not in controlled]
    watch = Watch(label, noisy, of_run)
    with contextlib.suppress(SeenError):
        study.run(watch.folder, progress=watch, keep_going=True)
    return watch


class SeenError(Exception):
    """The one checkpoint is computed; what would follow says nothing."""


class Watch(Silent):
    """A progress that stops a run after its one checkpoint. Its folder goes with it.

    `of_run` names the observables that controls do not have; the attribute is what they took.
    """

    def __init__(self, label: str, noisy: bool, of_run: Sequence[str] = ()) -> None:
        place = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        self.folder = Path(place) / "study"
        self.noisy = noisy
        self.handed: Handed | None = None
        self.before = self.step = self.late = self.of_run = 0.0
        self._of_run = frozenset(of_run)
        self.kept = self.asked = 0.0
        self._taken: dict[str, float] = defaultdict(float)
        self._sampled: list[str] = []
        self.written_before = self.written = self.references = self._size = 0
        self._label = label

    def extend(self, samples: Sequence[Sample]) -> None:
        """Count all examples where samples were timed."""
        self.kept = self.step
        for sample in samples:
            few = self._taken[sample.few.name]
            more = self._taken[sample.more.name]
            self.kept -= few + more
            whole = sample.seconds(few, more)
            self.asked += whole
            self.step += whole - few - more
            self._sampled += [sample.few.name, sample.more.name]

    def computed(self) -> Path:
        """Return the folder with what was computed, without what is of samples."""
        for name in self._sampled:
            state_path(self.folder, name).unlink(missing_ok=True)
            cells = cell_path(self.folder, name, "any").parent
            shutil.rmtree(cells, ignore_errors=True)
        return self.folder

    def failing(self, study: Study) -> list[str]:
        """Return how observables failed at the checkpoint, which they may do at others too."""
        failures = []
        step = int(self._label.rpartition(" ")[2])
        for name in (observable.name for observable in study.observables):
            path = cell_path(self.folder, name, step)
            if path.is_file():
                cell = read_cell(path)
                data = (
                    cell.data
                    if cell.status == "done"
                    else xr.Dataset({"status": cell.status})
                )
                rows = of_node(name, data.expand_dims(step=[step]))[:1]
                failures += [
                    DryFailure(name, step, row.reason, refused=False) for row in rows
                ]
        return doubts(failures, len(study.observables))

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """Note what a task took, and stop after the checkpoint."""
        before = self._size
        self._size = bytes_of(self.folder.rglob("*"))
        written = self._size - before
        if label in (self._label, f"reading {self._label}") or (
            cells and not self._label
        ):
            self.step = self.step + seconds
            for name, taken in self._each(time.time() - seconds):
                self._taken[name] += taken
                self.of_run += taken * (name in self._of_run)
            self.late = seconds
            self.written += written
            if label != f"reading {self._label}":
                raise SeenError
        elif label in ("references", "states"):
            self.before += seconds
            self.written_before += written
            self.references = bytes_of(self.folder.glob("states/reference-*"))

    def _each(self, begin: float) -> Iterator[tuple[str, float]]:
        """Give the node of each cell that was written since then, and what it took.

        Each is written when it is computed. What the first one took is not known: before it the
        checkpoint is read for all.
        """
        cells = self.folder.glob("cells/*/*.safetensors")
        written = sorted((cell.stat().st_mtime, cell.parent.name) for cell in cells)
        pairs = pairwise(pair for pair in written if pair[0] >= begin)
        yield from ((node, after - before) for (before, _), (after, node) in pairs)


def bytes_of(paths: Iterable[Path]) -> int:
    """Return the bytes of files."""
    return sum(path.stat().st_size for path in paths if path.is_file())
