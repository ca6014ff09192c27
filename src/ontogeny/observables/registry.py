"""Observables by their kind: our own, and those of installed packages (entry points)."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, ClassVar, TypeGuard

import numpy as np
import torch
import xarray as xr

from .._exports import features, load_entry
from ..errors import ArgumentError, OntogenyError, StudyWarning, check_choice, check_known
from ..needs import InputSet, Model, Need
from ..own_code import set_on
from ..quantities import Measured, Quantity
from .arguments import as_fields
from .base import Observable, dataset, is_file


@dataclass(frozen=True)
class OwnMeasure(Observable):
    """What a function of yours says of each text: its mean, with noise over texts and controls.

    In a study file it is named as ``kind = "mine.py:score"``. Cells are computed again where its
    file changes, what that imports, or a file that it names in quotes.

    Parameters
    ----------
    function
        Is given the model, a `torch.nn.Module`, and an `ontogeny.Inputs`, of which ``ids``,
        ``mask`` and ``texts`` hold the texts; returns one number for each text. The first line of
        its docstring is the title.
    on
        Input set; the first by default.
    better
        ``"higher"`` or ``"lower"`` where one of them is.

    Examples
    --------
    >>> def length(model, texts):
    ...     '''Tokens of the text.'''
    ...     return texts.lengths
    >>> OwnMeasure(length).quantities[0].title
    'tokens of the text'
    """

    function: Callable[..., Any]
    on: str | None = None
    better: str = ""

    kind: ClassVar[str] = "own-measure"
    summary_only: ClassVar[tuple[str, ...]] = ("title",)
    requires: ClassVar[str] = "texts"

    def check(self) -> None:
        """Refuse another direction."""
        check_choice("better", self.better, ("", "higher", "lower"))

    @property
    def stem(self) -> str:
        """The name of its file."""
        return Path(inspect.getfile(self.function)).stem

    @property
    def name(self) -> str:
        """The label, else the name of the function."""
        return self.label or self.function.__name__

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """The mean over texts."""
        line = (inspect.getdoc(self.function) or self.name.replace("_", " ")).split("\n")[0]
        title = line[:1].lower() + line[1:].rstrip(".")
        return (Quantity("value", title, rows=self.name, better=self.better),)

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of the function its name, and the title that it gives."""
        title = self.quantities[0].title
        return {**super().arguments(), "function": self.function.__name__, "title": title}

    def files_read(self) -> Sequence[str | Path]:
        """Return the files that its file names in quotes, beside it or where the study is run."""
        source = Path(inspect.getfile(self.function))
        nodes = ast.walk(ast.parse(source.read_bytes())) if source.is_file() else ()
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        names = [text for text in texts if isinstance(text, str) and text]
        places = [folder / name for name in names for folder in (source.parent, Path().absolute())]
        return sorted(filter(is_file, {*places}))

    def needs(self) -> Sequence[Need]:
        """Return the model and the texts."""
        return [Model(), InputSet(self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the mean, and the number of each text."""
        model, inputs = (reading[need] for need in self.needs())
        with torch.no_grad():
            outcome = self.function(model, inputs)
        values = np.asarray(
            outcome.cpu().double() if isinstance(outcome, torch.Tensor) else outcome, dtype=float
        )
        if values.shape != (len(inputs),):
            raise ArgumentError(
                f"{self.function.__name__} must return one number for each of {len(inputs)} texts; "
                f"got shape {values.shape}."
            )
        weights = np.ones(len(values))
        value = Measured.over_texts(float(values.mean()), values, weights, inputs.groups)
        return dataset({"value": value})


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


@cache
def _loaded() -> tuple[dict[str, type[Observable]], dict[str, str]]:
    classes: dict[str, type[Observable]] = {}
    reasons: dict[str, str] = {}
    for feature in features():
        for cls in _of_package(import_module(feature)):
            _add(classes, cls.kind, cls)
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
            if _is_observable(value) and value.__module__ == module.__name__ and value.kind:
                yield value


def _is_observable(value: Any) -> TypeGuard[type[Observable]]:
    return isinstance(value, type) and issubclass(value, Observable)


def _add(classes: dict[str, type[Observable]], kind: str, cls: Any) -> None:
    if not _is_observable(cls):
        raise ArgumentError(f"{kind} must be a class that inherits from ontogeny.Observable.")
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
    return type(observable) not in kinds().values()


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
    if kind in left_out() and kind not in kinds():
        raise OntogenyError(left_out()[kind])
    return _made(kind, kinds()[check_choice("kind", kind, kinds())], arguments)


def make_own(kind: str, cls: Any, **arguments: Any) -> Observable:
    """Return an observable of a class in a user's own file.

    A function is one that gives a number for each text, see `OwnMeasure`. The kind of a class is
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
        return _made(kind, OwnMeasure, {"function": cls, **arguments})
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
