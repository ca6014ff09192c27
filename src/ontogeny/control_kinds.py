"""Kinds of control runs: which of them judge, and which are made of a run's motion."""

from typing import Any

# Kinds that end trained or go in trained directions: they are drawn, but judge nothing.
NO_NULLS = ("line", "shuffled")
MOTION = ("turned", "mirrored", "walk")
"""Kinds made of how far a run moved, which harm one that begins trained.

Ten more steps on tokens out of order went beyond them nearly as often as ten on text.
"""


def kind_of(run: str) -> str:
    """Return the kind of a control run from its name, which a number may end.

    Examples
    --------
    >>> kind_of("turned 0"), kind_of("trained on nothing")
    ('turned', 'trained on nothing')
    """
    kind, _, number = run.rpartition(" ")
    return kind if number.isdigit() else run


def is_null(run: str) -> bool:
    """Return whether a control run judges, by its name: one that ends trained does not.

    Examples
    --------
    >>> is_null("walk 0"), is_null("line")
    (True, False)
    """
    return kind_of(run) not in NO_NULLS


def judging(values: Any) -> Any:
    """Return xarray values along ``run`` without the control runs that judge nothing."""
    return values.isel(run=[is_null(str(run)) for run in values["run"].values])
