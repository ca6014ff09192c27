"""Figure specifications of a result read, by kind; what cannot be drawn says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import xarray as xr

from .clouds import read_words
from .content import Node
from .fields import numbers, variable, within
from .formats import plain_text
from .labels import slug
from .points import read_scatter
from .specs import KINDS, FigureSpec, Problem, RegimeSpec, is_step
from .tabular import read_table

__all__ = ["read_specs"]

_AXES = {"curves": ("x", "series"), "heatmap": ("x", "y"), "null": ("rows",)}
"""Fields of the kinds with panels that name their dimensions."""

_NEEDED = {"curves": ("x",), "heatmap": ("x", "y"), "null": ("rows",)}


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
            select=dict(raw.get("select") or {}),
        )
        try:
            if spec.kind not in KINDS:
                raise Problem(
                    f"This version draws {', '.join(KINDS)}; the figure's kind is {spec.kind!r}."
                )
            specs.append(_READERS[spec.kind](spec, raw))
        except Problem as problem:
            specs.append(replace(spec, problem=plain_text(problem)))
        except KeyError as missing:
            words = plain_text(f"Its specification lacks {missing}.")
            specs.append(replace(spec, problem=words))
    return specs


def _read_panels(spec: FigureSpec, raw: Mapping[str, Any]) -> FigureSpec:
    """Read what curves, heatmaps and null comparisons share, and what each has of its own."""
    value = numbers(spec, raw.get("value"))
    if value.size == 0:
        raise Problem(f"{raw['value']!r} holds no values.")
    axes = _axes(spec.kind, raw, value)
    relative = raw.get("relative") or ""
    if relative and numbers(spec, relative).dims != value.dims:
        raise Problem(f"{relative!r} must have the dimensions of {raw['value']!r}.")
    reference = raw.get("reference") or ""
    return replace(
        spec,
        value=str(raw["value"]),
        relative=relative,
        relative_label=plain_text(raw.get("relative_label", "")),
        axes=axes,
        choose=[str(d) for d in value.dims if d not in axes.values()],
        interval=within(spec, raw.get("interval") or (), value),
        bands=[_band(spec, band, value) for band in raw.get("bands") or ()],
        regimes=[_regime(spec, item, value, axes) for item in raw.get("boundaries") or ()],
        parts={"reference": within(spec, [reference], value)[0]} if reference else {},
        options={
            "referenceLabel": plain_text(raw.get("reference_label", "")),
            "square": bool(raw.get("square")),
        },
        y_scale="log" if raw.get("y_scale") == "log" else "linear",
    )


def _axes(kind: str, raw: Mapping[str, Any], value: xr.DataArray) -> dict[str, str]:
    axes = {
        use: str(raw[use])
        for use in (*_AXES[kind], "facet")
        if raw.get(use) and raw[use] in value.dims
    }
    missing = [raw.get(use) or use for use in _NEEDED[kind] if use not in axes]
    if missing:
        raise Problem(f"{value.name!r} has no dimension {missing[0]!r}; it has {value.dims}.")
    if len(set(axes.values())) < len(axes):
        raise Problem(f"One dimension of {value.name!r} is used twice: {axes}.")
    return axes


def _band(spec: FigureSpec, band: Mapping[str, Any], value: xr.DataArray) -> tuple[str, str, str]:
    lower, upper = within(spec, (band["lower"], band["upper"]), value)
    return lower, upper, plain_text(band.get("label", ""))


def _regime(
    spec: FigureSpec, item: Mapping[str, Any], value: xr.DataArray, axes: Mapping[str, str]
) -> RegimeSpec:
    """Read a boundary, which has one step for each line or panel, or one for all."""
    if not is_step(axes["x"]):
        raise Problem(f"Boundaries need training steps along x; x is {axes['x']!r}.")
    fields = ("step", "low", "high", "noise_ratio")
    known = {name: str(item[name]) for name in fields if name == "step" or item.get(name)}
    within(spec, list(known.values()), value)
    over_steps = [name for name in known.values() if axes["x"] in variable(spec, name).dims]
    if over_steps:
        raise Problem(f"{over_steps[0]!r} is a boundary and cannot differ from step to step.")
    return RegimeSpec(label=plain_text(item.get("label", "")), **known)


_READERS: dict[str, Callable[[FigureSpec, Mapping[str, Any]], FigureSpec]] = {
    "curves": _read_panels,
    "heatmap": _read_panels,
    "null": _read_panels,
    "table": read_table,
    "scatter": read_scatter,
    "words": read_words,
}
