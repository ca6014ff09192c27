"""Figures' data and pictures as files, for papers and for other programs."""

from __future__ import annotations

import re
from pathlib import Path

import xarray as xr

from .chart import draw_chart
from .content import read_content
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
    dimensions, then the variables, all points, unrounded.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result.

    Examples
    --------
    >>> import tempfile
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> [p.name for p in write_figures(xr.DataTree.from_dict({"loss": data}), tempfile.mkdtemp())]
    ['chart.svg']
    """
    content = read_content(tree)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    chart = target / "chart.svg"
    chart.write_text(draw_chart(content, style=chart_style()).svg, encoding="utf-8")
    written = [chart]
    for node in content.nodes:
        for number, spec in enumerate(read_specs(node), start=1):
            if spec.problem:
                continue
            path = target / _file_name(node.path, spec.key or str(number), written)
            write_table(spec, path)
            written.append(path)
    return written


def write_table(spec: FigureSpec, path: Path) -> None:
    """Write a figure's data as CSV in long form: a row for each point, dimensions first."""
    data = spec.dataset()
    order = [str(d) for d in data[spec.value].dims]
    table = data.to_dataframe(dim_order=order)
    table.reset_index()[[*order, *spec.variables]].to_csv(path, index=False)


def _file_name(node: str, figure: str, written: list[Path]) -> str:
    stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{node}-{figure}").strip("-")[:120] or "figure"
    names = {path.name for path in written}
    name, number = f"{stem}.csv", 2
    while name in names:
        name, number = f"{stem}-{number}.csv", number + 1
    return name
