"""The table of all claims of the papers, which the site gets when it is built.

An extension of Sphinx: it puts the table in the place of the comment `MARK` of a page, from the
stored claims, and a script that sorts it by the column whose head is clicked. So no hand and no
program keeps a copy of the claims as text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ontogeny_papers.reproduce.stored_claims import CLAIMS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = "<!-- table of claims -->"
HEADS = ("recipe", "claim", "what", "certainty", "numbers")
_MARKUP = re.compile(r"[^\w\s]|_")


def table() -> str:
    """Return every claim as a line of Markdown, with what was measured and its files."""
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        lines = [HEADS, ["---"] * len(HEADS), *map(_cells, csv.DictReader(file))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cells(row: Mapping[str, str]) -> tuple[str, ...]:
    numbers = f"[{row['seeds']}](evidence/{row['numbers']})"
    return (
        f"[{row['recipe']}](evidence/{row['findings']})",
        _claim(row),
        row["kind"],
        ": ".join(filter(None, (row["certainty"], row["reason"]))),
        numbers if row["numbers"] else f"{row['seeds']}, not stored",
    )


def _claim(row: Mapping[str, str]) -> str:
    """Return a claim that opens to its place in the paper, what was measured and its figure."""
    claimed = row["of_paper"] == "yes"
    lines = (
        f"In the paper: {_text(row['source'])}"
        if claimed
        else "The paper does not claim it",
        f"Measured: {_text(row['measured'])}",
        f"Beside it: {_text(row['beside'])}",
        f"Figure: `{row['command']}`",
    )
    heading = f"{row['claim']}{'' if claimed else ' (not claimed)'}"
    return f"<details><summary>{_text(heading)}</summary>{'<br>'.join(lines)}</details>"


def _text(text: str) -> str:
    """Return a text in which nothing is markup, be it of Markdown or of HTML."""
    return _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _filled)
    app.add_js_file("sort-tables.js", loading_method="defer")
    return {"parallel_read_safe": True}


def _filled(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = source[0].replace(MARK, f"\n{table()}")
