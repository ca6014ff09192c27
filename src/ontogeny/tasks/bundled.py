"""Texts that come with the package or with Python, for where none are given."""

from __future__ import annotations

import hashlib
from importlib import resources
from itertools import chain

from ..errors import OntogenyError, check_choice
from .corpus import paragraphs, python_topics

# Names of the texts, and how pages call them.
BUNDLED = {
    "english": "the English sample of ontogeny",
    "english-and-python": "the English sample of ontogeny and Python's documentation",
    "moby-dick": "passages of Moby-Dick",
}
# Those that come with the package.
_FILES = {"english": "english.txt", "moby-dick": "moby-dick.txt"}

# Characters: sentences, and most of them within 64 tokens.
_SHORTEST = 160
_LONGEST = 400


def bundled_texts(name: str = "english") -> list[str]:
    """Return short texts that every installation has.

    ``"english"``, plain English prose, comes with the package: 81 passages. After them
    ``"english-and-python"`` has some 230 paragraphs of Python's documentation (the topics of
    ``help()``). One version of Python gives the same ones everywhere, and versions share most; a
    Python without its documentation gives none.

    ``"moby-dick"`` has 5,000 passages of a few sentences, in their order, the first megabyte of
    the novel (Herman Melville, 1851).

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
    >>> bundled_texts("english-and-python")[:81] == texts
    True
    """
    check_choice("bundled", name, BUNDLED)
    path = resources.files(__package__) / "texts" / _FILES.get(name, "english.txt")
    texts = paragraphs(path.read_text(encoding="utf-8"))
    return texts if name in _FILES else [*texts, *_of_python()]


def _of_python() -> list[str]:
    """Return paragraphs of prose from Python's documentation, well mixed.

    They are ordered by digests, so that a version with one paragraph more changes one place.
    """
    try:
        topics = python_topics()
    except OntogenyError:  # Linux distributions may leave it out
        return []
    texts = set(filter(_is_prose, chain.from_iterable(map(paragraphs, topics))))
    return sorted(texts, key=lambda text: hashlib.blake2b(text.encode()).digest())


def _is_prose(text: str) -> bool:
    marks = ("::=", ">>>", "|", "...")
    return (
        _SHORTEST <= len(text) <= _LONGEST
        and text[0].isupper()
        and text.endswith(".")
        and not any(mark in text for mark in marks)
        and sum(c.isalpha() or c.isspace() for c in text) > 0.92 * len(text)
    )
