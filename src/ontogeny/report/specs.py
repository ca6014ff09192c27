"""Figures checked against their data: what is drawn, from which arrays, along which dimension."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from .content import Node

__all__ = ["KINDS", "FigureSpec", "Problem", "RegimeSpec", "is_step", "select"]

KINDS = ("curves", "heatmap", "null", "table", "scatter", "words")
"""Kinds that this report draws."""


class Problem(Exception):  # noqa: N818 (not an error of the caller: it is shown in the page)
    """Why a figure cannot be drawn; its text is shown in the figure's place."""


@dataclass(frozen=True)
class RegimeSpec:
    """Variables of a boundary between regimes: ``step``, and as far as there are, the others."""

    label: str
    step: str
    low: str = ""
    high: str = ""
    noise_ratio: str = ""

    @property
    def variables(self) -> list[str]:
        """The variables that there are."""
        return [name for name in (self.step, self.low, self.high, self.noise_ratio) if name]


@dataclass(frozen=True)
class FigureSpec:
    """A figure of one node; names are variables or dimensions of the node's dataset.

    ``id`` is unique in the page, ``key`` is what the observable calls the figure.
    ``axes`` maps what a dimension is used for (x, y, rows, series, facet, groups) to the
    dimension, ``choose`` holds dimensions left over, for which the reader picks one label at a
    time. ``parts`` maps further roles of a kind (reference; x, y, z, label of points; words) to
    variables, ``options`` holds what is no variable. ``own`` holds arrays made for this figure,
    which stand in for variables of these names. ``notice`` says what reading the figure left out.
    """

    id: str
    key: str
    node: Node
    kind: str
    title: str
    caption: str
    value: str = ""
    relative: str = ""
    relative_label: str = ""
    select: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    choose: Sequence[str] = ()
    interval: tuple[str, ...] = ()
    bands: Sequence[tuple[str, str, str]] = ()
    regimes: Sequence[RegimeSpec] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, xr.DataArray] = field(default_factory=dict)
    y_scale: str = "linear"
    notice: str = ""
    problem: str = ""

    @property
    def file_stem(self) -> str:
        """Name of the figure's files, without what a file system may not like."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.node.path}-{self.key}").strip("-")
        return stem[:120] or "figure"

    @property
    def variables(self) -> list[str]:
        """All variables that the figure draws, each once."""
        names = [self.value, self.relative, *self.interval]
        for lower, upper, _ in self.bands:
            names += [lower, upper]
        names += self.parts.values()
        for regime in self.regimes:
            names += regime.variables
        return [name for name in dict.fromkeys(names) if name]

    @property
    def own_parts(self) -> list[str]:
        """Parts that are drawn in the unit of the value, so have its relative form."""
        return [self.parts["reference"]] if "reference" in self.parts else []

    @property
    def whole(self) -> tuple[str, ...]:
        """Dimensions that make no sense in part: a cloud's words and the tree of the clouds."""
        if self.kind != "words":
            return ()
        return tuple(str(d) for d in self.own[self.value].dims if d not in self.choose)

    def array_key(self, name: str) -> tuple[str, str]:
        """Return what tells an array from others of its name in the node."""
        return name, self.id if name in self.own else str(self.select)

    def array(self, name: str) -> xr.DataArray:
        """Return what is drawn under a variable's name: the figure's selection of it."""
        if name in self.own:
            return self.own[name]
        return select(self.node.dataset[name], self.select)

    def dataset(self) -> xr.Dataset:
        """Return the figure's variables, whole, with the figure's selection made."""
        arrays = {name: select(self.node.dataset[name], self.select) for name in self.stored}
        return xr.Dataset({name: a.drop_attrs() for name, a in arrays.items()}, attrs={})

    @property
    def stored(self) -> list[str]:
        """The variables that are in the result; the others were made for the figure."""
        return [name for name in self.variables if name in self.node.dataset.variables]


def is_step(dimension: str) -> bool:
    """Return whether a dimension counts training steps (``step``, or ``step_`` of a matrix).

    Examples
    --------
    >>> is_step("step_"), is_step("layer")
    (True, False)
    """
    return dimension.rstrip("_") == "step"


def select(array: xr.DataArray, labels: Mapping[str, Any]) -> xr.DataArray:
    """Return `array` at those of `labels` that name its dimensions."""
    known = {name: label for name, label in labels.items() if name in array.dims}
    try:
        chosen = array.sel(known)
    except (KeyError, ValueError, IndexError):
        raise Problem(f"The selection {dict(labels)!r} is not in {array.name!r}.") from None
    return chosen.reset_coords(drop=True)
