"""Observables by their kind: our own, and those of installed packages (entry points)."""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from ..errors import ArgumentError, check_choice, suggestion
from . import (
    activations,
    attention,
    concepts,
    curves,
    labelled,
    predictions,
    readout,
    semantics,
    weights,
)
from .arguments import as_fields
from .base import Observable

GROUP = "ontogeny.observables"
_THEMES = (
    predictions, activations, concepts, attention, weights, readout, labelled, semantics, curves,
)  # fmt: skip
_OURS = tuple(
    found
    for theme in _THEMES
    for found in map(vars(theme).get, theme.__all__)
    if isinstance(found, type) and issubclass(found, Observable) and found.kind
)


@cache
def _kinds() -> dict[str, type[Observable]]:
    """Return all kinds; a package's entry point must not take a name that is taken."""
    kinds: dict[str, type[Observable]] = {c.kind: c for c in _OURS}
    for entry in entry_points(group=GROUP):
        if entry.name in kinds:
            raise ArgumentError(
                f"the observable {entry.name!r} of {entry.value} has a name that is taken."
            )
        kinds[entry.name] = entry.load()
    return kinds


def names() -> tuple[str, ...]:
    """Return the kinds that a study file may name.

    Examples
    --------
    >>> "concepts" in names()
    True
    """
    return tuple(_kinds())


def make(kind: str, **arguments: Any) -> Observable:
    """Return an observable by its kind, as study files name it.

    Raises
    ------
    ArgumentError
        If the kind or an argument is unknown, a required one is missing, or a value is not what it
        must be.

    Examples
    --------
    >>> make("concepts", extractor="pca", n_concepts=8).n_concepts
    8
    """
    cls = _kinds()[check_choice("kind", kind, _kinds())]
    known = {f.name: f for f in dataclasses.fields(cls)}
    for name in arguments:
        if name not in known:
            raise ArgumentError(
                f"the observable {kind!r} has no argument {name!r}; it has {', '.join(known)}."
                f"{suggestion(name, known)}"
            )
    for name, field in known.items():
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        if required and name not in arguments:
            raise ArgumentError(f"the observable {kind!r} needs the argument {name!r}.")
    try:
        return cls(**as_fields(cls, arguments))
    except ArgumentError as error:
        raise ArgumentError(f"the observable {kind!r}: {error}") from None
