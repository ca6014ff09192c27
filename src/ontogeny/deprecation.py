"""Old names that keep working for a while, with a warning that gives the new one."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable
from typing import Any


def moved_name(name: str, names: Iterable[str], old: str, new: str) -> Any:
    """Return what is now ``new.name``, for the ``__getattr__`` of the module `old`.

    Raises
    ------
    AttributeError
        If `name` is not one of the `names` that moved.

    Examples
    --------
    >>> moved_name("sin", (), "ontogeny.tasks", "math")
    Traceback (most recent call last):
    AttributeError: module 'ontogeny.tasks' has no attribute 'sin'
    """
    if name not in names:
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    warnings.warn(
        f"{old}.{name} is now {new}.{name}; the old name goes in the next version.",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(importlib.import_module(new), name)
