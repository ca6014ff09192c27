"""A measure of the user's own: a function that gives one number for each text."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from ..errors import ArgumentError, check_choice
from ..needs import InputSet, Model, Need
from ..own_code import content_of
from ..quantities import Measured, Quantity
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
        """Return the fields; of the function its name and a digest of its code."""
        content: int | str | None = content_of(self.function)
        with suppress(OSError, TypeError):  # of a script or a notebook its own lines
            content = content or inspect.getsource(self.function)
        return {**super().arguments(), "function": self.function.__name__, "content": content}

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
