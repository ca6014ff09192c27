"""What all kinds of figure share, and the words of a section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Figure", "Section"]


@dataclass(frozen=True)
class Figure:
    """What all kinds share; use a subclass.

    Parameters
    ----------
    id
        Short name, unique within its dataset; file names and links are made of it.
    title
        One line over the figure.
    caption
        One or two sentences under it: what is seen, what to be careful about.
    value
        The variable drawn.
    relative
        The same variable as a fraction of a stated norm; drawn by default where given.
    relative_label
        What it is a fraction of.
    facet
        Dimension split into small multiples with shared axes.
    select
        Labels chosen along further dimensions: ``{"distance": "procrustes"}``.
    """

    id: str
    title: str
    value: str
    caption: str = ""
    relative: str | None = None
    relative_label: str = ""
    facet: str | None = None
    select: Mapping[str, Any] = field(default_factory=dict)

    kind = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as JSON-ready data with its ``kind``."""
        return {"kind": self.kind, **asdict(self)}

    def names(self) -> Iterator[str | None]:
        """Give every variable and dimension that the figure names, ``None`` for what it leaves."""
        yield from (self.value or None, self.relative, self.facet, *self.select)


@dataclass(frozen=True)
class Section:
    """The words of one section of the page: heading and margin notes.

    ``definition`` is one or two sentences, ``symbol`` the formula as plain Unicode text,
    ``null`` what pure chance or refitting gives, ``care`` what to be careful about,
    ``source`` paper, equation or definition. An observable's section may name its arguments in
    braces: ``"Lives of concepts ({of})"``.
    """

    title: str
    definition: str
    symbol: str = ""
    null: str = ""
    care: str = ""
    source: str = ""

    def filled(self, arguments: Mapping[str, Any]) -> Section:
        """Return the section with the values of arguments where it names them in braces.

        Examples
        --------
        >>> Section("Lives of concepts ({of})", "").filled({"of": "concepts-ica"}).title
        'Lives of concepts (concepts-ica)'
        """
        texts = asdict(self)
        for name, value in arguments.items():
            texts = {key: text.replace(f"{{{name}}}", str(value)) for key, text in texts.items()}
        return Section(**texts)
