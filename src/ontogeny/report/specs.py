"""Figure specifications checked against their data: what is drawn along which dimension."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from .content import Node
from .formats import plain_text
from .labels import slug

__all__ = ["KINDS", "FigureSpec", "Problem", "is_step", "read_specs", "select"]

KINDS = {"curves": ("x", "series"), "heatmap": ("x", "y"), "null": ("rows",)}
"""Kinds that this report draws, with the fields that name their dimensions."""


class Problem(Exception):  # noqa: N818 (not an error of the caller: it is shown in the page)
    """Why a figure cannot be drawn; its text is shown in the figure's place."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure of one node; names are variables or dimensions of the node's dataset.

    ``id`` is unique in the page, ``key`` is what the observable calls the figure.
    ``axes`` maps what a dimension is used for (x, y, rows, series, facet) to the dimension,
    ``choose`` holds dimensions left over, for which the reader picks one label at a time.
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
    y_scale: str = "linear"
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
        return [name for name in dict.fromkeys(names) if name]

    def dataset(self) -> xr.Dataset:
        """Return the figure's variables as a dataset, with the figure's selection made."""
        arrays = {name: select(self.node.dataset[name], self.select) for name in self.variables}
        return xr.Dataset({name: a.drop_attrs() for name, a in arrays.items()}, attrs={})


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


def read_specs(node: Node) -> list[FigureSpec]:
    """Return the figures of `node`; one that cannot be drawn keeps its place and says why."""
    specs: list[FigureSpec] = []
    taken: list[str] = []
    for number, raw in enumerate(node.figures, start=1):
        key = plain_text(raw.get("id") or number)
        taken.append(slug(key, taken))
        spec = FigureSpec(
            id=f"{node.id.removeprefix('section-')}/{taken[-1]}",
            key=key,
            node=node,
            kind=str(raw.get("kind", "")),
            title=plain_text(raw.get("title") or raw.get("id") or "Figure"),
            caption=plain_text(raw.get("caption", "")),
        )
        try:
            specs.append(_checked(spec, raw))
        except Problem as problem:
            specs.append(replace(spec, problem=plain_text(problem)))
    return specs


def _checked(spec: FigureSpec, raw: Mapping[str, Any]) -> FigureSpec:
    if spec.kind not in KINDS:
        raise Problem(f"This version draws {', '.join(KINDS)}; the figure's kind is {spec.kind!r}.")
    labels = dict(raw.get("select") or {})
    value = _variable(spec.node, raw.get("value"), labels)
    if value.size == 0:
        raise Problem(f"{raw['value']!r} holds no values.")
    axes = _axes(spec.kind, raw, value)
    relative = raw.get("relative") or ""
    if relative and _variable(spec.node, relative, labels).dims != value.dims:
        raise Problem(f"{relative!r} must have the dimensions of {raw['value']!r}.")
    return replace(
        spec,
        value=str(raw["value"]),
        relative=relative,
        relative_label=plain_text(raw.get("relative_label", "")),
        select=labels,
        axes=axes,
        choose=[str(d) for d in value.dims if d not in axes.values()],
        interval=_within(spec.node, raw.get("interval") or (), labels, value),
        bands=[_band(spec.node, band, labels, value) for band in raw.get("bands") or ()],
        y_scale="log" if raw.get("y_scale") == "log" else "linear",
    )


def _variable(node: Node, name: Any, labels: Mapping[str, Any]) -> xr.DataArray:
    if name not in node.dataset.variables:
        raise Problem(f"The result has no variable {name!r}.")
    array = select(node.dataset[name], labels)
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise Problem(f"{name!r} holds no numbers.")
    return array


def _axes(kind: str, raw: Mapping[str, Any], value: xr.DataArray) -> dict[str, str]:
    axes = {
        use: str(raw[use])
        for use in (*KINDS[kind], "facet")
        if raw.get(use) and raw[use] in value.dims
    }
    needed = {"curves": ("x",), "heatmap": ("x", "y"), "null": ("rows",)}[kind]
    missing = [raw.get(use) or use for use in needed if use not in axes]
    if missing:
        raise Problem(f"{value.name!r} has no dimension {missing[0]!r}; it has {value.dims}.")
    if len(set(axes.values())) < len(axes):
        raise Problem(f"One dimension of {value.name!r} is used twice: {axes}.")
    return axes


def _within(
    node: Node, names: Sequence[str], labels: Mapping[str, Any], value: xr.DataArray
) -> tuple[str, ...]:
    """Check variables that are drawn with `value`, so may have none but its dimensions."""
    for name in names:
        extra = set(_variable(node, name, labels).dims) - set(value.dims)
        if extra:
            raise Problem(
                f"{name!r} has dimensions {sorted(map(str, extra))} beyond {value.name!r}."
            )
    return tuple(map(str, names))


def _band(
    node: Node, band: Mapping[str, Any], labels: Mapping[str, Any], value: xr.DataArray
) -> tuple[str, str, str]:
    lower, upper = _within(node, (band["lower"], band["upper"]), labels, value)
    return lower, upper, plain_text(band.get("label", ""))
