"""One node's arrays and axes as every renderer reads them, each stored once."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from .content import LAYER_DIMENSIONS, Content, Node
from .fields import is_text
from .formats import plain_text
from .labels import short_names
from .points import drawn_points
from .scales import StepScale
from .specs import FigureSpec, RegimeSpec, is_step
from .thinning import Kept

__all__ = ["STEP_PANELS", "NodeTable", "encode", "encode_texts", "rounded"]

STEP_PANELS = 8
"""Panels of a figure with one panel for each step."""


def rounded(values: np.ndarray) -> list[Any]:
    """Return places on an axis, finer than any screen or page."""
    return np.round(np.asarray(values, dtype=float), 5).tolist()


def encode(values: np.ndarray) -> dict[str, str]:
    """Return an array as plotly.js writes it: a type and base64 of little-endian bytes."""
    if values.dtype == bool or (values.dtype.kind in "iu" and values.dtype.itemsize < 4):
        values = values.astype("<i4")
    kind = {"f": "f8", "i": "i4", "u": "f8"}.get(values.dtype.kind, "f8")
    if values.dtype == np.float32:
        kind = "f4"
    elif values.dtype.kind == "i" and values.size and np.abs(values).max() >= 2**31:
        kind = "f8"
    raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"dtype": kind, "bdata": base64.b64encode(raw).decode("ascii")}


def encode_texts(values: np.ndarray) -> dict[str, Any]:
    """Return an array of texts: each text once, and for every cell the place of its text."""
    texts, places = np.unique(values.astype(str), return_inverse=True)
    return {"texts": texts.tolist()} | encode(places.astype("<i4"))


class NodeTable:
    """Arrays and axes of one node, each stored once however many figures draw it."""

    def __init__(
        self, node: Node, content: Content, scales: Mapping[str, StepScale], kept: Kept
    ) -> None:
        self.node = node
        self.content = content
        self.scales = scales
        self.kept = kept
        self.arrays: list[xr.DataArray] = []
        self.places: dict[tuple[str, str], int] = {}
        self.axes: dict[str, Any] = {}

    def figure(self, spec: FigureSpec) -> dict[str, Any]:
        """Return a figure with its variables replaced by places in the table."""
        relative = {
            name: self.add(f"{name}_relative", spec)
            for name in (*spec.interval, *(n for b in spec.bands for n in b[:2]), *spec.own_parts)
            if spec.relative and f"{name}_relative" in self.node.dataset
        }
        units = plain_text(self.node.dataset[spec.value].attrs.get("units", ""))
        return {
            "id": spec.id,
            "node": self.node.id,
            "kind": spec.kind,
            "file": spec.file_stem,
            "title": spec.title,
            "value": self.add(spec.value, spec),
            "relative": self.add(spec.relative, spec) if spec.relative else None,
            "relativeLabel": spec.relative_label or "relative",
            "label": self.label(spec.value),
            "units": units,
            "axes": dict(spec.axes),
            "choose": list(spec.choose),
            "interval": [self.pair(name, relative, spec) for name in spec.interval],
            "bands": [
                {
                    "lower": self.pair(lower, relative, spec),
                    "upper": self.pair(upper, relative, spec),
                    "label": label,
                }
                for lower, upper, label in spec.bands
            ],
            "regimes": [self.regime(regime, spec) for regime in spec.regimes],
            "parts": {role: self.pair(name, relative, spec) for role, name in spec.parts.items()},
            "partWords": {
                role: self.words(n) for role, n in spec.parts.items() if n in spec.stored
            },
            "options": dict(spec.options),
            "panels": self.panels(spec),
            "drawn": self.drawn(spec),
            "yScale": spec.y_scale,
            "notice": " ".join(filter(None, [self.notice, *self.own_notices(spec)])),
        }

    def label(self, name: str) -> str:
        """Return what a variable is, in words."""
        return plain_text(self.node.dataset[name].attrs.get("long_name", name))

    def words(self, name: str) -> str:
        """Return what a variable is, with its unit."""
        unit = plain_text(self.node.dataset[name].attrs.get("units", "1"))
        return self.label(name) if unit in ("", "1") else f"{self.label(name)} ({unit})"

    def pair(self, name: str, relative: Mapping[str, int], spec: FigureSpec) -> list[int | None]:
        """Places of a variable and of its own relative form, where the result has one."""
        return [self.add(name, spec), relative.get(name)]

    def add(self, name: str, spec: FigureSpec) -> int:
        """Store a variable, thinned, and return its place."""
        return self.store(spec.array_key(name), spec.array(name).rename(name))

    def store(self, key: tuple[str, str], array: xr.DataArray) -> int:
        """Store an array, thinned, under a key that tells it from others of its name."""
        if key not in self.places:
            array = array.isel({d: i for d, i in self.kept.items() if d in array.dims})
            for dimension in array.dims:
                self.axis(str(dimension), array)
            self.places[key] = len(self.arrays)
            self.arrays.append(array.drop_vars(list(array.coords)))
        return self.places[key]

    def regime(self, regime: RegimeSpec, spec: FigureSpec) -> dict[str, Any]:
        """Return a boundary's arrays: in steps, and as places on every kind of axis."""
        ends = {"step": regime.step, "low": regime.low, "high": regime.high}
        ends = {end: name for end, name in ends.items() if name}
        ratio = self.add(regime.noise_ratio, spec) if regime.noise_ratio else None
        stored: dict[str, Any] = {"label": regime.label, "ratio": ratio}
        stored["steps"] = {end: self.add(name, spec) for end, name in ends.items()}
        for kind, scale in self.scales.items():
            stored[kind] = {}
            for end, name in ends.items():
                array = spec.array(name).astype(float)
                placed = array.copy(data=scale.positions(array.values))
                key = (f"{name} on the {kind} axis", str(spec.select))
                stored[kind][end] = self.store(key, placed.rename(key[0]))
        return stored

    def panels(self, spec: FigureSpec) -> list[int] | None:
        """Return which labels of the facet have a panel; of steps no more than a few."""
        facet = spec.axes.get("facet")
        if facet is None or self.axes[facet]["kind"] != "step":
            return None
        count = len(self.axes[facet]["values"])
        if count <= STEP_PANELS:
            return None
        return np.unique(np.linspace(0, count - 1, STEP_PANELS).round().astype(int)).tolist()

    def drawn(self, spec: FigureSpec) -> list[int] | None:
        """Return which points of a scatter's panels are drawn, counted over their dimensions."""
        if spec.kind != "scatter":
            return None
        count = self.count_points(spec)
        points = drawn_points(count, self.count_panels(spec))
        return points.tolist() if len(points) < count else None

    def count_points(self, spec: FigureSpec) -> int:
        """Return how many points a panel has."""
        return math.prod(len(self.axes[d]["values"]) for d in spec.options["points"])

    def count_panels(self, spec: FigureSpec) -> int:
        """Return how many panels a figure has."""
        facet = spec.axes.get("facet")
        return len(self.panels(spec) or self.axes[facet]["values"]) if facet else 1

    def own_notices(self, spec: FigureSpec) -> list[str]:
        """Say in words which panels and points are left out."""
        notices = [spec.notice]
        if panels := self.panels(spec):
            total = len(self.axes[spec.axes["facet"]]["values"])
            notices.append(f"{len(panels)} of {total:,} steps shown, evenly chosen.")
        if points := self.drawn(spec):
            each = " in each panel" if self.count_panels(spec) > 1 else ""
            total = self.count_points(spec)
            notices.append(f"{len(points):,} of {total:,} points{each} shown, drawn at random.")
        return notices

    def axis(self, dimension: str, array: xr.DataArray) -> None:
        """Store the labels of a dimension."""
        known = self.axes.get(dimension)
        if known is not None and len(known["values"]) >= array.sizes[dimension]:
            return
        values = (
            array[dimension].values
            if dimension in array.coords
            else np.arange(array.sizes[dimension])
        )
        if is_step(dimension) and values.dtype.kind in "iuf":
            self.axes[dimension] = self.step_axis(values.astype(int))
        elif values.dtype.kind in "iuf" and np.isfinite(values).all():
            self.axes[dimension] = {"kind": "number", "values": values.tolist()}
        else:
            labels = [plain_text(v) for v in values]
            self.axes[dimension] = self.label_axis(labels, dimension in LAYER_DIMENSIONS)

    def label_axis(self, labels: list[str], layers: bool) -> dict[str, Any]:
        """Return labels, short where they share parts, with the layer chips that they belong to."""
        axis: dict[str, Any] = {
            "kind": "category",
            "values": labels,
            "short": short_names(labels),
        }
        if layers:
            axis["group"] = [self.content.groups.of(label) for label in labels]
        return axis

    def step_axis(self, steps: np.ndarray) -> dict[str, Any]:
        """Return steps with their places and cell edges on both kinds of axis."""
        axis: dict[str, Any] = {"kind": "step", "values": steps.tolist()}
        for kind, scale in self.scales.items():
            axis[kind] = {
                "at": rounded(scale.positions(steps)),
                "edges": rounded(scale.edges(steps)),
            }
        return axis

    def result(self) -> dict[str, Any]:
        """Return the node as the scripts read it."""
        return {
            "path": self.node.path,
            "arrays": [
                {"name": array.name, "dims": list(array.dims), "shape": list(array.shape)}
                | (encode_texts(array.values) if is_text(array) else encode(array.values))
                for array in self.arrays
            ],
            "axes": self.axes,
            "status": self.status(),
        }

    def status(self) -> dict[str, Any] | None:
        """Every cell that is not done, with its reason."""
        if "status" not in self.node.dataset:
            return None
        status = self.node.dataset["status"]
        status = status.isel({d: i for d, i in self.kept.items() if d in status.dims})
        texts = np.asarray(status.values, dtype=object)
        places = np.argwhere(texts != "done")
        return {
            "dims": list(status.dims),
            "cells": {
                ",".join(map(str, place)): plain_text(texts[tuple(place)]) for place in places
            },
        }

    @property
    def notice(self) -> str:
        """What was left out, in words."""
        parts = [
            f"{len(index):,} of {self.node.dataset.sizes[d]:,} along {d}"
            for d, index in self.kept.items()
            if len(index) < self.node.dataset.sizes[d]
        ]
        return f"Thinned to hold the page small: {', '.join(parts)}." if parts else ""
