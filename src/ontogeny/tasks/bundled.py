"""Texts that come with the package, for where none are given."""

from __future__ import annotations

from importlib import resources

from ..errors import check_choice
from .corpus import paragraphs

BUNDLED = {"english": "the English sample of ontogeny"}
"""Names of the texts, and how pages call them."""


def bundled_texts(name: str = "english") -> list[str]:
    """Return short texts that come with the package: plain English prose, 81 passages.

    They are no sample of anything that a model was trained on, so they show how a model develops
    on plain English and not what it learned of its own data.

    Raises
    ------
    ArgumentError
        If there are no texts of this name.

    Examples
    --------
    >>> texts = bundled_texts()
    >>> len(texts), texts[1][:26]
    (81, 'A river does not keep stil')
    """
    check_choice("bundled", name, BUNDLED)
    path = resources.files(__package__) / "texts" / f"{name}.txt"
    return paragraphs(path.read_text(encoding="utf-8"))
