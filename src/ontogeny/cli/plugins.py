"""Verbs that installed packages add to the command."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .._papers import require_papers

GROUP = "ontogeny.commands"


def add_commands(app: Any) -> None:
    """Add the verbs of installed packages to a `typer` application.

    A package whose verb cannot be loaded says so when the verb is used; all others work.
    """
    verbs = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name, entry in verbs.items():
        app.command(name)(_loaded(entry))
    if "reproduce" not in verbs:  # whatever is asked of it, the answer is how to install it
        anything = {"allow_extra_args": True, "ignore_unknown_options": True}
        app.command("reproduce", context_settings=anything)(_reproduce)


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
