"""Verbs that installed packages add to the command."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .._exports import load_entry
from ..errors import OntogenyError

GROUP = "ontogeny.commands"


def add_commands(app: Any) -> None:
    """Add the verbs of installed packages to a `typer` application.

    A package whose verb cannot be loaded says so when the verb is used; all others work.
    """
    verbs = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name, entry in verbs.items():
        try:
            command = load_entry("verb", entry)
        except OntogenyError as error:
            command = _broken(entry, error)
        app.command(name)(command)


def _broken(entry: EntryPoint, error: OntogenyError) -> Callable[[], None]:
    def broken() -> None:
        raise error

    broken.__doc__ = f"Not available: {entry.value} cannot be loaded."
    return broken
