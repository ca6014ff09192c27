"""How a run reports what it does."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives what happens in a run, in order, in the process that started it."""

    def note(self, text: str) -> None:
        """Show one line, such as what has changed since the last run."""
        ...

    def start(self, tasks: int, cells: int) -> None:
        """Begin: `tasks` tasks with `cells` cells are to do."""
        ...

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """One task is finished."""
        ...

    def finish(self) -> None:
        """End, also after an error."""
        ...


class Silent:
    """Shows nothing.

    Examples
    --------
    >>> Silent().note("nothing is shown")
    """

    def note(self, text: str) -> None:
        """Ignore."""

    def start(self, tasks: int, cells: int) -> None:
        """Ignore."""

    def advance(self, label: str, cells: int, seconds: float) -> None:
        """Ignore."""

    def finish(self) -> None:
        """Ignore."""
