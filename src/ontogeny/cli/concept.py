"""The command that shows concepts of a studied run, and names them."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from .options import Studied, layer_of

Node = Annotated[
    str | None,
    typer.Argument(
        metavar="NODE", help="Such as learned-concepts; needed where several describe."
    ),
]
Layer = Annotated[
    str | None,
    typer.Option(
        metavar="L", help="Number in the module path, the path or short name."
    ),
]
Index = Annotated[
    int | None,
    typer.Option(metavar="I", help="Number of the concept; a table without it."),
]
Step = Annotated[
    int,
    typer.Option(
        metavar="S", help="Training step, or an index from the end: -1 is the last."
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="Give the concept this name; an empty text takes it back."
    ),
]


def concept(
    folder: Studied,
    node: Node = None,
    layer: Layer = None,
    index: Index = None,
    step: Step = -1,
    name: Name = None,
) -> None:
    """Show a concept of a studied run as a card, or all of them in a table."""
    from ..errors import ArgumentError
    from ..study import open_study

    if index is None and name is not None:
        raise ArgumentError(
            "--name needs --index, the number of the concept that it is for."
        )
    atlas = open_study(folder).concept
    layer_name = layer_of(layer)
    if index is None:
        show(atlas.table(node, layer_name, step))
    elif name is not None:
        show(atlas.label(node, layer_name, index, name, step=step))
        typer.echo(f"names: {atlas.folder / 'names.toml'}")
    else:
        show(atlas(node, layer_name, index, step))


def show(view: Any) -> None:
    """Print a card, a table or texts: with colours on a terminal, plain elsewhere."""
    if not sys.stdout.isatty():
        typer.echo(repr(view))
        return
    from rich.console import Console

    Console(emoji=False).print(view, highlight=False, markup=False)
