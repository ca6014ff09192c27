"""Measures of one's own: a function of what a model holds is an observable."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import xarray as xr

from ..arrays import to_numpy
from ..errors import ArgumentError, check_choice
from ..needs import Activations, InputSet, Losses, Model, Need
from ..quantities import Measured, Quantity
from .attention_maps import OfAttention
from .base import Observable, is_file
from .matrices import Matrices
from .variables import by_layer, dataset

F = TypeVar("F", bound=Callable[..., Any])

READS = ("losses", "activations", "attention", "weights")
_LAYERS = {
    "activations": "mlp",
    "attention": "*",
    "weights": "**.weight",
    "losses": "*",
}
_DECLARED = "_ontogeny_observable"


def observable(
    reads: str,
    layers: str | Sequence[str] | None = None,
    *,
    on: str | None = None,
    units: str = "1",
    better: str = "",
) -> Callable[[F], F]:
    """Make a function an observable, which a study takes as it is and a study file by its name.

    Parameters
    ----------
    reads
        What the function is given at each checkpoint:

        - ``"activations"``: a float32 tensor (tokens, features), of each layer,
        - ``"attention"``: a float32 tensor (heads, queries, keys), of each text and layer,
        - ``"weights"``: a tensor (rows, columns), of each weight matrix,
        - ``"losses"``: an array (texts,), nats per predicted token.

        It returns one number. Of activations and losses it may return one for each token or text
        instead: their mean is drawn, with noise over texts. That of attention is a mean over texts.
        A number without noise has no verdict, but for weights, which are not sampled.
    layers
        Globs over module paths, or short names; of weights over matrices. By default ``"mlp"`` of
        activations, every layer with attention maps, and ``"**.weight"``.
    on
        Input set; the study's first by default.
    units
        Of the number.
    better
        ``"higher"`` or ``"lower"`` where one of them is.

    Raises
    ------
    ArgumentError
        If an argument is none of these.

    Examples
    --------
    >>> @observable("activations", layers="mlp")
    ... def active(A):
    ...     '''Share of activations above zero.'''
    ...     return (A > 0).double().mean(dim=1)
    >>> active(torch.tensor([[1.0, -1.0], [2.0, 3.0]])).tolist()
    [0.5, 1.0]
    """
    check_choice("reads", reads, READS)
    if reads == "losses" and layers is not None:
        raise ArgumentError(
            f"layers goes with other things than losses; got {layers!r}."
        )
    patterns = layers or _LAYERS[reads]
    chosen = {
        "reads": reads,
        "layers": patterns if isinstance(patterns, str) else tuple(patterns),
        "on": on,
        "units": units,
        "better": check_choice("better", better, ("", "higher", "lower")),
    }

    def declared(function: F) -> F:
        setattr(function, _DECLARED, chosen)
        return function

    return declared


def declared_of(
    function: Callable[..., Any],
) -> tuple[type[OfFunction], dict[str, Any]]:
    """Return the class that measures by a function, and its arguments."""
    chosen = getattr(function, _DECLARED, None)
    cls: type[OfFunction] = OwnMeasure if chosen is None else LayerMeasure
    return cls, {"function": function, **(chosen or {})}


def of_function(function: Callable[..., Any]) -> OfFunction:
    """Return the observable of a function.

    Examples
    --------
    >>> type(of_function(observable("weights")(lambda W: W.norm()))).__name__
    'LayerMeasure'
    """
    cls, arguments = declared_of(function)
    return cls(**arguments)


@dataclass(frozen=True)
class OfFunction(Observable):
    """What a function of a user says; the first line of its docstring is the title."""

    function: Callable[..., Any]
    on: str | None = None
    better: str = ""

    summary_only = ("title",)
    choices = {"better": ("", "higher", "lower")}

    @property
    def stem(self) -> str:
        """The name of its file."""
        return Path(inspect.getfile(self.function)).stem

    @property
    def name(self) -> str:
        """The label, else the name of the function."""
        return self.label or self.function.__name__

    @property
    def title(self) -> str:
        """What the function says that it gives."""
        line = (inspect.getdoc(self.function) or self.name.replace("_", " ")).split(
            "\n"
        )[0]
        return line[:1].lower() + line[1:].rstrip(".")

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of the function its name, and the title that it gives."""
        return {
            **super().arguments(),
            "function": self.function.__name__,
            "title": self.title,
        }

    def files_read(self) -> Sequence[str | Path]:
        """Return the files that its file names in quotes, beside it or where the study is run."""
        source = Path(inspect.getfile(self.function))
        nodes = ast.walk(ast.parse(source.read_bytes())) if source.is_file() else ()
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        names = [text for text in texts if isinstance(text, str) and text]
        folders = (source.parent, Path().absolute())
        places = {folder / name for folder, name in product(folders, names)}
        return sorted(filter(is_file, places))


@dataclass(frozen=True)
class OwnMeasure(OfFunction):
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

    kind = "own-measure"
    requires = "texts"

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """The mean over texts."""
        return (Quantity("value", self.title, rows=self.name, better=self.better),)

    def needs(self) -> Sequence[Need]:
        """Return the model and the texts."""
        return [Model(), InputSet(self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the mean, and the number of each text."""
        model, inputs = (reading[need] for need in self.needs())
        with torch.no_grad():
            outcome = self.function(model, inputs)
        values = _numbers(outcome)
        if values.shape != (len(inputs),):
            raise ArgumentError(
                f"{self.function.__name__} must return one number for each of {len(inputs)} texts; "
                f"got shape {values.shape}."
            )
        weights = np.ones(len(values))
        value = Measured.over_texts(
            float(values.mean()), values, weights, inputs.groups
        )
        return dataset({"value": value})


@dataclass(frozen=True)
class LayerMeasure(OfFunction):
    """What a decorated function says of losses, or of each layer; `observable` makes it."""

    reads: str = "activations"
    layers: str | tuple[str, ...] = "mlp"
    units: str = "1"

    kind = "own-layers"

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """The number of each layer."""
        of_layer = "" if self.reads == "losses" else "{layer} · "
        return (
            Quantity(
                "value",
                self.title,
                units=self.units,
                rows=f"{of_layer}{self.name}",
                noise="exact" if self.reads == "weights" else "measured",
                better=self.better,
            ),
        )

    def needs(self) -> Sequence[Need]:
        """Return what the function is given."""
        if self.reads == "losses":
            return [Losses(self.on)]
        if self.reads == "weights":
            return [Matrices(self.layers)]
        if self.reads == "attention":
            return [OfAttention(self.function, self.layers, self.on)]
        return [Activations(self.layers, self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the number of each layer."""
        (need,) = self.needs()
        found = reading[need]
        if self.reads == "weights":
            return by_layer(found, lambda _, W: {"value": self._measured(W.detach())})
        units = reading.units(need)
        if self.reads == "losses":
            counted = found.tokens.values > 0
            return dataset(
                {"value": self._measured(found.loss.values[counted], units[counted])}
            )
        if self.reads == "attention":
            return by_layer(
                found, lambda _, values: {"value": _over_texts(values, units)}
            )
        return by_layer(found, lambda _, A: {"value": self._measured(A, units)})

    def _measured(self, read: Any, units: np.ndarray | None = None) -> Measured:
        with torch.no_grad():
            values = _numbers(self.function(read))
        if values.ndim == 0:
            return Measured(float(values))
        if units is not None and values.shape == units.shape:
            return Measured.mean(values, units)
        each = "" if units is None else f", or one for each of {len(units)} rows"
        raise ArgumentError(
            f"{self.function.__name__} must return one number{each}; got shape {values.shape}."
        )


def _numbers(outcome: Any) -> np.ndarray:
    return np.asarray(to_numpy(outcome), dtype=np.float64)


def _over_texts(values: np.ndarray, units: np.ndarray) -> Measured:
    """Return the mean over texts; one without a token has no map."""
    there = np.isfinite(values)
    values = values[there]
    return Measured.over_texts(
        values.mean(), values, np.ones(len(values)), units[there]
    )
