"""Names that features and installed packages give to the public modules.

`ontogeny.geometry` and its like gather functions on arrays for users. What only one feature
computes stands in the folder of that feature, whose ``PUBLIC`` says which names it gives to which
public module. They are loaded when they are first asked for. So a module that all features use
knows none of them, and a feature's folder can be added or taken away without a change elsewhere.

Installed packages do the same: an entry point of the group ``ontogeny.names`` names a package that
has a ``PUBLIC`` of the same form. Observables that they bring as entry points need no line in it.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from .errors import ArgumentError, OntogenyError, StudyWarning

GROUP = "ontogeny.names"
_FEATURES = f"{__package__}.features"


@cache
def features() -> tuple[str, ...]:
    """Return the packages of the features, sorted by name.

    Examples
    --------
    >>> "ontogeny.features.attention" in features()
    True
    """
    folders = importlib.import_module(_FEATURES).__path__
    return tuple(
        f"{_FEATURES}.{module.name}" for module in pkgutil.iter_modules(folders)
    )


def exported_names(module: str) -> list[str]:
    """Return the names that features give to a public module, sorted.

    Examples
    --------
    >>> exported_names("geometry")[-1]
    'share_in_leading'
    """
    return sorted(homes_in_features(module))


@cache
def homes_in_features(module: str) -> Mapping[str, str]:
    """Return in which modules of features the names that they give are defined."""
    return dict(_given(module, features()))


def exporter(
    module: str, own: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a public module; `own` names and their modules are its own.

    Examples
    --------
    >>> exporter("geometry")("gram").__name__
    'gram'
    """
    package = f"{__package__}.{module}"

    def load(name: str) -> Any:
        within = own.get(name)
        home = homes(module).get(name) if within is None else f"{package}.{within}"
        if home is None:
            raise AttributeError(
                f"module 'ontogeny.{module}' has no attribute {name!r}"
            )
        value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


@cache
def homes(module: str) -> Mapping[str, str]:
    """Return in which modules the names that a public module is given are defined.

    Raises
    ------
    ArgumentError
        If two give the same name.

    Examples
    --------
    >>> homes("observables")["WeightNorms"]
    'ontogeny.features.weights.norms'
    """
    result: dict[str, str] = {}
    given = _given(module, features() + _packages())
    for name, home in itertools.chain(given, _entries(module)):
        if result.setdefault(name, home) != home:
            raise ArgumentError(
                f"{home} and {result[name]} both give {name!r} to {module}."
            )
    return result


def load_entry(
    what: str, entry: EntryPoint, kind: type[OntogenyError] = OntogenyError
) -> Any:
    """Return what an installed package adds; an error of the given kind says what helps.

    Raises
    ------
    OntogenyError
        If it cannot be loaded.
    """
    try:
        return entry.load()
    except Exception as error:  # of a package for another version, whatever it raises
        why = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        raise kind(
            f"the {what} {entry.name} of {entry.value} cannot be loaded: {why}. Install its "
            "package anew, or remove it."
        ) from error


@cache
def _packages() -> tuple[str, ...]:
    """Return the installed packages that give names; one that cannot be loaded is left out."""
    packages = []
    for entry in entry_points(group=GROUP):
        try:
            packages.append(load_entry("package", entry).__name__)
        except OntogenyError as error:
            warnings.warn(StudyWarning(str(error)), stacklevel=2)
    return tuple(packages)


def _entries(module: str) -> Iterator[tuple[str, str]]:
    """Yield what installed packages bring as entry points, such as their observables."""
    for entry in entry_points(group=f"ontogeny.{module}"):
        yield entry.attr, entry.module


def _given(module: str, packages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the names that packages give to a public module, and where each is defined."""
    for package in packages:
        public = getattr(importlib.import_module(package), "PUBLIC", {})
        for inner, names in public.get(module, {}).items():
            yield from ((name, f"{package}.{inner}") for name in names)
