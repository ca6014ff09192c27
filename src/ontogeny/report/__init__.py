"""The report: a merged result drawn as one page, and its figures as files.

This package knows results only: it draws the figure specifications that a result carries, and needs
neither the observables that made it nor a model.

Read in this order: `content` (a result as plain data, with the `rows` of its chart), `figures` (a
specification with its arrays), `concepts`, `verdict` and `sentences` (what is said), `chart`,
`first_screen` and `texts` (parts of the page), `paper` (drawings with matplotlib), `kinds` (how a
kind of figure is read, drawn and written), and what users call: `page`, `files` and `notebook`.
"""

from .files.write import chart_svg, write_figures
from .page.write import write

__all__ = ["chart_svg", "write", "write_figures"]
