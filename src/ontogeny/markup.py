"""Tables of text and small pieces of HTML, in which no text does anything where it is read."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# A sign alone is none, such as that of an orthant.
_FORMULA = re.compile(r"[=@\t\r]|[+-].")
_WIDTH = 100
_BLOCK = '<pre style="white-space:pre-wrap;line-height:1.45">{code}</pre>'
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf", re.IGNORECASE)


def html_table(
    heads: Sequence[str], lines: Iterable[Sequence[str]], more: str = ""
) -> str:
    """Return a table, and under it in small what it leaves out.

    Examples
    --------
    >>> html_table(["layer"], [["<b>"]], "1 of 2 rows")
    '<table><tr><th>layer</th></tr><tr><td>&lt;b&gt;</td></tr></table><small>1 of 2 rows</small>'
    """
    body = [_line("th", heads)] if any(heads) else []
    body += [_line("td", line) for line in lines]
    return f"<table>{''.join(body)}</table>{f'<small>{escape(more)}</small>' if more else ''}"


def html_block(title: str, text: str, *parts: str) -> str:
    """Return a title with what is said of it; `parts` under them are HTML already.

    Examples
    --------
    >>> html_block("runs/<1>", "12 checkpoints")
    '<div><b>runs/&lt;1&gt;</b> 12 checkpoints</div>'
    """
    return f"<div><b>{escape(title)}</b> {escape(text)}{''.join(parts)}</div>"


def text_table(*rows: Sequence[str]) -> list[str]:
    """Return rows as lines of text, each column as wide as it must be.

    Examples
    --------
    >>> text_table(("node", "why"), ("loss", "no texts"))
    ['node  why', 'loss  no texts']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def csv_text(frame: pd.DataFrame) -> str:
    r"""Return a table as CSV in which no text is a formula for a spreadsheet.

    A text that begins with = + - @ or white space that spreadsheets skip gets an apostrophe before
    it, unless it is a number: tokens, layers and titles come from strangers.

    Examples
    --------
    >>> import pandas as pd
    >>> csv_text(pd.DataFrame({"token": ["=cmd()", "-0.5"], "loss": [-1.0, 2.0]}))
    "token,loss\n'=cmd(),-1.0\n-0.5,2.0\n"
    """
    plain = frame.rename(columns=_no_formula)
    texts = plain.select_dtypes(exclude="number").map(_no_formula)
    return str(plain.assign(**texts).to_csv(index=False))


def _no_formula(value: Any) -> Any:
    if (
        not isinstance(value, str)
        or not _FORMULA.match(value)
        or _NUMBER.fullmatch(value)
    ):
        return value
    return f"'{value}"


def _line(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def as_text(view: Any) -> str:
    """Return what rich shows as plain text."""
    console = _shown(view, color_system=None)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def as_html(view: Any) -> str:
    """Return what rich shows as HTML, in colours of its own alone: for light and dark pages."""
    console = _shown(view, color_system="truecolor")
    return str(console.export_html(inline_styles=True, code_format=_BLOCK))


def _shown(view: Any, color_system: Any) -> Any:
    """Return a console that has recorded what rich shows."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=_WIDTH,
        color_system=color_system,
        force_terminal=False,
        emoji=False,
        record=True,
    )
    console.print(view, highlight=False, markup=False)
    return console
