"""Curves: a line for each label of a series, with intervals and labelled grey bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...words.labels import truncate
from .frame import (
    FONT,
    AuditMarks,
    Frame,
    colour_bar,
    set_dimension_axis,
    set_log_ticks,
)
from .view import FigureView, Panel, span_of

# Lines that are labelled at their ends; more have a colour bar.
_DIRECT = 6

# How a reference is drawn.
_DASHED = (0, (4, 3))

# How nulls without width are drawn, one after the other.
_LEVELS = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (2, 2)))

_BAND_ALPHAS = (0.32, 0.18)

_OF_LINES = ", in the colour of their line"


def draw_curves(view: FigureView) -> Figure:
    """Return the figure."""
    panels = view.panels
    names = [truncate(name, 18) for name in view.labels("series")]
    frame = Frame(view, 1.75 if len(panels) < 4 else 1.35, across=3)
    logarithmic = view.figure.y_scale == "log"
    ends = view.figure.interval or ()
    lines = [[view.values(p, "series", "x"), *_beside(view, p, ends)] for p in panels]
    theories = [_beside(view, panel, [view.figure.reference]) for panel in panels]
    bands = [_bands(view, panel) for panel in panels]
    span = span_of(list(chain(*lines, *bands, *theories)), logarithmic)
    direct = view.dimension("series") is not None and len(names) <= _DIRECT
    for i, (axes, panel) in enumerate(zip(frame.axes, panels, strict=True)):
        if logarithmic:
            set_log_ticks(axes)
        axes.set_ylim(*span)
        _draw_panel(axes, view, panel, lines[i], bands[i])
        _draw_theory(axes, view, theories[i])
        draw_regimes(axes, view, panel)
        set_dimension_axis(axes, view, "x", frame.panel_width)
        if direct and not frame.given and i in frame.last_in_rows:
            _label_ends(axes, view, lines[i][0], names, span, frame.panel_height)
    frame.name_axes(view.axis_words("x"), view.value_words)
    lines_named = _named_lines(view, names) if direct and frame.given else []
    frame.legend(lines_named + _legend(view, frame.axes[0], bands[0]))
    if view.dimension("series") is not None and not direct:
        _series_bar(frame, view, [name.removeprefix("layer ") for name in names])
    return frame.figure


def _beside(
    view: FigureView, panel: Panel, names: Sequence[str | None]
) -> list[np.ndarray]:
    """Return what is drawn beside the values, each of shape (series, x)."""
    return [view.companion(name, panel, "series", "x") for name in names if name]


def _draw_theory(axes: Axes, view: FigureView, theory: list[np.ndarray]) -> None:
    places = view.axis("x").places(view.scale)
    for values in theory:
        for line, (colour, _) in zip(values, view.looks("series"), strict=True):
            axes.plot(places, line, color=colour, linewidth=0.9, linestyle=_DASHED)


def _bands(view: FigureView, panel: Panel) -> list[np.ndarray]:
    """Return every band as (2, parts, x): one part, or one for each line where they differ."""
    bands = []
    for band in view.figure.bands:
        ends = np.stack(_beside(view, panel, (band.lower, band.upper)))
        alike = np.array_equal(
            ends, ends[:, :1].repeat(ends.shape[1], axis=1), equal_nan=True
        )
        bands.append(ends[:, :1] if alike else ends)
    return bands


def _band_look(
    view: FigureView, k: int, line: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Return how a band is drawn; of control runs, and of one line, it is lighter, with edges."""
    colour, dash = line or (view.base["null"], "-")
    if line or view.figure.bands[k].control:
        # Bands from zero on overlap.
        share = 0.16 if view.figure.bands[k].control else 0.06
        return {
            "facecolor": to_rgba(colour, share),
            "edgecolor": colour,
            "linewidth": 0.8,
            "linestyle": ":" if dash == "-" else dash,
        }
    return {"color": colour, "alpha": _BAND_ALPHAS[k % 2], "linewidth": 0}


def _level_look(
    view: FigureView, k: int, line: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Return how a null without width is drawn; dashes tell it from its line, and in the key."""
    colour = line[0] if line else view.base["null"]
    dash = _LEVELS[(k + bool(line)) % len(_LEVELS)]
    return {"color": colour, "linewidth": 1.2, "linestyle": dash}


def _draw_panel(
    axes: Axes,
    view: FigureView,
    panel: Panel,
    lines: list[np.ndarray],
    bands: list[np.ndarray],
) -> None:
    places = view.axis("x").places(view.scale)
    for k, band in enumerate(bands):
        lines_of = view.looks("series") if band.shape[1] > 1 else [None]
        for low, high, line in zip(*band, lines_of, strict=True):
            axes.fill_between(places, low, high, **_band_look(view, k, line))
            if _flat((low, high)):
                axes.plot(places, low, **_level_look(view, k, line), zorder=1)
    values, *ends = lines
    for s, (colour, dash) in enumerate(view.looks("series")):
        if ends:
            axes.fill_between(
                places, ends[0][s], ends[1][s], color=colour, alpha=0.14, linewidth=0
            )
        axes.plot(places, values[s], color=colour, linestyle=dash)
        # Points without a neighbour, which a line does not show.
        is_finite = np.pad(np.isfinite(values[s]), 1)
        lonely = is_finite[1:-1] & ~is_finite[:-2] & ~is_finite[2:]
        axes.plot(places[lonely], values[s][lonely], "o", color=colour, markersize=2.5)
    gaps = view.failed(panel, "series", "x").any(axis=0)
    # An empty line that is not clipped would take room at the corner of the figure.
    if gaps.any():
        axes.plot(
            places[gaps],
            np.zeros(gaps.sum()),
            "x",
            transform=axes.get_xaxis_transform(),
            color=view.base["ink-2"],
            markersize=3.5,
            markeredgewidth=0.8,
            clip_on=False,
        )
    if not np.isfinite(values).any():
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)


def _flat(band: Any) -> bool:
    """Return whether a band is a line."""
    return bool(np.array_equal(band[0], band[1], equal_nan=True))


def _label_ends(
    axes: Axes,
    view: FigureView,
    values: np.ndarray,
    names: list[str],
    span: tuple[float, float],
    height: float,
) -> None:
    """Name every line at its right end, names moved apart, in the line's colour."""
    logarithmic = view.figure.y_scale == "log"
    low, high = np.log(span) if logarithmic else span
    ends = []
    for line, name, (colour, dash) in zip(
        values, names, view.looks("series"), strict=True
    ):
        finite = line[np.isfinite(line)]
        if finite.size and not (logarithmic and finite[-1] <= 0):
            last = np.log(finite[-1]) if logarithmic else finite[-1]
            ends.append((float((last - low) / (high - low)), name, colour, dash))
    ends.sort(key=lambda end: end[0])
    gap = 1.25 * FONT / 72 / height
    for (at, name, colour, dash), to in zip(
        ends, _apart([e[0] for e in ends], gap), strict=True
    ):
        axes.annotate(
            name,
            xy=(1.0, at),
            xycoords="axes fraction",
            xytext=(1.07, to),
            textcoords="axes fraction",
            va="center",
            ha="left",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "linestyle": dash,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )


def _apart(heights: list[float], gap: float) -> list[float]:
    """Move sorted heights apart to at least `gap`, none above 1."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else height)
    highest = 1.0
    for k in range(len(moved) - 1, -1, -1):
        moved[k] = min(moved[k], highest)
        highest = moved[k] - gap
    return moved


def _legend(view: FigureView, axes: Axes, bands: Sequence[np.ndarray]) -> list[Any]:
    """Name the nulls and the marks that stand in the first panel; lines are named beside them."""
    handles: list[Any] = []
    for k, band in enumerate(view.figure.bands):
        if not band.label:
            continue
        words = band.label + (_OF_LINES if bands[k].shape[1] > 1 else "")
        if _flat(bands[k]):
            handles.append(Line2D([], [], **_level_look(view, k), label=words))
        else:
            handles.append(Patch(**_band_look(view, k), label=words))
    if view.figure.reference:
        ink = view.base["ink"]
        words = view.figure.reference_label
        handles.append(
            Line2D([], [], color=ink, linewidth=0.9, linestyle=_DASHED, label=words)
        )
    return handles + [line for line in axes.get_lines() if isinstance(line, AuditMarks)]


def _named_lines(view: FigureView, names: Sequence[str]) -> list[Line2D]:
    """Name the lines in the legend, where there may be no room beside the caller's axes."""
    looks: Any = zip(view.looks("series"), names, strict=True)
    return [
        Line2D([], [], color=c, linestyle=dash, label=name) for (c, dash), name in looks
    ]


def _series_bar(frame: Frame, view: FigureView, names: list[str]) -> None:
    """Draw a colour bar for more lines than can be labelled."""
    count = len(names)
    every = -(-count // 8)
    colours = ListedColormap([colour for colour, _ in view.looks("series")])
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    bar = colour_bar(frame, ScalarMappable(norm, colours))
    bar.set_ticks(
        list(range(0, count, every)), labels=[truncate(n, 16) for n in names[::every]]
    )
    bar.minorticks_off()
    bar.ax.tick_params(length=0)
    bar.ax.set_title(str(view.dimension("series")), fontsize=FONT)


_ENDS = (-0.03, 1.03)
# How strong the shades are of the noisier side and of the interval.
_SIDE = 0.14
_INTERVAL = 0.3


def draw_regimes(axes: Axes, view: FigureView, panel: Panel) -> None:
    """Draw the boundaries of one panel: one for all lines, or one for each line."""
    labels: list[str] = []
    for regime in view.figure.boundaries:
        steps = (
            _read(view, panel, name) for name in (regime.step, regime.low, regime.high)
        )
        at, low, high = map(view.scale.positions, steps)
        if len(at) > 1:
            _draw_own(axes, view, at, low, high)
        elif _ENDS[0] <= at[0] <= _ENDS[1]:
            # Not NaN, nor beyond the steps that are drawn.
            ratio = _read(view, panel, regime.noise_ratio)[0]
            _draw_shared(axes, view, (at[0], low[0], high[0]), ratio)
            if regime.label not in labels:  # lines that look alike are named once
                _name(axes, view, regime.label, at[0], len(labels))
                labels.append(regime.label)


def _read(view: FigureView, panel: Panel, name: str | None) -> np.ndarray:
    """Return one number, or one for each line; NaN where there is none."""
    if name is None:
        return np.full(len(view.labels("series")), np.nan)
    return np.atleast_1d(view.at(name, panel).values.astype(float))


def _draw_shared(
    axes: Axes, view: FigureView, places: tuple[float, float, float], ratio: float
) -> None:
    at, low, high = places
    grey = view.base["null"]
    ink = view.base["ink-2"]
    if np.isfinite(ratio) and ratio != 1:
        side = (at, _ENDS[1]) if ratio > 1 else (_ENDS[0], at)
        axes.axvspan(*side, color=grey, alpha=_SIDE, linewidth=0, zorder=0)
    if np.isfinite(low) and np.isfinite(high):
        axes.axvspan(low, high, color=grey, alpha=_INTERVAL, linewidth=0, zorder=0)
    axes.axvline(at, color=ink, linewidth=0.8, zorder=1)


def _name(axes: Axes, view: FigureView, label: str, at: float, line: int) -> None:
    """Write a name beside its boundary, each a line below the one before."""
    right = at > 0.6
    axes.annotate(
        label,
        xy=(at, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-2 if right else 2, -1 - 1.2 * FONT * line),
        textcoords="offset points",
        color=view.base["ink-2"],
        ha="right" if right else "left",
        va="top",
    )


def _draw_own(
    axes: Axes, view: FigureView, at: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Draw a line in each colour; intervals lie above one another under the upper edge."""
    across = axes.get_xaxis_transform()
    pitch = min(0.03, 0.4 / len(at))
    for row, (colour, _) in enumerate(view.looks("series")):
        if not np.isfinite(at[row]):
            continue
        axes.axvline(at[row], color=colour, linewidth=0.7, alpha=0.75, zorder=1)
        if np.isfinite(low[row]) and np.isfinite(high[row]):
            height = 0.98 - pitch * row
            axes.plot(
                [low[row], high[row]],
                [height, height],
                color=colour,
                linewidth=1.6,
                transform=across,
                solid_capstyle="butt",
                label="_interval",
            )
