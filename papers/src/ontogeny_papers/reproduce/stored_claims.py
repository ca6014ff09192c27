"""What the recipes said of every claim when they were last run, as a table in the package."""

from __future__ import annotations

import csv
from pathlib import Path

CLAIMS = Path(__file__).with_name("claims.csv")
COLUMNS = (
    "recipe",
    "source",
    "claim",
    "of_paper",
    "kind",
    "certainty",
    "reason",
    "measured",
    "beside",
    "seeds",
    "findings",
    "numbers",
    "command",
)
_SHOWN = ("recipe", "claim", "what", "certainty", "numbers")


def listed(order: str = "recipe") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the table for a terminal, in the order of a column.

    Raises
    ------
    ArgumentError
        If there is no such column.

    Examples
    --------
    >>> heads, rows = listed("certainty")
    >>> heads[3], rows[0][3]
    ('certainty', 'as controls')
    """
    from ontogeny.errors import check_choice

    place = _SHOWN.index(check_choice("--by", order, _SHOWN))
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        rows = [_row(row) for row in csv.DictReader(file)]
    # The file has the order of the recipes.
    return _SHOWN, rows if place == 0 else sorted(rows, key=lambda row: row[place])


def _row(row: dict[str, str]) -> tuple[str, ...]:
    claim = (
        row["claim"] if row["of_paper"] == "yes" else f"{row['claim']} (not claimed)"
    )
    certainty = ": ".join(filter(None, (row["certainty"], row["reason"])))
    stored = row["seeds"] if row["numbers"] else f"{row['seeds']}, not stored"
    return (row["recipe"], claim, row["kind"], certainty, stored)
