"""Cards and tables as HTML for notebooks: self-contained, everything escaped, light or dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..characters import within
from ..report.concepts.facts import Context, Facts, Token
from ..words.formats import plain_text
from .words import (
    HEADS,
    Markup,
    code_facts,
    effect_facts,
    life_words,
    measured_words,
    row_cells,
    share,
    visible,
    where,
)

# Greys and tints are transparent, so that they fit light and dark pages.
_LINE = "rgba(128,128,128,.45)"
_TINT = "rgba(40,150,190,{:.2f})"
_CARD = (
    f"border:1px solid {_LINE};border-radius:6px;padding:.8em 1em;max-width:42em;"
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;color:inherit"
)
_SMALL = "opacity:.75;font-size:12px"
_MONO = "font-family:ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere"
_WIDTH = 360
_HEIGHT = 54


def concept_card(concept: Facts) -> str:
    """Return the card of a concept."""
    by = f' <span style="{_SMALL}">named by a person</span>' if concept.labelled else ""
    chips = " ".join(_chip(token) for token in concept.tokens)
    flex = "display:flex;gap:1em;justify-content:space-between;align-items:baseline"
    title = f'<strong style="font-size:15px">{_isolated(concept.title)}</strong>{by}'
    place = f'<span style="{_SMALL}">{_text(where(concept))}</span>'
    parts = [
        f'<div style="{flex}">{title}{place}</div>',
        f'<div style="margin:.3em 0">{chips}</div>' if chips else "",
        _line(concept.reason and f"No name: {concept.reason}."),
        _line(concept.note),
        _line(concept.life and life_words(concept.life, concept.unit)),
        _curve(concept),
        _contexts(concept.contexts),
        _facts(concept),
    ]
    border = _CARD.replace("1px solid", "1px dashed") if not concept.name else _CARD
    return f'<div style="{border}">{"".join(parts)}</div>'


def concept_table(heading: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of concepts under its heading."""
    cell = f"padding:.2em .7em;border-bottom:1px solid {_LINE};text-align:left;vertical-align:top"
    lines = [
        "".join(f'<td style="{cell}">{part}</td>' for part in row_cells(row, _MARKUP))
        for row in rows
    ]
    head = "".join(f'<th scope="col" style="{cell}">{name}</th>' for name in HEADS)
    body = "".join(f"<tr>{row}</tr>" for row in lines)
    over = "".join(f"<div>{_text(line)}</div>" for line in heading)
    style = "border-collapse:collapse;color:inherit;font-size:inherit"
    grid = f'<table style="{style}"><thead><tr>{head}</tr></thead>'
    return (
        f'<div style="font-size:13px">{over}{grid}<tbody>{body}</tbody></table></div>'
    )


def _text(value: object) -> str:
    return escape(plain_text(value))


def _isolated(text: str) -> str:
    """Return a text whose direction changes nothing around it."""
    return f"<bdi>{_text(within(text))}</bdi>"


def _line(text: object) -> str:
    return f'<div style="{_SMALL}">{_text(text)}</div>' if text else ""


def _chip(token: Token) -> str:
    style = f"{_MONO};background:rgba(128,128,128,.2);border-radius:4px;padding:0 .35em"
    code = f'<code style="{style}"><bdi>{_text(visible(token.piece))}</bdi></code>'
    return f'<span>{code} <span style="{_SMALL}">{share(token.value)}</span></span>'


def _contexts(contexts: Sequence[Context]) -> str:
    if not contexts:
        return ""
    lines = "".join(f"<div>{_context(context)}</div>" for context in contexts)
    return f'<div style="margin:.5em 0;{_MONO}">{lines}</div>'


def _context(context: Context) -> str:
    """Return a context in one line, every token tinted by its code."""
    spans = []
    for number, (token, code) in enumerate(
        zip(context.pieces, context.codes, strict=True)
    ):
        title = f"{code:.2f} of its largest code" if code >= 0 else "not measured"
        tint = _TINT.format(0.62 * min(max(code, 0.0), 1.0))
        weight = ";font-weight:bold" if number == context.peak else ""
        text = _text(within(token))
        spans.append(
            f'<span style="background:{tint}{weight}" title="{title}">{text}</span>'
        )
    note = f'<span style="{_SMALL}"> text {context.text}</span>'
    return f'<bdi dir="auto">{"".join(spans)}</bdi>{note}'


def _curve(concept: Facts) -> str:
    """Return strength over the steps as a picture, with a mark at the step of the card."""
    values = concept.strength
    is_finite = np.isfinite(values)
    if is_finite.sum() < 2:
        return ""
    x = np.linspace(2, _WIDTH - 2, len(values))
    top = max(float(values[is_finite].max()), 1e-30)
    y = _HEIGHT - 4 - (_HEIGHT - 8) * np.clip(np.nan_to_num(values) / top, 0, 1)
    points = " ".join(
        f"{a:.1f},{b:.1f}" for a, b in zip(x[is_finite], y[is_finite], strict=True)
    )
    at = np.flatnonzero(concept.steps == concept.step)
    mark = (
        f'<line x1="{x[at[0]]:.1f}" x2="{x[at[0]]:.1f}" y1="2" y2="{_HEIGHT - 2}" '
        'stroke="#c2185b" stroke-width="1.5"/>'
        if len(at)
        else ""
    )
    first = int(concept.steps[0])
    last = int(concept.steps[-1])
    label = f"strength from {concept.unit} {first:,} to {concept.unit} {last:,}, at most {top:.2g}"
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" '
        f'height="{_HEIGHT}" preserveAspectRatio="none"><polyline points="{points}" fill="none" '
        f'stroke="currentColor" stroke-width="1.5"/>{mark}</svg>{_line(label)}'
    )


_LEADS = {
    "explained by": "its code is explained by:",
    "near": "near:",
    "removal": "removal:",
}


def _facts(concept: Facts) -> str:
    lines = []
    if concept.name and math.isfinite(concept.concentration):
        lines.append(_text(measured_words(concept)))
    for heading, words in (
        *code_facts(concept, _MARKUP),
        *effect_facts(concept, _MARKUP),
    ):
        lines.append(f"{_LEADS.get(heading, heading)} {words}".lstrip())
    return "".join(f'<div style="{_SMALL}">{line}</div>' for line in lines)


def _token(piece: str) -> str:
    return f'<code style="{_MONO}"><bdi>{_text(visible(piece))}</bdi></code>'


_MARKUP = Markup(_text, _isolated, _isolated, _token, " ")
