"""Clouds of words."""

from __future__ import annotations

from typing import Any

from ...figures import Words
from ..figures.drawable import Drawable
from ..figures.words import heaviest, read_words
from ..style import static_text
from .base import FigureKind


class WordsKind(FigureKind):
    """Clouds of words, or a tree of clouds; on the page they are text."""

    figure = Words
    text = True

    def script(self) -> str:
        """Return ``words.js``."""
        return static_text("words.js")

    def read(self, drawable: Drawable) -> Drawable:
        """Read the heaviest words and the tree of the clouds."""
        return read_words(drawable)

    def payload(self, drawable: Drawable) -> dict[str, Any]:
        """Return the clouds in the order of drawing, and the largest weight of a word."""
        return {"tree": drawable.tree, "heaviest": heaviest(drawable)}

    def whole(self, drawable: Drawable) -> set[str]:
        """Return the dimensions of a cloud's words and of the tree."""
        return set(map(str, drawable.own[drawable.figure.value].dims)) - set(drawable.choose)

    def draw(self, view: Any) -> Any:
        """Draw the clouds."""
        from ..paper.words import draw_words

        return draw_words(view)

    def notes(self, view: Any) -> list[str]:
        """Return the words that the picture's font lacks."""
        from ..paper.words import words_without_glyphs

        return words_without_glyphs(view)
