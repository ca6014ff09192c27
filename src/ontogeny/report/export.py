"""Figures' data and pictures as files, for papers and for other programs."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from .chart import draw_chart
from .content import read_content
from .rows import Row
from .specs import FigureSpec, read_specs
from .style import chart_style

__all__ = ["chart_svg", "write_figures"]


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


def write_figures(tree: xr.DataTree, folder: str | Path) -> list[Path]:
    """Write the data of every figure as CSV and the chart as SVG; return the files' paths.

    A CSV file is named after its node and figure and has one row for each point: first the
    dimensions, then the variables, all points, unrounded. ``chart.csv`` holds the chart's rows.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result.

    Examples
    --------
    >>> import tempfile
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> [p.name for p in write_figures(xr.DataTree.from_dict({"loss": data}), tempfile.mkdtemp())]
    ['chart.svg', 'chart.csv']
    """
    content = read_content(tree)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    chart = target / "chart.svg"
    chart.write_text(draw_chart(content, style=chart_style()).svg, encoding="utf-8")
    table = target / "chart.csv"
    _write_rows(content.rows, table)
    written = [chart, table]
    for node in content.nodes:
        for spec in read_specs(node):
            if spec.problem:
                continue
            path = target / _unused_name(spec.file_stem, written)
            write_table(spec, path)
            written.append(path)
    return written


def write_table(spec: FigureSpec, path: Path) -> None:
    """Write a figure's data as CSV in long form: a row for each point, dimensions first."""
    data = spec.dataset()
    order = [str(d) for d in data[spec.value].dims]
    table = data.to_dataframe(dim_order=order)
    table.reset_index()[[*order, *spec.variables]].to_csv(path, index=False)


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
