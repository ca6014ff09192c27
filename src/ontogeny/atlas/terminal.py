"""Cards and tables for terminals and notebooks, as rich shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..characters import END_OF_ISOLATE, ISOLATE, runs_from_the_right, shown, within
from ..report.concepts.facts import Context, Facts
from ..words.catalogue import concepts as say
from .words import (
    HEADS,
    code_facts,
    effect_facts,
    life_words,
    measured_words,
    row_cells,
    tokens_words,
    where,
)

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 40
_BEFORE_PEAK = 32  # characters of a context
_AFTER_PEAK = 34
_TINT = "on cyan"
_STRONG = 0.5  # of the largest code: tokens that are tinted beside the strongest one


def concept_lines(concept: Facts) -> Any:
    """Return the card of a concept as rich shows it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text(shown(concept.title), style="bold")
    by = say.BY_A_PERSON if concept.labelled else ""
    head.append(f"{by}  {where(concept)}", style="dim")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for title, line in _rows(concept):
        grid.add_row(title, line if isinstance(line, Text) else Text(line))
    return Group(head, grid)


def _rows(concept: Facts) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    if concept.tokens:
        rows.append(("tokens", tokens_words(concept.tokens)))
    if concept.reason:
        rows.append(("no name", concept.reason))
    elif math.isfinite(concept.concentration):
        rows.append(("sharpness", measured_words(concept)))
    if concept.note:
        rows.append(("note", concept.note))
    if concept.life is not None:
        rows.append(("life", life_words(concept.life, concept.unit)))
    rows += _curves(concept)
    rows += code_facts(concept)
    rows += _contexts(concept.contexts)
    return rows + effect_facts(concept)


def _contexts(contexts: Sequence[Context]) -> list[tuple[str, Any]]:
    """Return one line a context, with the strongest tokens under each other."""
    before = max(
        (sum(len(within(p)) for p in c.pieces[: c.peak]) for c in contexts), default=0
    )
    lines = [_context(context, min(before, _BEFORE_PEAK)) for context in contexts]
    return [("" if number else "strongest", line) for number, line in enumerate(lines)]


def _curves(concept: Facts) -> list[tuple[str, str]]:
    rows = []
    for title, values in (
        ("strength", concept.strength),
        ("readable", concept.readability),
    ):
        if len(values) > 1 and np.isfinite(values).any():
            finite = values[np.isfinite(values)]
            ends = f"{finite[0]:.2g} to {finite[-1]:.2g}, largest {finite.max():.2g}"
            rows.append((title, f"{bars(values)}  {ends}"))
    return rows


def bars(values: Sequence[float] | np.ndarray) -> str:
    """Return a curve as a line of bars, 0 at the bottom; a gap where a value is not known.

    Examples
    --------
    >>> bars([0, 0.5, float("nan"), 1])
    '▁▅ █'
    """
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) > _MOST_BARS:
        shown = np.linspace(0, len(numbers) - 1, _MOST_BARS).round().astype(int)
        numbers = numbers[shown]
    top = max(float(np.nanmax(numbers, initial=0.0)), 1e-30)
    places = np.nan_to_num(np.clip(numbers / top, 0, 1) * (len(_BARS) - 1))
    return "".join(
        _BARS[round(place)] if math.isfinite(number) else " "
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True)
    )


def _context(context: Context, before: int) -> Any:
    """Return a context in one line, its strongest token in angle quotes after `before` places."""
    from rich.text import Text

    turned = runs_from_the_right("".join(context.tokens))
    line = Text()
    before_peak = Text()
    for number, (token, code) in enumerate(
        zip(context.pieces, context.codes, strict=True)
    ):
        part = before_peak if number < context.peak else line
        if number == context.peak:
            part.append(f"«{within(token)}»", style=f"bold {_TINT}")
        else:
            part.append(within(token), style=_TINT if code >= _STRONG else "")
    tail = before_peak[max(len(before_peak) - before, 0) :]
    line.truncate(_AFTER_PEAK, overflow="ellipsis")
    whole = Text.assemble(
        "".ljust(before - len(tail)), ISOLATE if turned else "", tail, line
    )
    whole.append(END_OF_ISOLATE if turned else "")
    whole.append(f"  (text {context.text})", style="dim")
    return whole


def table_lines(heading: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a table of concepts under its heading as rich shows it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in HEADS[:-1]:
        grid.add_column(
            name, justify="right" if name == "index" else "left", overflow="fold"
        )
    grid.add_column(HEADS[-1], justify="right")
    for row in rows:
        grid.add_row(*map(Text, row_cells(row)))
    parts = [Text(line) for line in heading]
    return Group(*parts, grid) if rows else Group(*parts)
