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
    own = [each for each in drawables if each.node is node]
    said = section_sentences(node)
    if own and mark(node)[0] == "none" and said and not has_abilities(node.dataset):
        return (said[:1], said[1:]), [], own
    lead = [] if drawn_above and node.role == "track" else _bearing(node, own)
    return (said, []), lead, [each for each in own if each not in lead]


def _bearing(node: Node, own: list[Drawable]) -> list[Drawable]:
    """Return the figure that bears the sentences: that of the strongest row, else the first."""
    if maps := [each for each in own if each.figure.id == "groups"]:  # too many for curves
        return maps
    rows = sorted(node.rows, key=lambda row: -(row.learned + row.beyond + row.changed))
    return [each for each in own if [each.id] == [figure_of(row, own) for row in rows[:1]]] or own[
        :1
    ]


def fold_words(said: Sequence[str], folded: Sequence[Drawable]) -> str:
    """Say what is folded: further sentences, and figures by their titles.

    Examples
    --------
    >>> fold_words(["One.", "Two."], [])
    '2 more sentences'
    """
    titles = "; ".join(str(each.figure.title) for each in folded)
    counts = [plural(len(said), "more sentence")] if said else []
    counts += [f"{plural(len(folded), 'figure')}: {titles}"] if folded else []
    return joined(counts)
