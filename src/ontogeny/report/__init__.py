"""The report: a merged result drawn as one page, and its figures as files.

This package knows results only: it draws the figure specifications that a result carries, and needs
neither the observables that made it nor a model.

Read in this order: `content` (a result as plain data, with the `rows` of its chart), `figures` (a
specification with its arrays), `concepts`, `verdict` and `sentences` (what is said), `chart`,
`first_screen` and `texts` (parts of the page), `paper` (drawings with matplotlib), `kinds` (how a
kind of figure is read, drawn and written), and what users call: `page`, `files` and `notebook`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .files.write import chart_svg as chart_svg
    from .files.write import write_figures as write_figures
    from .page.write import write as write

# Studies read what `choosing` says of layers, and mostly draw nothing.
_HOMES = {
    "chart_svg": "files.write",
    "write": "page.write",
    "write_figures": "files.write",
}

__all__ = ["chart_svg", "write", "write_figures"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ontogeny.report' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
