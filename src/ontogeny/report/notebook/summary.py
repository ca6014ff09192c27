"""What a result says in sentences: those of the page's first screen and of its verdict."""

from __future__ import annotations

import textwrap
from functools import cached_property
from html import escape
from itertools import chain

import pandas as pd

from ...trees import MergedResult
from ...words.basis import basis
from ...words.catalogue.page import PAGE
from ...words.content import read_content
from ...words.sections import studied
from ..failures import read_failures
from ..figures.frames import row_frame
from ..first_screen.screen import first_screen

_WIDTH = 96


class ResultSummary:
    """The sentences of a result, as ``result.summary()`` returns them; ``print`` it.

    Parameters
    ----------
    result
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.

    Raises
    ------
    ArgumentError
        If `result` is not a merged result.

    Examples
    --------
    >>> import xarray as xr
    >>> data = xr.Dataset({"entropy": ("step", [8.3, 4.2])}, {"step": [0, 100]})
    >>> print(ResultSummary(xr.DataTree.from_dict({"entropy": data})))
    Untitled study
    2 checkpoints, steps 0 to 100
    <BLANKLINE>
    Nothing was claimed
    """

    def __init__(self, result: MergedResult) -> None:
        content = read_content(result)
        self._rows = content.rows
        self.title = content.title
        self.studied = studied(content)
        failures = read_failures(content)
        self.failed = (
            f"{failures.heading}. {failures.lead}".rstrip(" .") + "."
            if failures
            else ""
        )
        self._sections: list[tuple[str, list[tuple[str, str]]]] = []
        first = first_screen(content)
        if first is not None:
            texts = [(line.lead, line.text) for line in first.sentences]
            self._sections.append((first.heading, texts))
        sure = [("", text) for text in basis(content)]
        if sure or not self._sections:
            self._sections.append((PAGE["how sure" if first else "nothing"], sure))

    @property
    def heading(self) -> str:
        """What matters most, as the page's first heading says it."""
        return self._sections[0][0]

    @property
    def sentences(self) -> list[str]:
        """All sentences, those of the first screen first."""
        texts = chain.from_iterable(texts for _, texts in self._sections)
        return list(map(_sentence, texts))

    @cached_property
    def data(self) -> pd.DataFrame:
        """One line for each row of the chart: where it went, when, and how it was judged."""
        return row_frame(self._rows)

    def __str__(self) -> str:
        lines = [self.title, self.studied, *filter(None, [self.failed])]
        for heading, texts in self._sections:
            lines += ["", heading, *map(_sentence, texts)]
        return "\n".join(textwrap.fill(line, _WIDTH) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        failed = f"<p><strong>{escape(self.failed)}</strong></p>" if self.failed else ""
        parts = [
            f"<h4>{escape(heading)}</h4>"
            + "".join(f"<p>{_lead(lead)}{escape(text)}</p>" for lead, text in texts)
            for heading, texts in self._sections
        ]
        about = f"<p><b>{escape(self.title)}</b><br><small>{escape(self.studied)}</small></p>"
        return f"<div>{about}{failed}{''.join(parts)}</div>"


def _sentence(line: tuple[str, str]) -> str:
    return " ".join(line).strip()


def _lead(text: str) -> str:
    return f"<b>{escape(text)}</b> " if text else ""
