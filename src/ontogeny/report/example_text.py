"""Example text: a few texts whose tokens are tinted by their loss, at every step.

The losses are stored in tenths of their unit, one byte each, so that what the page says of a token
with one decimal is the result's number. The scale of the tint is the same at all steps.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..figures import in_words, shown
from .atlas_contexts import FULL, MISSING, packed
from .content import Content, Node
from .formats import plain_text, plural
from .pieces import Pieces
from .rows import half_steps

PARTS = 10
"""Stored losses are whole numbers of this part of their unit."""

MOST_TEXTS, MOST_TOKENS = 12, 256
"""Texts, and tokens of each, that the page holds."""

SCALE_PERCENT = 95
"""The scale ends where this share of all losses lies below it."""

_ISOLATES = str.maketrans("", "", "\N{FIRST STRONG ISOLATE}\N{POP DIRECTIONAL ISOLATE}")


@dataclass(frozen=True)
class Token:
    """A token as it stands in its text; `words` is its name where it holds no letter or digit."""

    text: str
    words: str
    predicted: bool


@dataclass(frozen=True)
class Text:
    """One text: what it is called, the direction it runs in, and its tokens."""

    name: str
    direction: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Example:
    """All that the template shows of the example texts, and what the script reads.

    `top` is the end of the scale, in `units`. ``numbers`` is whether tokens are shown by their ids,
    for want of a tokenizer.
    """

    node: Node
    texts: tuple[Text, ...]
    top: int
    units: str
    numbers: bool
    controls: str
    notices: tuple[str, ...]
    payload: dict[str, Any]


def read_example(content: Content) -> Example | None:
    """Return the texts of the first node that holds losses of tokens, if there is one."""
    node = next((node for node in content.nodes if _usable(node.dataset)), None)
    if node is None:
        return None
    data = node.dataset.isel(text=slice(MOST_TEXTS), place=slice(MOST_TOKENS))
    losses = data["token_loss"].transpose("step", "text", "place").values.astype(float)
    known = ~np.isnan(losses).all(axis=(1, 2))
    ids = data["token_id"].transpose("text", "place").values.astype(int)
    predicted = ~np.isnan(losses).all(axis=0) & (ids >= 0)
    if not predicted.any():
        return None
    losses = np.where(predicted, losses, np.nan)[known]
    steps = data["step"].values[known].astype(int)
    pieces = Pieces.of(data)
    texts = tuple(_text(pieces, ids[t], predicted[t], _name(data, t)) for t in range(ids.shape[0]))
    top = _top(losses)
    units = plain_text(data["token_loss"].attrs.get("units") or "nats")
    return Example(
        node=node,
        texts=texts,
        top=top,
        units=units,
        numbers=not pieces.known or pieces.numbers_only,
        controls=_controls(data, units),
        notices=_notices(node.dataset),
        payload=_payload(content, data, steps, losses, predicted) | {"top": top, "units": units},
    )


def _usable(data: xr.Dataset) -> bool:
    shapes = {"token_loss": {"step", "text", "place"}, "token_id": {"text", "place"}}
    return all(name in data and set(data[name].dims) == dims for name, dims in shapes.items())


def _name(data: xr.Dataset, text: int) -> str:
    number = int(data["text_number"].values[text]) if "text_number" in data else text + 1
    return f"text {number:,}"


def _text(pieces: Pieces, ids: np.ndarray, predicted: np.ndarray, name: str) -> Text:
    """Return one text as far as it goes; it runs as most letters of its predicted tokens do."""
    there = ids >= 0
    raw = [pieces.known.get(int(token), str(token)) for token in ids[there]]
    ordinary = predicted[there]
    tokens = tuple(
        Token(_written(piece), _words(piece), bool(asked))
        for piece, asked in zip(raw, ordinary, strict=True)
    )
    letters = "".join(piece for piece, asked in zip(raw, ordinary, strict=True) if asked)
    kinds = [unicodedata.bidirectional(letter) for letter in letters]
    from_the_right = sum(kind in ("R", "AL") for kind in kinds)
    return Text(name, "rtl" if from_the_right > kinds.count("L") else "ltr", tokens)


def _written(piece: str) -> str:
    """Return a token as part of running text, whose direction the whole text decides."""
    return plain_text(shown(piece).translate(_ISOLATES)) or "∅"


def _words(piece: str) -> str:
    """Return what a token of marks or spaces is called; nothing where it names itself."""
    if any(character.isalnum() for character in piece):
        return ""
    return plain_text(shown(in_words(piece))) if piece else "nothing"


def _top(losses: np.ndarray) -> int:
    """Return the end of the scale: whole, and at all steps the same."""
    most = np.nanpercentile(np.minimum(losses, FULL / PARTS), SCALE_PERCENT)
    return max(math.ceil(float(most)), 1)


def _payload(
    content: Content,
    data: xr.Dataset,
    steps: np.ndarray,
    losses: np.ndarray,
    predicted: np.ndarray,
) -> dict[str, Any]:
    costs = _of_tokens(data, "token_loss_frequencies", predicted)
    lead, before = (
        _of_tokens(data, name, predicted) for name in ("token_leads_from", "token_leads_after")
    )
    rounded = np.clip(np.round(losses * PARTS), 0, FULL)
    return {
        "steps": steps.tolist(),
        "parts": PARTS,
        "full": FULL,
        "losses": packed(np.where(np.isnan(losses), MISSING, rounded).astype(np.uint8)),
        "means": [[_mean(losses[s, t]) for s in range(len(steps))] for t in range(len(predicted))],
        "costs": None if costs is None else [[_finite(c, 1) for c in row] for row in costs],
        "cost": None if costs is None else [_mean(row) for row in costs],
        "lead": None if lead is None else [[_finite(x) for x in row] for row in lead],
        "before": None if before is None else [[_finite(x) for x in row] for row in before],
        "print": _print_steps(content, steps),
    }


def _of_tokens(data: xr.Dataset, name: str, predicted: np.ndarray) -> np.ndarray | None:
    """Return numbers of the predicted tokens, NaN elsewhere; none where the result lacks them."""
    if name not in data or set(data[name].dims) != {"text", "place"}:
        return None
    return np.where(predicted, data[name].transpose("text", "place").values.astype(float), np.nan)


def _finite(value: float, digits: int = 0) -> float | None:
    if not math.isfinite(value):
        return None
    return round(float(value), digits) if digits else round(value)


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of what was measured; none where there is nothing or it is infinite."""
    known = values[~np.isnan(values)]
    return _finite(float(known.mean()), 4) if known.size else None


def _print_steps(content: Content, steps: np.ndarray) -> list[int]:
    """Return places of the steps that paper shows: the ends, and when rows are half-way.

    These are the first and the last half-change step of the developmental chart: between them
    lies what changed, whatever the texts shown are.
    """
    halves = half_steps(content.rows)
    between = (
        [int(np.abs(steps - end).argmin()) for end in (min(halves), max(halves))] if halves else []
    )
    return sorted({0, *between, len(steps) - 1})


def _controls(data: xr.Dataset, units: str) -> str:
    """Say where the mean over the texts shown ends in control runs."""
    name = "shown_loss_control"
    if name not in data or set(data[name].dims) != {"run", "step"}:
        return ""
    courses = data[name].transpose("run", "step").values.astype(float)
    ends = [course[np.isfinite(course)][-1] for course in courses if np.isfinite(course).any()]
    if not ends:
        return ""
    low, high = f"{min(ends):.2f}", f"{max(ends):.2f}"
    span = low if low == high else f"{low}–{high}"
    runs = "the control run" if len(ends) == 1 else f"{len(ends)} control runs"
    return f"In {runs} the mean over these texts ends at {span} {units}."


def _notices(data: xr.Dataset) -> tuple[str, ...]:
    found: list[str] = []
    sizes: Sequence[tuple[str, int, str]] = [
        ("text", MOST_TEXTS, "text"),
        ("place", MOST_TOKENS, "token"),
    ]
    for dimension, most, noun in sizes:
        if data.sizes[dimension] > most:
            of_each = " of each text" if noun == "token" else ""
            found.append(
                f"The first {most} of {plural(data.sizes[dimension], noun)}{of_each} are shown."
            )
    return tuple(found)
