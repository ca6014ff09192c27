"""Tables of text, and small pieces of HTML for notebooks, in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(heads: Sequence[str], lines: Iterable[Sequence[str]], more: str = "") -> str:
    """Return a table, and under it in small what it leaves out.

    Examples
    --------
    >>> html_table(["layer"], [["<b>"]], "1 of 2 rows")
    '<table><tr><th>layer</th></tr><tr><td>&lt;b&gt;</td></tr></table><small>1 of 2 rows</small>'
    """
    body = [_line("th", heads)] if any(heads) else []
    body += [_line("td", line) for line in lines]
    return f"<table>{''.join(body)}</table>{f'<small>{escape(more)}</small>' if more else ''}"


def html_block(title: str, said: str, *parts: str) -> str:
    """Return a title with what is said of it; `parts` under them are HTML already.

    Examples
    --------
    >>> html_block("runs/<1>", "12 checkpoints")
    '<div><b>runs/&lt;1&gt;</b> 12 checkpoints</div>'
    """
    return f"<div><b>{escape(title)}</b> {escape(said)}{''.join(parts)}</div>"


def text_table(*rows: Sequence[str]) -> list[str]:
    """Return rows as lines of text, each column as wide as it must be.

    Examples
    --------
    >>> text_table(("node", "why"), ("loss", "no texts"))
    ['node  why', 'loss  no texts']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _line(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
