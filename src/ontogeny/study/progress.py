"""How a run reports what it does."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol

from .. import activity
from ..errors import ArgumentError
from ..words.formats import plural


class Progress(Protocol):
    """Receives what happens in a run, in order, in the process that started it."""

    def note(self, text: str) -> None:
        """Show one line, such as what has changed since the last run."""
        return

    def start(self, tasks: int, cells: int) -> None:
        """Begin: `tasks` tasks with `cells` cells are to do."""
        return

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """One task is finished."""
        return

    def finish(self) -> None:
        """End, also after an error."""
        return


class Silent(Progress):
    """Shows nothing.

    Examples
    --------
    >>> Silent().note("nothing is shown")
    """


LOG_SECONDS = 60.0  # between two lines about tasks, where no bar is drawn

_METHODS = ("note", "start", "advance", "finish")


def chosen_progress(choice: Progress | bool | None) -> Progress:
    """Return what shows a run: `choice`, or what fits where Python runs; False shows nothing.

    Raises
    ------
    ArgumentError
        If it is anything else.

    Examples
    --------
    >>> chosen_progress(False)
    <ontogeny.study.progress.Silent object at ...>
    """
    if choice is False:
        return Silent()
    if choice is None or choice is True:
        return fitting_progress()
    if missing := [
        name for name in _METHODS if not callable(getattr(choice, name, None))
    ]:
        raise ArgumentError(
            f"progress must be True, False or an object with the methods {', '.join(_METHODS)}; "
            f"got a {type(choice).__name__} without {', '.join(missing)}."
        )
    return choice


def fitting_progress() -> Progress:
    """Return the progress that fits where Python runs: a bar on a terminal, else lines."""
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


_COST = {"blocks": 0.1}  # a cell beside one of a checkpoint, until the first is done


def time_left(begin: float, done: float, total: float) -> str:
    """Return how long the rest will take that is done at the pace since `begin`."""
    seconds = (time.monotonic() - begin) / done * (total - done)
    return f"about {duration(seconds)} left"


class Pace:
    """How long the rest of a run takes: each kind of task at the pace of those that are done.

    Parameters
    ----------
    tasks
        The kind of each task that is to do, and how many cells it has.

    Examples
    --------
    >>> pace = Pace([("steps", 10.0)] * 3 + [("blocks", 100.0)])
    >>> pace.add("steps", 10.0, 60.0)
    >>> round(
    ...     pace.share_done(), 2
    ... )  # a cell of a weight matrix is taken for a tenth of another
    0.25
    """

    def __init__(self, tasks: Sequence[tuple[str, float]]) -> None:
        self._begin = time.monotonic()
        self._left = defaultdict[str, float](float)
        self._done = defaultdict[str, float](float)
        self._seconds = defaultdict[str, float](float)
        self._begun = dict[str, tuple[float, float]]()
        for kind, cells in tasks:
            self._left[kind] += cells

    def add(self, kind: str, cells: float, seconds: float) -> None:
        """One task is finished."""
        self._begun.setdefault(kind, (cells, seconds))
        self._left[kind] -= cells
        self._done[kind] += cells
        self._seconds[kind] += seconds

    def share_done(self) -> float:
        """Return how much of all work is done."""
        done = sum(self._seconds.values())
        # References and states tell no pace: those of 143 s made 29 hours of the rest.
        timed = {
            kind: self._timed(kind)
            for kind, n in self._done.items()
            if n and kind != "first"
        }
        weight = sum(n * _COST.get(kind, 1) for kind, (n, _) in timed.items())
        usual = sum(seconds for _, seconds in timed.values()) / max(weight, 1e-9)
        left = 0.0
        for kind, n in self._left.items():
            cells, seconds = self._timed(kind)
            left += n * (seconds / cells if cells else usual * _COST.get(kind, 1))
        return done / max(done + left, 1e-9)

    def _timed(self, kind: str) -> tuple[float, float]:
        """Return the cells and seconds that tell a pace: not those of the first task, if others do.

        It holds what is done once. One that also waited made 5 h 52 min of a study of 16 minutes.
        """
        cells, seconds = self._begun.get(kind, (0.0, 0.0))
        if self._done[kind] > cells:
            return self._done[kind] - cells, self._seconds[kind] - seconds
        return cells, seconds

    def words(self) -> str:
        """Return how long the rest will take, once two tasks of one kind are done."""
        if not any(
            self._done[k] > n for k, (n, _) in self._begun.items() if k != "first"
        ):
            return "time left not known yet"
        return time_left(self._begin, max(self.share_done(), 1e-3), 1)


class LineProgress:
    """Lines without control characters, for logs and notebooks: one a minute about tasks."""

    def __init__(self) -> None:
        self._last_note = time.monotonic()
        self._tasks = self._done = 0
        self._head = ""
        self.pace: Pace | None = None

    def note(self, text: str) -> None:
        """Write one line."""
        activity.write(text)
        activity.touch()

    def start(self, tasks: int, cells: int) -> None:
        """Note how much there is to do; a run that is over within a minute writes nothing of it."""
        self._last_note = time.monotonic()
        self._tasks = tasks
        self._done = 0
        self._head = _head(tasks, cells)

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """Report what is finished and how long the rest will take, once a minute."""
        self._done += 1
        if time.monotonic() - self._last_note < LOG_SECONDS:
            return
        self._last_note = time.monotonic()
        if self._head:
            self.note(self._head)
        self._head = ""
        rest = f", {self.pace.words()}" if self.pace else ""
        done = f"[{self._done}/{self._tasks}] {label}: {plural(cells, 'cell')}"
        self.note(f"{done} in {seconds:.1f} s{rest}")

    def finish(self) -> None:
        """Write nothing more."""


def _head(tasks: int, cells: int) -> str:
    if not tasks:
        return "all cells are done"
    return f"{plural(cells, 'cell')} to compute in {plural(tasks, 'task')}"


class BarProgress:
    """A bar with time left, for terminals."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        label = TextColumn("{task.description}", style="bold", markup=False)
        columns = (
            label,
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task: Any = None
        self.pace: Pace | None = None

    def note(self, text: str) -> None:
        """Write one line above the bar."""
        self._bar.console.print(text, style="dim", markup=False, highlight=False)

    def start(self, tasks: int, cells: int) -> None:
        """Show the bar."""
        if not tasks:
            self.note("all cells are done")
            return
        self._task = self._bar.add_task(f"{cells} cells", total=tasks, left="")
        self._bar.start()
        activity.say(False)  # the bar moves

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """Move the bar."""
        if self._task is not None:
            left = self.pace.words() if self.pace else ""
            self._bar.update(self._task, advance=1, description=label, left=left)

    def finish(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            activity.say(True)
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None
