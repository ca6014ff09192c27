"""What can be looked at, saved and read as numbers: the ways of a figure and of the chart."""

from __future__ import annotations

import abc
import base64
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import ArgumentError, MissingExtraError
from ...markup import csv_text
from ..drawing import check_drawing
from ..figures.cells import DataTable
from ..files.write import FORMATS
from .table import written_html

# A larger SVG is shown as PNG, which grows with the area and not with the number of points.
INLINE_BYTES = 200_000

# How much larger than on paper a picture is on a screen, where it is read from further away.
_SCREEN = 1.4

_PNG_DOTS = 200
_ROWS = 20


class Picture(abc.ABC):
    """A picture of a result, which a notebook shows in its place."""

    name: str
    title: str
    table: DataTable | None = None  # is written instead of a picture

    @property
    @abc.abstractmethod
    def caption(self) -> str:
        """What is seen in it, and what is left out."""

    @property
    @abc.abstractmethod
    def data(self) -> pd.DataFrame:
        """What it draws as a tidy table, unrounded: the dimensions first, then the variables."""

    @abc.abstractmethod
    def matplotlib(self, ax: Any = None) -> Any:
        """Draw it with matplotlib, and return the axes."""

    @abc.abstractmethod
    def _drawn(self) -> Any:
        """Return the picture as a matplotlib figure of its own; within `paper.style`."""

    def _file(self, kind: str) -> bytes:
        """Return the content of its file in one of the `FORMATS`."""
        from ..paper import encoded, style

        with style():
            return encoded(self._drawn(), kind, self.title, self.caption)

    def save(self, path: str | Path) -> Path:
        """Write it as PDF, SVG or PNG, or its data as CSV, by the suffix of `path`.

        Missing folders are made, and an existing file is replaced.

        Raises
        ------
        ArgumentError
            If the suffix is none of these, or a table is to be drawn.
        """
        target = Path(path)
        kind = target.suffix.removeprefix(".").lower()
        kinds = ("csv",) if self.table is not None else (*FORMATS, "csv")
        if kind not in kinds:
            allowed = ", ".join(f".{suffix}" for suffix in kinds)
            what = (
                "a table is saved as"
                if self.table is not None
                else "path must end with one of"
            )
            raise ArgumentError(f"{what} {allowed}; got {str(path)!r}.")
        content = csv_text(self.data).encode() if kind == "csv" else self._file(kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return target

    def __repr__(self) -> str:
        return "\n".join(
            line for line in [f"{self.name}: {self.title}", self.caption] if line
        )

    def _repr_html_(self) -> str:
        try:
            content = (
                self._image() if self.table is None else written_html(self.table, _ROWS)
            )
        except MissingExtraError as error:
            content = f"<p>{escape(str(error))}</p>"
        return (
            f'<figure style="margin:0"><b>{escape(self.title)}</b><br>{content}'
            f"<figcaption><small>{escape(self.caption)}</small></figcaption></figure>"
        )

    def _image(self) -> str:
        """Return an image of its own: styles and names of one picture never meet another's."""
        kind, content, width = self._inline()
        source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
        return (
            f'<img alt="{escape(self.title)}" src="{source}" '
            f'style="width:{width:.0f}px;max-width:100%;background:white">'
        )

    def _inline(self) -> tuple[str, bytes, float]:
        """Return the kind of image, its content, and how wide it is on a screen in pixels."""
        check_drawing()
        import matplotlib

        from ..paper import encoded, style

        with style():
            matplotlib.rc("svg", fonttype="path")  # the reader may not have the font
            figure = self._drawn()
            width = figure.get_figwidth() * 96 * _SCREEN
            content = encoded(figure, "svg", self.title, "")
            if len(content) <= INLINE_BYTES:
                return "svg+xml", content, width
            return "png", encoded(figure, "png", self.title, "", _PNG_DOTS), width
