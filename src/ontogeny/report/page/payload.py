"""The page's data as one block of JSON: every array once, and exact."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from ...words.catalogue.scripted import SCRIPTED
from ...words.content import Content
from ...words.formats import plain_text
from ...words.row_words import (
    MARKS,
    RECORD,
    facts,
    half_facts,
    mark_records,
    record,
    state_words,
)
from ...words.rows import Row
from ..chart.draw import views_of
from ..colours import palettes
from ..figures.axes import Axis
from ..figures.drawable import Drawable
from ..figures.fields import is_text
from ..figures.runs import LINES
from ..figures.tables import latex_table
from ..first_screen.runs import finite
from ..kinds import kind_of
from ..run_differences import derived_names
from ..run_words import band_words, captions, view_code
from ..scales import KINDS, StepScale

Scales = Mapping[str, StepScale]


def json_script(data: Any) -> str:
    r"""Return JSON that can stand inside a ``<script>`` element whatever the strings hold.

    Examples
    --------
    >>> json_script({"layer": "</script>"})
    '{"layer":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def build_payload(
    content: Content, drawables: Sequence[Drawable], charts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything that the page's scripts read."""
    scales = {kind: StepScale(content.steps, kind) for kind in KINDS}
    nodes: dict[str, _NodeData] = {}
    figures = []
    for item in drawables:
        if not item.problem and item.table is None:
            if item.node.id not in nodes:
                nodes[item.node.id] = _NodeData(item, scales)
            figures.append(_figure(item, nodes[item.node.id]))
    return {
        "title": content.title,
        "clock": content.voice.clock,
        "words": content.voice.filled(SCRIPTED),
        "steps": list(content.steps),
        "start": len(content.steps) - 1,
        "scales": {kind: _scale(scale) for kind, scale in scales.items()},
        "layers": list(content.groups.labels),
        "palettes": palettes(len(content.groups.labels)),
        "track": _track(content),
        "findings": [
            {"steps": list(f.steps), "message": f.message} for f in content.findings
        ],
        "boundaries": [
            {
                kind: [
                    finite(p) for p in scale.positions([mark.step, mark.low, mark.high])
                ]
                for kind, scale in scales.items()
            }
            for mark in content.boundaries
        ],
        "rows": [
            {"id": name, "figure": figure_of(row, drawables)} | _row(row, content)
            for name, row in zip(content.row_ids, content.rows, strict=True)
        ],
        "record": list(RECORD),
        "marks": list(MARKS),
        "views": views_of(content),
        "charts": dict(charts),
        "nodes": {name: node.result for name, node in nodes.items()},
        "figures": figures,
        "tables": {
            item.id: {
                "file": item.file_stem,
                "csv": item.table.csv,
                "tex": latex_table(item.table),
            }
            for item in drawables
            if item.table is not None
        },
    }


class _NodeData:
    """Arrays and axes of one node, each stored once however many figures draw it."""

    def __init__(self, drawable: Drawable, scales: Scales) -> None:
        self.scales = scales
        self.places: dict[tuple[str, str], int] = {}
        self.result: dict[str, Any] = {
            "path": drawable.node.path,
            "arrays": [],
            "axes": {},
            "status": _status(drawable),
        }

    def add(self, name: str, drawable: Drawable) -> int:
        """Store a variable and return its place."""
        return self.store(
            drawable.array_key(name), drawable.array(name).rename(name), drawable
        )

    def store(
        self, key: tuple[str, str], array: xr.DataArray, drawable: Drawable
    ) -> int:
        """Store an array under a key that tells it from others of its name."""
        if key in self.places:
            return self.places[key]
        axes = self.result["axes"]
        arrays = self.result["arrays"]
        for dimension in map(str, array.dims):
            if (
                len(axes.get(dimension, {"values": ()})["values"])
                < array.sizes[dimension]
            ):
                axes[dimension] = _axis(drawable.axis(dimension), self.scales)
        data = (
            _encoded_texts(array.values) if is_text(array) else _encoded(array.values)
        )
        head = {
            "name": array.name,
            "dims": list(array.dims),
            "shape": list(array.shape),
        }
        self.places[key] = len(arrays)
        arrays.append(head | data)
        return self.places[key]

    def place(self, name: str, drawable: Drawable) -> dict[str, int]:
        """Store steps as places on every kind of axis."""
        steps = drawable.array(name).astype(float)
        places = {}
        for kind, scale in self.scales.items():
            key = (f"{name} on the {kind} axis", drawable.array_key(name)[1])
            placed = steps.copy(data=scale.positions(steps.values)).rename(key[0])
            places[kind] = self.store(key, placed, drawable)
        return places


def _figure(drawable: Drawable, node: _NodeData) -> dict[str, Any]:
    """Return a figure as it was declared, with the places of its arrays in the node's data."""
    figure = drawable.figure
    arrays = {}
    for name in drawable.variables:
        own = node.add(name, drawable)
        relative = drawable.relative_name(name)
        arrays[name] = [own, node.add(relative, drawable) if relative else None]
    bands = [
        asdict(band) | {"control": band.control}
        for band in getattr(figure, "bands", ())
    ]
    return figure.to_dict() | {
        "bands": bands,
        "id": drawable.id,
        "node": drawable.node.id,
        "file": drawable.file_stem,
        "relative_label": figure.relative_label or "relative",
        "arrays": arrays,
        "placed": {name: node.place(name, drawable) for name in figure.in_steps()},
        "value_label": drawable.label(figure.value),
        "units": drawable.units(figure.value),
        "named": {name: drawable.words(name) for name in drawable.stored},
        "axes": drawable.axes,
        "choose": list(drawable.choose),
        "points": list(drawable.points),
        "colour_dimension": drawable.colour_dimension,
        "panels": drawable.panels,
        "drawn": drawable.drawn,
        "tree": (),
        "heaviest": 0.0,
        **kind_of(figure).payload(drawable),
        "notice": drawable.notices,
        "runs": _runs(drawable, node),
    }


def _runs(drawable: Drawable, node: _NodeData) -> dict[str, Any] | None:
    """Return the runs of a figure, its views of them, and the values of control runs."""
    runs = drawable.runs
    if runs is None:
        return None
    controls = {
        name: node.store(
            (f"{name}_control", drawable.array_key(name)[1]),
            drawable.thin(values),
            drawable,
        )
        for name, values in runs.controls.items()
    }
    views = {
        name: {"axes": view.axes, "choose": list(view.choose), "panels": view.panels}
        for name, view in runs.views.items()
    }
    return {
        "names": list(runs.names),
        "controls": controls,
        "others": list(runs.others),
        "factor": finite(runs.factor),
        "lines": LINES,
        "views": views,
        "captions": captions(drawable, runs),
        "band": band_words(runs),
        "code": view_code(drawable, runs),
        "columns": {
            name: list(derived_names(name, bool(runs.controls)).values())
            for name in filter(None, (drawable.figure.value, drawable.figure.relative))
        },
    }


def _encoded(values: np.ndarray) -> dict[str, str]:
    """Return an array as plotly.js writes it: a type and base64 of little-endian bytes."""
    kind = "f4" if values.dtype == np.float32 else "f8"
    if values.dtype.kind in "biu" and (np.abs(values.astype(float)) < 2**31).all():
        kind = "i4"
    raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"dtype": kind, "bdata": base64.b64encode(raw).decode("ascii")}


def _encoded_texts(values: np.ndarray) -> dict[str, Any]:
    """Return an array of texts: each text once, and for every cell the place of its text."""
    texts, places = np.unique(values.astype(str), return_inverse=True)
    return {"texts": texts.tolist()} | _encoded(places.astype("<i4"))


def _axis(axis: Axis, scales: Scales) -> dict[str, Any]:
    """Return the labels of a dimension; steps with their places and cells on all kinds of axis."""
    data: dict[str, Any] = {"kind": axis.kind, "values": axis.values}
    if axis.kind == "category":
        data["short"] = axis.short
    if axis.group is not None:
        data["group"] = axis.group
    if axis.kind == "step":
        for kind, scale in scales.items():
            at = axis.places(scale).tolist()
            edges = axis.edges(scale).tolist()
            data[kind] = {"at": at, "edges": edges}
    return data


def _status(drawable: Drawable) -> dict[str, Any] | None:
    """Return every cell that is not done, with its reason."""
    if "status" not in drawable.node.dataset:
        return None
    status = drawable.node.dataset["status"]
    status = status.isel({d: i for d, i in drawable.places.items() if d in status.dims})
    texts = np.asarray(status.values, dtype=object)
    places = np.argwhere(texts != "done")
    cells = {
        ",".join(map(str, place)): plain_text(texts[tuple(place)]) for place in places
    }
    return {"dims": list(status.dims), "cells": cells}


def _scale(scale: StepScale) -> dict[str, Any]:
    return {
        "at": scale.positions(scale.steps).round(5).tolist(),
        "span": list(scale.span),
        "ticks": [[round(t.position, 5), t.label, t.rank] for t in scale.ticks()],
        "broken": scale.breaks_at_zero,
    }


def _track(content: Content) -> dict[str, Any] | None:
    track = content.track
    if track is None:
        return None
    return {
        "title": track.title,
        "units": track.units,
        "steps": track.steps.tolist(),
        "values": [finite(v) for v in track.values],
    }


def figure_of(row: Row, drawables: Sequence[Drawable]) -> str:
    """Return the id of the figure that draws a row: of its variable, else of its layers."""
    figures = [
        item for item in drawables if item.node.id == row.section and not item.problem
    ]
    exact = [
        item
        for item in figures
        if row.variable in (item.figure.value, item.figure.relative)
    ]
    rest = [
        item
        for item in figures
        if item.table is None and row.layer and item.figure.value
    ]
    return next((item.id for item in (*exact, *rest)), row.section)


def _row(row: Row, content: Content) -> dict[str, Any]:
    return {
        "label": row.name,
        "group": content.groups.of(row.layer),
        "steps": row.steps.tolist(),
        "progress": {"dims": ["step"], "shape": [len(row.steps)]}
        | _encoded(row.progress),
        "distinct": "".join("1" if d else "0" for d in row.distinct),
        "told": row.changed if row.judgeable else None,
        "state": state_words(row),
        "facts": [content.voice.fill(fact) for fact in facts(row)],
        "halves": [content.voice.fill(fact) for fact in half_facts(row)],
        "marks": [
            [_field(value) for value in mark] for mark in mark_records(row) if row.runs
        ],
        "record": [_field(value) for value in record(row)],
    }


def _field(value: Any) -> Any:
    """Return a field of a record as JSON holds it: NaN as null."""
    return finite(value) if isinstance(value, float) else value
