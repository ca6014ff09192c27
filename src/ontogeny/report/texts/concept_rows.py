"""Concepts under a dated text: their births, and since when tokens at their places are predicted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from ..concepts.layers import layer_address, node_address
from ..concepts.lives import Concept, Concepts, line_names
from .dated_lines import TokenDates
from .example import MOST_TOKENS
from .step_shades import places, shades
from .tokens import ShownTokens

MOST = 5
LONGEST = 60  # letters of a name, which its column wraps


@dataclass(frozen=True)
class Square:
    """Tokens that are predicted for good from one step on: place in percent, shade, how many."""

    step: int
    left: float
    shade: int
    count: int


@dataclass(frozen=True)
class ConceptRow:
    """A concept that is strong in the shown texts.

    ``birth`` holds the step of its birth and the ends of its interval, ``at`` their places in
    percent; both are empty where no birth is known. ``total`` tokens are predicted where it is
    strong, ``count`` of them for good.
    """

    name: str
    link: str
    birth: tuple[int, ...]
    at: tuple[float, ...]
    squares: tuple[Square, ...]
    count: int
    total: int


def concept_rows(concepts: Concepts | None, read: TokenDates) -> tuple[ConceptRow, ...]:
    """Return rows of the concepts with life lines that are strong at most tokens of the texts.

    None where the result does not hold where they are strong. A causal model predicts the next
    token from such a place, a masked one the token itself.
    """
    if concepts is None or not concepts.has_names or "shown_fires" not in concepts.data:
        return ()
    most = (concepts.data.sizes["shown_text"], MOST_TOKENS)
    shown = ShownTokens.of(concepts.node, "shown_token_id", "shown_text_number", most)
    if shown is None:
        return ()
    is_strong = shown.aligned(
        shown.values("shown_fires", "layer", "concept"), read.shown
    )
    is_strong = is_strong == 1
    if not read.masked:
        is_strong = np.roll(is_strong, 1, axis=-1)
        is_strong[..., 0] = False
    others = np.setdiff1d(np.arange(len(read.shown.ids)), read.rows)
    is_strong[..., others, :] = False
    is_strong &= read.predicted
    since, good = read.dates(read.used, read.losses)
    lines = concepts.lines
    totals = [int(is_strong[concept.place].sum()) for concept in lines]
    # The life lines stand by birth, and so do these.
    best = sorted(np.argsort(totals, kind="stable")[::-1][:MOST])
    names = line_names(lines, LONGEST)
    return tuple(
        _row(
            concepts.node.path,
            read,
            lines[i],
            names[i],
            is_strong[lines[i].place],
            since,
            good,
        )
        for i in best
        if totals[i]
    )


def _row(
    node: str,
    read: TokenDates,
    concept: Concept,
    name: str,
    is_strong: np.ndarray,
    since: np.ndarray,
    good: np.ndarray,
) -> ConceptRow:
    steps = read.content.steps
    held = Counter(since[is_strong & good].astype(int).tolist())
    dates = sorted(held)
    squares = tuple(
        Square(step, left, shade, held[step])
        for step, left, shade in zip(
            dates, places(steps, dates), shades(steps, dates), strict=True
        )
    )
    birth = _birth(concept)
    return ConceptRow(
        name=name,
        link=f"#{layer_address(node_address(node), concept.layer)}{concept.number}",
        birth=birth,
        at=tuple(places(steps, birth)),
        squares=squares,
        count=sum(held.values()),
        total=int(is_strong.sum()),
    )


def _birth(concept: Concept) -> tuple[int, ...]:
    """Return the step of a birth with the ends of its interval, itself where they are unknown."""
    if not math.isfinite(concept.born):
        return ()
    ends = (concept.born, concept.after, concept.before)
    return tuple(int(e if math.isfinite(e) else concept.born) for e in ends)
