"""Observables by their kind: our own, and those of installed packages (entry points)."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, TypeGuard

from .._exports import features, homes_in_features, load_entry
from ..errors import (
    ArgumentError,
    OntogenyError,
    StudyWarning,
    check_choice,
    check_known,
)
from ..own_code import set_on
from .arguments import as_fields
from .base import Observable
from .own import declared_of

GROUP = "ontogeny.observables"


def kinds() -> dict[str, type[Observable]]:
    """Return all kinds in the order in which presets list them, then the others.

    The library's are the classes in the folders of features that have a ``kind``. A package's
    entry point that cannot be loaded, or takes a name that is taken, is left out with a warning.
    """
    return _loaded()[0]


def left_out() -> dict[str, str]:
    """Return the kinds of installed packages that cannot be loaded, and why."""
    return _loaded()[1]


def class_of(kind: Any) -> type[Observable] | None:
    """Return the class of a kind, or None; for the library's own no other package is loaded.

    Examples
    --------
    >>> class_of("loss").__name__, class_of("no such kind")
    ('Loss', None)
    """
    if not isinstance(kind, str):
        return None
    return _named(kind) or _of_features().get(kind) or kinds().get(kind)


def _named(kind: str) -> type[Observable] | None:
    """Return the class of a feature that is named as its kind is: others are not loaded for it."""
    name = kind.title().replace("-", "")
    home = homes_in_features("observables").get(name)
    cls = None if home is None else getattr(import_module(home), name)
    return cls if _is_observable(cls) and cls.kind == kind else None


@cache
def _of_features() -> dict[str, type[Observable]]:
    classes: dict[str, type[Observable]] = {}
    for feature in features():
        for cls in _of_package(import_module(feature)):
            _add(classes, cls.kind, cls)
    return classes


@cache
def _loaded() -> tuple[dict[str, type[Observable]], dict[str, str]]:
    classes = dict(_of_features())
    reasons: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        try:
            _add(classes, entry.name, load_entry("observable", entry))
        except OntogenyError as error:
            warnings.warn(StudyWarning(str(error)), stacklevel=2)
            reasons[entry.name] = str(error)
    return dict(sorted(classes.items(), key=lambda item: item[1].place())), reasons


def _of_package(package: ModuleType) -> Iterator[type[Observable]]:
    """Yield the observables that are defined in the modules of a package."""
    for module_info in walk_packages(package.__path__, f"{package.__name__}."):
        module = import_module(module_info.name)
        for value in vars(module).values():
            if (
                _is_observable(value)
                and value.__module__ == module.__name__
                and value.kind
            ):
                yield value


def _is_observable(value: Any) -> TypeGuard[type[Observable]]:
    return isinstance(value, type) and issubclass(value, Observable)


def _add(classes: dict[str, type[Observable]], kind: str, cls: Any) -> None:
    if not _is_observable(cls):
        raise ArgumentError(
            f"{kind} must be a class that inherits from ontogeny.Observable."
        )
    if kind in classes:
        raise ArgumentError(
            f"the observable {kind!r} of {cls.__module__} has a name that is taken by one of "
            f"{classes[kind].__module__}."
        )
    classes[kind] = cls


def is_own(observable: Observable) -> bool:
    """Return whether an observable is neither the library's nor an installed package's.

    Examples
    --------
    >>> is_own(make("loss"))
    False
    """
    cls = type(observable)
    return class_of(cls.kind) is not cls and cls not in kinds().values()


def names() -> tuple[str, ...]:
    """Return the kinds that a study file may name.

    Examples
    --------
    >>> "concepts" in names()
    True
    """
    return tuple(kinds())


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
    cls = class_of(kind)
    if cls is None:
        if kind in left_out():
            raise OntogenyError(left_out()[kind])
        cls = kinds()[check_choice("kind", kind, kinds())]
    return _made(kind, cls, arguments)


def make_own(kind: str, cls: Any, **arguments: Any) -> Observable:
    """Return an observable of a class in a user's own file.

    A function is one that `observable` has declared, or that gives a number for each text, see
    `OwnMeasure`. The kind of a class is
    its name where it names none.

    Parameters
    ----------
    kind
        How a study file names it, such as ``"mine.py:ActivationNorm"``.
    cls
        The class, or the function.

    Raises
    ------
    ArgumentError
        If `cls` is neither an observable nor a function, or as `make`.
    """
    if inspect.isfunction(cls):
        own, declared = declared_of(cls)
        return _made(kind, own, declared | arguments)
    if not _is_observable(cls):
        need = f"{kind} must be a class that inherits from ontogeny.Observable, or a function"
        raise ArgumentError(f"{need} of model and texts.")
    if not cls.kind:
        set_on(cls, kind=cls.__name__)
    return _made(kind, cls, arguments)


def _made(kind: str, cls: type[Observable], arguments: Mapping[str, Any]) -> Observable:
    fields = {f.name: f for f in dataclasses.fields(cls)}
    check_known(f"the observable {kind!r}", "argument", arguments, fields)
    for name, field in fields.items():
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and name not in arguments:
            raise ArgumentError(f"the observable {kind!r} needs the argument {name!r}.")
    try:
        return cls(**as_fields(cls, arguments))
    except ArgumentError as error:
        raise ArgumentError(f"the observable {kind!r}: {error}") from None
