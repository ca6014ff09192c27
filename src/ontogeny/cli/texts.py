"""The command that shows texts of a studied run: dated tokens, and what it writes."""

from __future__ import annotations

from typing import Annotated

import typer

from .concept import show
from .options import Studied


def texts(
    folder: Studied,
    step: Annotated[
        int | None,
        typer.Option(metavar="S", help="Step at which it writes; the last by default."),
    ] = None,
) -> None:
    """Show since when a run predicts the tokens of two texts, and what it writes."""
    from ..study import open_study

    show(open_study(folder).texts(step))
