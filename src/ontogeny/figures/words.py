"""Clouds of words and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..characters import JOINERS, escaped
from ..errors import ArgumentError
from .base import Figure


@dataclass(frozen=True)
class Words(Figure):
    """Clouds of words or tokens, one for each label of `groups`, sized by weight.

    Parameters
    ----------
    value
        Weight of every word over `groups` and `rank`; sizes follow its root, on one scale for the
        whole figure. A word whose weight is NaN or whose text is empty is no word.
    words
        Variable of texts over the same dimensions. Shown as :func:`show_token` writes them.
    groups
        Dimension of the clouds, such as orthants; ``None`` for one cloud.
    rank
        Dimension along which the words of a cloud lie; the 40 heaviest are shown.
    heading
        Variable of texts over `groups`, written over the clouds; the labels of `groups` if
        ``None``.
    parent
        Variable of texts over `groups`: the label of the group that this one refines, empty for a
        root. The clouds are then drawn as an indented tree.
    context
        Variable of texts over the dimensions of `words`, shown on hover.

    A dimension left over becomes a menu; a left-over ``step`` follows the slider.

    Examples
    --------
    >>> Words(
    ...     "clouds", "Orthants", value="typicality", words="token", groups="orthant"
    ... ).rank
    'rank'
    """

    words: str = ""
    groups: str | None = "group"
    rank: str = "rank"
    heading: str | None = None
    parent: str | None = None
    context: str | None = None

    kind = "words"
    dimensions = ("groups",)

    def __post_init__(self) -> None:
        if not self.words:
            raise ArgumentError(
                f"words of the figure {self.id!r} must name a variable of texts."
            )

    def variables(self) -> Iterator[str | None]:
        """Give every variable that the figure draws."""
        yield from (self.value, self.words, self.heading, self.context)

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names."""
        yield from super().names()
        yield from (self.rank, self.parent)


_SPACE_MARK = re.compile(
    "^[ \N{LATIN CAPITAL LETTER G WITH DOT ABOVE}\N{LOWER ONE EIGHTH BLOCK}]"
)


def show_token(token: str) -> str:
    r"""Return a token as people read it: the mark of a leading space as ``#``, controls escaped.

    The mark is a space itself, or what tokenizers write for it: ``Ġ`` (byte-level BPE) or ``▁``
    (SentencePiece). Control, formatting, private and unassigned characters, among them those
    that turn the direction of text, are written as escapes; the joiners that scripts need stay.

    Examples
    --------
    >>> (
    ...     show_token("\u0120cat"),
    ...     show_token(" cat"),
    ...     show_token("a\nb"),
    ...     show_token("\u202ebad"),
    ... )
    ('#cat', '#cat', 'a\\nb', '\\u202ebad')
    """
    text = _SPACE_MARK.sub("#", token, count=1)
    return "".join(c if c in JOINERS else escaped(c) for c in text)
