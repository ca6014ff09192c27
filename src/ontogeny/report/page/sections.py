"""What a section of the page shows at once, its sentences and one figure, and what it folds."""

from __future__ import annotations

from collections.abc import Sequence

from ...words.abilities import has_abilities
from ...words.content import Node
from ...words.formats import joined, plural
from ...words.sections import mark, section_sentences
from ..figures.drawable import Drawable
from .payload import figure_of

Parts = tuple[tuple[Sequence[str], Sequence[str]], Sequence[Drawable], Sequence[Drawable]]


def parts(node: Node, drawables: Sequence[Drawable], drawn_above: bool) -> Parts:
    """Return the sentences that stand open and those that are folded, and both of the figures.

    Of what was tested and not found, the first sentence says so, and the rest is folded.
    `drawn_above` is whether the first screen has its curve already.
    """
    candidates = [d for d in drawables if d.node is node]
    sentences = section_sentences(node)
    if candidates and mark(node)[0] == "none" and sentences and not has_abilities(node.dataset):
        return (sentences[:1], sentences[1:]), [], candidates
    lead = [] if drawn_above and node.role == "track" else _bearing(node, candidates)
    return (sentences, []), lead, [d for d in candidates if d not in lead]


def _bearing(node: Node, items: list[Drawable]) -> list[Drawable]:
    """Return the figure that bears the sentences: that of the strongest row, else the first."""
    rows = sorted(node.rows, key=lambda row: -(row.learned + row.beyond + row.changed))
    best = [d for d in items if [d.id] == [figure_of(row, items) for row in rows[:1]]] or items[:1]
    names = {"groups", *(f"{d.figure.id}-map" for d in best)}  # too many for curves
    return [d for d in items if d.figure.id in names][:1] or best


def fold_words(sentences: Sequence[str], folded: Sequence[Drawable]) -> str:
    """Say what is folded: further sentences, and figures by their titles.

    Examples
    --------
    >>> fold_words(["One.", "Two."], [])
    '2 more sentences'
    """
    titles = "; ".join(str(d.figure.title) for d in folded)
    counts = [plural(len(sentences), "more sentence")] if sentences else []
    counts += [f"{plural(len(folded), 'figure')}: {titles}"] if folded else []
    return joined(counts)
