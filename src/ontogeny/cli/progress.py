"""Progress for people: a bar with time left on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..trajectory import Trajectory


def progress_for(quiet: bool = False) -> Any:
    """Return the progress that fits standard error, or a silent one."""
    from ..study.progress import Silent

    if quiet:
        return Silent()
    return BarProgress() if sys.stderr.isatty() else LineProgress()


def duration(seconds: float) -> str:
    """Return seconds as people say them.

    Examples
    --------
    >>> duration(3.2), duration(75), duration(7300)
    ('3 s', '1 min 15 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def time_left(begin: float, done: int, total: int) -> str:
    """Return how long the rest will take that is done at the pace since `begin`."""
    left = (time.monotonic() - begin) / done * (total - done)
    return f"about {duration(left)} left"


class LineProgress:
    """One line for each finished task, without control characters: for logs."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._tasks = self._done = 0

    def note(self, text: str) -> None:
        """Write one line."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def start(self, tasks: int, cells: int) -> None:
        """Report how much there is to do."""
        self._begin, self._tasks, self._done = time.monotonic(), tasks, 0
        self.note(f"{cells} cells to compute in {tasks} tasks" if tasks else "all cells are done")

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """Report what is finished and how long the rest will take."""
        self._done += 1
        left = time_left(self._begin, self._done, self._tasks)
        self.note(f"[{self._done}/{self._tasks}] {label}: {cells} cells in {seconds:.1f} s, {left}")

    def finish(self) -> None:
        """Write nothing more."""


class BarProgress:
    """A bar with time left, for terminals."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        label = TextColumn("{task.description}", style="bold", markup=False)
        columns = (label, BarColumn(), MofNCompleteColumn(), Remaining())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task: Any = None

    def note(self, text: str) -> None:
        """Write one line above the bar."""
        self._bar.console.print(text, style="dim", markup=False, highlight=False)

    def start(self, tasks: int, cells: int) -> None:
        """Show the bar."""
        if not tasks:
            self.note("all cells are done")
            return
        self._task = self._bar.add_task(f"{cells} cells", total=tasks)
        self._bar.start()

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bar.update(self._task, advance=1, description=label)

    def finish(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None


class TrainingLines:
    """Training progress through a study progress: one line about every tenth of the way."""

    def __init__(self, progress: Any, tenths: int = 10) -> None:
        self._progress, self._tenths = progress, tenths
        self._begin, self._from, self._last = time.monotonic(), 0, 0

    def __call__(self, step: int, steps: int, loss: float) -> None:
        """Report where the training stands."""
        if step < self._last or not self._last:  # another training, or one that goes on
            self._begin, self._from = time.monotonic(), step
        self._last = step
        if step % max(1, steps // self._tenths) and step != steps:
            return
        left = time_left(self._begin, max(step - self._from, 1), steps - self._from)
        self._progress.note(f"training: step {step} of {steps}, loss {loss:.2f}, {left}")


def download_shown(trajectory: Trajectory, progress: Any) -> int:
    """Fetch a trajectory's Hub revisions, one line each; return how many are there then."""
    from ..trajectory import download, missing_bytes

    sources = [checkpoint for checkpoint in trajectory if checkpoint.source is not None]
    progress.note(f"{missing_bytes(trajectory) / 1e9:.3g} GB to fetch in {len(sources)} revisions")
    begin, done = time.monotonic(), 0
    for done, step in enumerate(download(trajectory), start=1):
        left = time_left(begin, done, len(sources))
        progress.note(f"[{done}/{len(sources)}] {trajectory[step].label}, {left}")
    return done
