"""The developmental chart of a result: drawn, as data, and as files."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pandas as pd

from ...errors import check_choice, check_type
from ...trees import MergedResult
from ...words.content import read_content
from ..chart.draw import draw_chart, views_of
from ..drawing import check_drawing
from ..figures.frames import chart_frame
from ..files.overview import chart_words
from ..style import chart_style
from .picture import INLINE_BYTES, Picture


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
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, {"step": [0, 100]}, {"role": "track"})
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
        if self.view == "cells" and len(content := self._cells_svg()) <= INLINE_BYTES:
            return "svg+xml", content, 1020
        return super()._inline()
