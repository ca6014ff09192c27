r"""Tables as LaTeX: ``tabular`` with the rules of booktabs, everything escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from .cells import Cell, DataTable

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
    return _template().render(table=table)


@cache
def _template() -> Template:
    environment = Environment(
        *("<%", "%>", "<<", ">>"),
        loader=PackageLoader("ontogeny.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"tex": escaped, "cell": _cell}
    return environment.get_template("table.tex.j2")


def _cell(cell: Cell) -> str:
    if cell.missing:
        return "--"
    text = escaped(" ".join(filter(None, [cell.text, cell.spread])))
    if text.startswith("-"):
        text = f"$-${text[1:]}"
    return f"\\cellcolor{{black!12}}{text}" if cell.shaded else text
