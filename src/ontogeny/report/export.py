"""Figures' data and pictures as files, for papers and for other programs."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from ..errors import ArgumentError, check_choice
from .chart import draw_chart
from .content import Content, read_content
from .latex import latex_table
from .readers import read_specs
from .rows import Row
from .scales import StepScale
from .specs import FigureSpec
from .style import chart_style
from .table import NodeTable

__all__ = ["FORMATS", "chart_svg", "check_formats", "write_figures"]

FORMATS = ("pdf", "svg", "png")
"""Formats of pictures for papers."""


def chart_svg(tree: xr.DataTree) -> str:
    """Return the developmental chart of a merged result as a standalone SVG image.

    It follows the reader's light or dark setting and needs no page around it.

    Parameters
    ----------
    tree
        Merged result, as ``Study.run`` returns it.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]}, attrs={"role": "track"}
    ... )
    >>> chart_svg(xr.DataTree.from_dict({"loss": data}))[:4]
    '<svg'
    """
    return draw_chart(read_content(tree), style=chart_style()).svg


def write_figures(
    tree: xr.DataTree, folder: str | Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write every figure for papers, with its data as CSV; return the files' paths.

    Files are named after node and figure. A CSV file has one row for each point: first the
    dimensions, then the variables, all points, unrounded; ``chart.csv`` holds the chart's rows.
    Pictures are one or two columns wide, fonts embedded, and the same bytes for the same result;
    ``captions.txt`` holds their titles and captions. A table is written as CSV and as LaTeX.

    Parameters
    ----------
    tree
        Merged result, as ``Study.run`` returns it.
    folder
        Where to write; made if missing, files of the same names are replaced.
    formats
        Of ``"pdf"``, ``"svg"`` and ``"png"``; none writes the data alone.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result or a format is unknown.

    Examples
    --------
    >>> import tempfile
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> tree = xr.DataTree.from_dict({"loss": data})
    >>> [p.name for p in write_figures(tree, tempfile.mkdtemp(), formats=["svg"])]
    ['chart.csv', 'chart.svg', 'captions.txt']
    """
    kinds = check_formats(formats)
    content = read_content(tree)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    table = target / "chart.csv"
    _write_rows(content.rows, table)
    written, captions = [table], []
    if kinds:
        written += _write_chart(content, target, kinds)
        captions.append(_entry("chart", f"Developmental chart: {content.title}", ""))
    for node in content.nodes:
        node_table = NodeTable(node, content, {"log": StepScale(content.steps)}, {})
        for spec in read_specs(node):
            if spec.problem:
                continue
            path = target / _unused_name(spec.file_stem, written)
            write_table(spec, path)
            written.append(path)
            if spec.kind == "table":
                written.append(path.with_suffix(".tex"))
                written[-1].write_text(latex_table(spec.options["table"]), encoding="utf-8")
                captions.append(_entry(path.stem, spec.title, spec.caption))
            elif kinds:
                pictures, caption = _write_pictures(spec, node_table, content, path, kinds)
                written += pictures
                captions.append(_entry(path.stem, spec.title, caption))
    if kinds:
        written.append(target / "captions.txt")
        written[-1].write_text("\n".join(captions), encoding="utf-8")
    return written


def check_formats(formats: Sequence[str]) -> list[str]:
    """Return the formats of pictures, each once.

    Raises
    ------
    ArgumentError
        If one is not of :data:`FORMATS`.

    Examples
    --------
    >>> check_formats(["png", "pdf", "png"])
    ['png', 'pdf']
    """
    if isinstance(formats, str):
        raise ArgumentError(f"formats must be a list such as {[formats]!r}; got {formats!r}.")
    return list(dict.fromkeys(check_choice("formats", kind, FORMATS) for kind in formats))


def _entry(name: str, title: str, caption: str) -> str:
    return "\n".join(filter(None, [name, title, caption])) + "\n"


def _write_chart(content: Content, target: Path, kinds: Sequence[str]) -> list[Path]:
    # Imported here so that the room opens without the plotting library.
    from .paper import draw_chart_figure, save, style

    paths = [target / f"chart.{kind}" for kind in kinds]
    with style():
        figure = draw_chart_figure(content)
        for path in paths:
            if path.suffix == ".svg":
                path.write_text(draw_chart(content, style=chart_style()).svg, encoding="utf-8")
            else:
                save(figure, path, f"Developmental chart: {content.title}", "")
    return paths


def _write_pictures(
    spec: FigureSpec, table: NodeTable, content: Content, beside: Path, kinds: Sequence[str]
) -> tuple[list[Path], str]:
    """Write one figure in every format; return the paths and the caption."""
    from .paper import draw_figure, save, style

    paths = [beside.with_suffix(f".{kind}") for kind in kinds]
    with style():
        figure, chosen = draw_figure(table.figure(spec), table, content)
        caption = " ".join(filter(None, [spec.caption, *chosen]))
        for path in paths:
            save(figure, path, spec.title, caption)
    return paths, caption


def write_table(spec: FigureSpec, path: Path) -> None:
    """Write a figure's data as CSV in long form: a row for each point, dimensions first.

    A table is written as it is read, with its lines under it.
    """
    if spec.kind == "table":
        path.write_text(spec.options["table"].csv, encoding="utf-8")
        return
    data = spec.dataset()
    order = list(dict.fromkeys(str(d) for array in data.values() for d in array.dims))
    table = data.to_dataframe(dim_order=order)
    table.reset_index()[[*order, *spec.stored]].to_csv(path, index=False)


def _write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write the chart's rows in long form: a line for each row and step."""
    names = ("half_step", "half_step_low", "half_step_high", "settled_step", "p_value")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("row", "step", "progress", "distinct", "developed", *names))
        for row in rows:
            common = [_cell(getattr(row, name)) for name in names]
            for step, share, distinct in zip(row.steps, row.progress, row.distinct, strict=True):
                flags = (bool(distinct), row.developed)
                writer.writerow((row.label or row.quantity, step, _cell(share), *flags, *common))


def _cell(value: float) -> str:
    """Return a number as the shortest text that reads back as it, or nothing for NaN."""
    return repr(float(value)) if math.isfinite(value) else ""


def _unused_name(stem: str, written: list[Path]) -> str:
    names = {path.name for path in written}
    name, number = f"{stem}.csv", 2
    while name in names:
        name, number = f"{stem}-{number}.csv", number + 1
    return name
