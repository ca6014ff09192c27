"""Verbs that installed packages add to the command."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .._papers import require_papers

GROUP = "ontogeny.commands"


def commands_of_packages() -> dict[str, Callable[..., Any]]:
    """Return the verbs of installed packages: functions as `typer` takes them, by name.

    A package whose verb cannot be loaded says so when the verb is used; all others work.
    """
    verbs = {entry.name: _loaded(entry) for entry in entry_points(group=GROUP)}
    return {"reproduce": _reproduce, **verbs}


def _loaded(entry: EntryPoint) -> Callable[..., Any]:
    try:
        command: Callable[..., Any] = entry.load()
    except Exception as error:  # whatever a stranger's package raises
        return _broken(entry, error)
    return command


def _broken(entry: EntryPoint, error: Exception) -> Callable[[], None]:
    def broken() -> None:
        from ..errors import OntogenyError

        raise OntogenyError(
            f"the verb {entry.name} of {entry.value} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error

    broken.__doc__ = f"Not available: {entry.value} cannot be loaded."
    return broken


def _reproduce() -> None:
    """Train, measure and judge a claim of the papers (in a distribution of its own)."""
    require_papers("ontogeny reproduce")
