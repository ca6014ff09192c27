"""One figure of a result: drawn, as data, and as files."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ArgumentError, MissingExtraError, check_choice, check_type
from ...trees import MergedResult
from ...words.content import Content, read_content
from ..chart.draw import draw_chart, views_of
from ..drawing import check_drawing
from ..figures.drawable import Drawable
from ..figures.frames import chart_frame
from ..files.overview import chart_words
from ..kinds import draw_figure, figure_notes, kind_of, read
from ..run_differences import difference_of
from ..style import chart_style
from .picture import INLINE_BYTES, Picture


class ResultFigure(Picture):
    """A figure of a result, as ``result.figure("concepts-ica/procrustes")`` returns it.

    A notebook shows it where it is the value of a cell.

    Examples
    --------
    >>> import xarray as xr
    >>> from ontogeny.report.notebook.index import FigureIndex
    >>> from ontogeny.figures import Curves, Section, attach
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, {"step": [0, 100]})
    >>> curves = Curves("loss", "Loss on fixed text", value="loss", series=None)
    >>> data = attach(data, Section("Loss", "Mean loss."), [curves])
    >>> figure = FigureIndex(xr.DataTree.from_dict({"loss": data}))["loss/loss"]
    >>> figure
    loss/loss: Loss on fixed text
    >>> figure.data
       step  loss
    0     0   8.3
    1   100   4.2
    >>> figure.matplotlib().get_xlabel()
    'training step'
    """

    def __init__(self, drawable: Drawable, content: Content) -> None:
        self._drawable = drawable
        self._content = content
        self.name = drawable.id
        self.title = str(drawable.figure.title)
        self.table = drawable.table

    @property
    def kind(self) -> str:
        """Such as ``"curves"``, ``"heatmap"`` or ``"table"``."""
        return str(self._drawable.figure.kind)

    @cached_property
    def caption(self) -> str:
        """What is seen in it, and what is left out of the drawing."""
        try:
            notes = [] if self.table is not None else self._notes()
        except MissingExtraError:  # nothing is drawn
            notes = []
        return " ".join(filter(None, [self._drawable.caption, *notes]))

    @cached_property
    def data(self) -> pd.DataFrame:
        """What it draws as a tidy table, unrounded: the dimensions first, then the variables.

        It has the columns of the CSV file that `ontogeny.report.write_figures` writes.
        """
        return kind_of(self._drawable.figure).frame(self._drawable)

    def matplotlib(self, ax: Any = None) -> Any:
        """Draw it with matplotlib.

        Parameters
        ----------
        ax
            Axes to draw on, for a figure with one panel; None makes a figure of a paper's size.

        Returns
        -------
        matplotlib.axes.Axes
            An array of them where the figure has several panels.

        Raises
        ------
        ArgumentError
            If it is a table, or cannot be drawn on one axes; the message says what to do.
        """
        if self.table is not None:
            raise ArgumentError(f"{self.name!r} is a table; .data has its numbers.")
        from ..paper import style

        if ax is not None:
            self._check_axes(ax)
        with style():
            drawing = draw_figure(self._drawable, self._content, ax)
        if ax is not None or self._panels == 1:
            return ax or drawing.axes[0]
        return np.array(drawing.axes[: self._panels])

    def difference(self) -> ResultFigure:
        """Return what sets the run apart from its control runs, or from other runs, as a figure.

        Raises
        ------
        ArgumentError
            If there are no other runs at the same steps.
        """
        difference = difference_of(self._drawable)
        if difference is None:
            raise ArgumentError(
                f"{self.name!r} has no other runs that it could be compared with."
            )
        return ResultFigure(
            replace(difference, id=f"{self.name}-difference"), self._content
        )

    def _notes(self) -> list[str]:
        from ..paper import style

        with style():
            return figure_notes(self._drawable, self._content)

    def _drawn(self) -> Any:
        return draw_figure(self._drawable, self._content)

    @property
    def _panels(self) -> int:
        facet = self._drawable.axes.get("facet")
        if facet is None or kind_of(self._drawable.figure).text:
            return 1
        return len(self._drawable.panels or self._drawable.axis(facet))

    def _check_axes(self, ax: Any) -> None:
        """Refuse axes that the figure does not fit."""
        from matplotlib.axes import Axes

        check_type("ax", ax, Axes)
        if kind_of(self._drawable.figure).text:
            raise ArgumentError(
                f"{self.name!r} is a cloud of words, which makes its own axes."
            )
        if self._panels > 1:
            raise ArgumentError(
                f"{self.name!r} has {self._panels} panels, one for each "
                f"{self._drawable.axes['facet']}: leave out ax, or choose one of them."
            )
        needed = "3d" if getattr(self._drawable.figure, "z", None) else "rectilinear"
        if ax.name != needed:
            raise ArgumentError(
                f"ax must have the projection {needed!r}; it has {ax.name!r}."
            )


def read_figure(drawable: Drawable, content: Content) -> ResultFigure:
    """Return a figure that is in a result.

    Raises
    ------
    ArgumentError
        If it cannot be drawn; the message says why.
    """
    checked = read(drawable)
    if checked.problem:
        raise ArgumentError(f"{drawable.id!r} cannot be drawn: {checked.problem}")
    return ResultFigure(checked, content)


class ResultChart(Picture):
    """The developmental chart of a result, as ``result.chart()`` returns it.

    A notebook shows it where it is the value of a cell.

    Parameters
    ----------
    result
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.
    view
        ``"cells"``: how far each row has gone at every step. ``"intervals"``: when each was
        half-way, with its interval, for several runs a mark for each. None means the first that the
        result has.

    Raises
    ------
    ArgumentError
        If `result` is not a merged result, or has no such view.

    Examples
    --------
    >>> import xarray as xr
    >>> data = xr.Dataset(
    ...     {"loss": ("step", [8.3, 4.2])}, {"step": [0, 100]}, {"role": "track"}
    ... )
    >>> chart = ResultChart(xr.DataTree.from_dict({"loss": data}))
    >>> chart
    chart: Developmental chart: Untitled study
    """

    def __init__(self, result: MergedResult, view: str | None = None) -> None:
        self._content = read_content(result)
        views = views_of(self._content)
        self.view = views[0] if view is None else check_choice("view", view, views)
        self.name, self.title, self._caption = chart_words(self._content, self.view)

    @property
    def caption(self) -> str:
        """What is seen in it."""
        return self._caption

    @cached_property
    def data(self) -> pd.DataFrame:
        """Its rows as a tidy table: a line for each step, or for each run, with the verdicts.

        It has the columns of the CSV file that `ontogeny.report.write_figures` writes.
        """
        return chart_frame(self._content.rows, self.view)

    def matplotlib(self, ax: Any = None) -> Any:
        """Draw it with matplotlib, on `ax` or on a figure of a paper's size; return the axes.

        Raises
        ------
        ArgumentError
            If `ax` is no axes.
        """
        check_drawing()
        from matplotlib.axes import Axes

        from ..paper import draw_chart_figure, style

        check_type("ax", ax, Axes, type(None))
        with style():
            drawing = draw_chart_figure(self._content, self.view, ax)
        return drawing.axes[0] if ax is None else ax

    def _drawn(self) -> Any:
        from ..paper import draw_chart_figure

        return draw_chart_figure(self._content, self.view)

    def _cells_svg(self) -> bytes:
        """Return the page's own drawing, which also has dark colours."""
        return draw_chart(self._content, style=chart_style()).svg.encode()

    def _file(self, kind: str) -> bytes:
        is_cells = kind == "svg" and self.view == "cells"
        return self._cells_svg() if is_cells else super()._file(kind)

    def _inline(self) -> tuple[str, bytes, float]:
        if self.view == "cells":
            content = self._cells_svg()
            if len(content) <= INLINE_BYTES:
                return "svg+xml", content, 1020
        return super()._inline()
