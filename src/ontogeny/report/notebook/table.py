"""Tables as HTML that needs no style of its own."""

from __future__ import annotations

import pandas as pd

from ...markup import html_table
from ..figures.cells import Cell, DataTable, Head


def table_html(frame: pd.DataFrame, rows: int) -> str:
    """Return the first `rows` rows of a table; every text in it is escaped.

    Examples
    --------
    >>> table_html(pd.DataFrame({"layer": ["<b>", "h.1"], "norm": [0.123456, 2.0]}), 1)
    '<table><tr><th>layer</th><th>norm</th></tr><tr><td>&lt;b&gt;</td><td>0.1235</td></tr>\
</table><small>1 of 2 rows</small>'
    """
    lines = [
        [_text(value) for value in line]
        for line in frame.head(rows).itertuples(index=False)
    ]
    return html_table(
        list(map(str, frame.columns)), lines, _more(len(lines), len(frame))
    )


def written_html(table: DataTable, rows: int) -> str:
    """Return the first `rows` rows of a table as the page writes it, and the lines under it."""
    heads = [*table.row_heads, *map(_head, table.heads)]
    first_rows = table.lines[:rows]
    lines = [
        [*line.labels, *map(_cell, line.cells)] for line in (*first_rows, *table.footer)
    ]
    return html_table(heads, lines, _more(len(first_rows), len(table.lines)))


def _more(count: int, total: int) -> str:
    return f"{count:,} of {total:,} rows" if count < total else ""


def _head(head: Head) -> str:
    label = f"{head.label} ({head.unit})" if head.unit else head.label
    return f"{head.over}: {label}" if head.over else label


def _cell(cell: Cell) -> str:
    return "–" if cell.missing else " ".join(filter(None, [cell.text, cell.spread]))


def _text(value: object) -> str:
    if value is None or value != value:  # NaN
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
