r"""Tables as LaTeX: ``tabular`` with the rules of booktabs, everything escaped."""

from __future__ import annotations

from .cells import Cell, DataTable, Line

__all__ = ["escaped", "latex_table"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "^": r"\textasciicircum{}",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "\n": " ",
    "∞": r"$\infty$",
}


def escaped(text: str) -> str:
    r"""Return `text` as LaTeX prints it.

    Examples
    --------
    >>> print(escaped("50% of layer_1"))
    50\% of layer\_1
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex_table(table: DataTable) -> str:
    """Return a table for a paper; it needs booktabs, and colortbl for shaded cells."""
    words = [True] * len(table.row_heads) + [head.words for head in table.heads]
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[table]{xcolor}",
        f"\\begin{{tabular}}{{{''.join('l' if left else 'r' for left in words)}}}",
        r"\toprule",
    ]
    lines += _spans(table)
    heads = [escaped(f"{h.label} ({h.unit})" if h.unit else h.label) for h in table.heads]
    lines.append(_row([*map(escaped, table.row_heads), *heads]))
    lines.append(r"\midrule")
    for i, line in enumerate(table.lines):
        if i and line.starts:
            lines.append(r"\addlinespace")
        lines.append(_line(line, repeat=line.starts or len(line.labels) == 1))
    if table.footer:
        lines.append(r"\midrule")
        lines += [_line(line, repeat=True) for line in table.footer]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _spans(table: DataTable) -> list[str]:
    """Return the heads above heads with their rules."""
    if not table.spans:
        return []
    cells, rules = [""] * len(table.row_heads), []
    column = len(table.row_heads) + 1
    for over, count in table.spans:
        cells.append(f"\\multicolumn{{{count}}}{{c}}{{{escaped(over)}}}")
        if over:
            rules.append(f"\\cmidrule(lr){{{column}-{column + count - 1}}}")
        column += count
    return [_row(cells), "".join(rules)]


def _line(line: Line, repeat: bool) -> str:
    """Return one row; the label of a group is written on its first row alone."""
    first, *rest = (escaped(label) for label in line.labels)
    return _row([first if repeat else "", *rest, *map(_cell, line.cells)])


def _cell(cell: Cell) -> str:
    if cell.missing:
        return "--"
    text = escaped(" ".join(filter(None, [cell.text, cell.spread])))
    if text.startswith("-"):
        text = f"$-${text[1:]}"
    return f"\\cellcolor{{black!12}}{text}" if cell.shaded else text


def _row(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
