"""Points in a plane or in space, coloured by step, number or kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ...words.labels import truncate
from ..colours import ramp_at
from ..scales import pick_ticks
from .frame import FONT, PAGE, Frame, colour_bar, set_log_ticks
from .view import FigureView, Panel, norm_of, span_of

# No more points than this have their names beside them.
_NAMED = 12

# Kinds that the legend names; more are counted.
_KINDS = 12

_MARKS = ("o", "D", "s", "^", "P", "X")
_VIEW = {"elev": 26.0, "azim": -60.0}


@dataclass(frozen=True)
class _Paint:
    """Colours of all points of a panel, and what explains them."""

    colours: list[Any]
    marks: list[str]
    bar: ScalarMappable | None = None
    ticks: Sequence[tuple[float, str]] = ()
    legend: Sequence[Any] = ()


def draw_scatter(view: FigureView) -> Figure:
    """Return the figure."""
    panels = view.panels
    figure = view.figure
    names = [name for name in (figure.x, figure.y, figure.z) if name]
    space = len(names) == 3
    clouds = [_cloud(view, panel, names) for panel in panels]
    paints = [_paint(view, panel) for panel in panels]
    frame: Any = _SpaceFrame(view) if space else Frame(view, 2.4, across=3)
    for axes, panel, cloud, paint in zip(
        frame.axes, panels, clouds, paints, strict=True
    ):
        good = np.isfinite(cloud).all(axis=0)
        if not space:
            _set_scales(axes, view, clouds)
        _draw_points(axes, cloud[:, good], paint, good)
        _name_points(axes, view, panel, cloud, good)
        if not good.any():
            centre = (0.5,) * len(names)
            axes.text(*centre, "not measured", ha="center", transform=axes.transAxes)
    words = [view.drawable.words(name) for name in names]
    if space:
        _set_space(frame.axes, clouds, words)
    else:
        frame.name_axes(*words)
    _explain(frame, view, paints[0])
    return frame.figure


class _SpaceFrame:
    """A figure with one axes in space for each panel."""

    def __init__(self, view: FigureView) -> None:
        panels = view.panels
        if view.ax is not None:
            self.axes: list[Any] = [view.ax]
            self.figure: Any = view.ax.figure
            return
        count = len(panels)
        rows = math.ceil(count / 2)
        columns = math.ceil(count / rows)
        self.figure = Figure(figsize=(PAGE if count > 1 else 4.6, 3.4 * rows + 0.2))
        self.figure.subplots_adjust(
            left=0.02, right=0.84, bottom=0.06, top=0.93, wspace=0.15
        )
        self.axes = [
            self.figure.add_subplot(rows, columns, i + 1, projection="3d")
            for i in range(count)
        ]
        for axes, (title, _) in zip(self.axes, panels, strict=True):
            axes.set_title(title)

    def legend(self, handles: Sequence[Any]) -> None:
        """Explain the colours at the right."""
        if handles:
            self.figure.legend(handles=handles, loc="center right", frameon=False)


def _cloud(view: FigureView, panel: Panel, names: Sequence[str]) -> np.ndarray:
    """Return the coordinates of all points, NaN where a logarithmic axis cannot show them."""
    cloud = np.stack([_along(view, panel, name) for name in names])
    if len(names) == 2:
        for values, scale in zip(
            cloud, (view.figure.x_scale, view.figure.y_scale), strict=True
        ):
            if scale == "log":
                values[~(values > 0)] = np.nan
    return cloud


def _along(view: FigureView, panel: Panel, name: str) -> np.ndarray:
    """Return an array of the points that are drawn, in their order."""
    array = view.at(name, panel)
    sizes = {d: n for d, n in _sizes(view).items() if d not in array.dims}
    flat = array.expand_dims(sizes).transpose(*view.figure.points).values.ravel()
    return _sample(view, flat if flat.dtype == object else flat.astype(float))


def _sizes(view: FigureView) -> dict[str, int]:
    return {d: len(view.axis_of(d)) for d in view.figure.points}


def _sample(view: FigureView, points: np.ndarray) -> np.ndarray:
    indices = view.drawable.drawn
    return points if indices is None else points[np.asarray(indices)]


def _paint(view: FigureView, panel: Panel) -> _Paint:
    name = view.figure.colour
    if name is None or (
        view.drawable.colour_dimension and name not in view.figure.points
    ):
        return _alike(view, panel)
    if view.drawable.colour_dimension:
        return _painted_along(view, name)
    values = _along(view, panel, name)
    if values.dtype == object:
        names, places = np.unique(values.astype(str), return_inverse=True)
        return _kinds(view, names.tolist(), places, None)
    return _numbered(values, ScalarMappable(norm_of(values), _ramp(view)), ())


def _painted_along(view: FigureView, dimension: str) -> _Paint:
    """Colour points by their label along one of their dimensions."""
    axis = view.axis_of(dimension)
    sizes = _sizes(view)
    places = _sample(
        view, np.indices(tuple(sizes.values()))[list(sizes).index(dimension)].ravel()
    )
    if axis.kind == "category":
        colours = (
            [colour for colour, _ in view.looks_of(axis)]
            if axis.group is not None
            else None
        )
        return _kinds(view, axis.short, places, colours)
    values = axis.places(view.scale)[places]
    if axis.kind == "number":
        return _numbered(values, ScalarMappable(norm_of(values), _ramp(view)), ())
    ticks = pick_ticks(view.scale.ticks(), 150, FONT * 0.62)
    marks = [(tick.position, tick.label) for tick in ticks]
    return _numbered(values, ScalarMappable(Normalize(0, 1), _ramp(view)), marks)


def _ramp(view: FigureView) -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("values", view.marks)


def _alike(view: FigureView, panel: Panel) -> _Paint:
    count = len(_along(view, panel, view.figure.x))
    return _Paint([view.base["ink"]] * count, ["o"] * count)


def _numbered(
    values: np.ndarray, bar: ScalarMappable, ticks: Sequence[tuple[float, str]]
) -> _Paint:
    colours = list(map(tuple, bar.to_rgba(np.nan_to_num(values))))
    return _Paint(colours, ["o"] * len(values), bar, ticks)


def _kinds(
    view: FigureView,
    names: Sequence[str],
    places: np.ndarray,
    colours: list[str] | None,
) -> _Paint:
    last = max(len(names) - 1, 1)
    looks = colours or [ramp_at(view.marks, k / last) for k in range(len(names))]
    marks = _MARKS if len(names) <= len(_MARKS) else ("o",) * len(names)
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=marks[k],
            color=looks[k],
            markersize=3.6,
            markeredgewidth=0,
            label=truncate(name or "none", 24),
        )
        for k, name in enumerate(names[:_KINDS])
    ]
    if len(names) > _KINDS:
        handles.append(
            Line2D([], [], linestyle="", label=f"and {len(names) - _KINDS} more")
        )
    numbers = places.astype(int).tolist()
    return _Paint(
        [looks[k] for k in numbers], [marks[k] for k in numbers], legend=handles
    )


def _set_scales(axes: Axes, view: FigureView, clouds: list[np.ndarray]) -> None:
    """Give both axes the span of all panels."""
    scales = {"x": view.figure.x_scale, "y": view.figure.y_scale}
    for k, (letter, scale) in enumerate(scales.items()):
        logarithmic = scale == "log"
        if logarithmic:
            set_log_ticks(axes, letter)
        span = span_of([cloud[k] for cloud in clouds], logarithmic)
        (axes.set_xlim if letter == "x" else axes.set_ylim)(*span)


def _draw_points(axes: Any, cloud: np.ndarray, paint: _Paint, good: np.ndarray) -> None:
    count = cloud.shape[1]
    size = 3
    if count <= 400:
        size = 14 if count <= 60 else 8
    rows = np.flatnonzero(good)
    marks = np.asarray(paint.marks)[rows]
    for mark in dict.fromkeys(marks.tolist()):
        members = np.flatnonzero(marks == mark)
        axes.scatter(
            *cloud[:, members],
            s=size,
            marker=mark,
            linewidths=0,
            rasterized=count > 1000,
            c=[paint.colours[rows[i]] for i in members],
            alpha=0.9 if count <= 400 else 0.6,
        )


def _name_points(
    axes: Any, view: FigureView, panel: Panel, cloud: np.ndarray, good: np.ndarray
) -> None:
    """Write names beside the points where they are few."""
    if not view.figure.label or good.sum() > _NAMED:
        return
    names = _along(view, panel, view.figure.label)
    for i in np.flatnonzero(good):
        name = truncate(str(names[i]), 18)
        if len(cloud) == 3:
            axes.text(*cloud[:, i], f" {name}", fontsize=FONT - 1)
        else:
            axes.annotate(
                name,
                cloud[:, i],
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=FONT - 1,
            )


def _set_space(
    panels: Sequence[Any], clouds: list[np.ndarray], names: Sequence[str]
) -> None:
    """Give the three axes one unit length, and all panels the same."""
    points = [
        np.concatenate([c[k][np.isfinite(c).all(axis=0)] for c in clouds])
        for k in range(3)
    ]
    spans = [span_of([values]) if values.size else (0.0, 1.0) for values in points]
    half = max(high - low for low, high in spans) / 2
    for axes in panels:
        middles = [(low + high) / 2 for low, high in spans]
        limits = (axes.set_xlim, axes.set_ylim, axes.set_zlim)
        for setter, middle in zip(limits, middles, strict=True):
            setter(middle - half, middle + half)
        axes.set_box_aspect((1, 1, 1))
        axes.view_init(**_VIEW)
        axes.tick_params(pad=-2)
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_major_locator(MaxNLocator(4))
        setters = (axes.set_xlabel, axes.set_ylabel, axes.set_zlabel)
        for setter, name in zip(setters, names, strict=True):
            setter(truncate(str(name), 30), labelpad=-3)


def _explain(frame: Any, view: FigureView, paint: _Paint) -> None:
    frame.legend(paint.legend)
    if paint.bar is None:
        return
    bar = colour_bar(frame, paint.bar, pad=0.1, fraction=0.04)
    if paint.ticks:
        bar.set_ticks(
            [at for at, _ in paint.ticks], labels=[words for _, words in paint.ticks]
        )
    title = view.drawable.colour_dimension or view.drawable.words(view.figure.colour)
    bar.set_label(truncate(title, 40))
