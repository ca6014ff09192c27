"""Commands on a studied run: its concepts, to show and to name, and the run pushed to the Hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Studied, Yes

Node = Annotated[
    str | None,
    typer.Argument(metavar="NODE", help="Such as joint-concepts; needed where several describe."),
]
Layer = Annotated[
    str | None, typer.Option(metavar="L", help="Number in the module path, the path or short name.")
]
Index = Annotated[
    int | None, typer.Option(metavar="I", help="Number of the concept; a table without it.")
]
Step = Annotated[
    int, typer.Option(metavar="S", help="Training step, or an index from the end: -1 is the last.")
]
Name = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Give the concept this name; an empty text takes it back."),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study or a comparison.")]
Repository = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The data set on the Hub.")]
StudyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The study file; DIR.toml by default, if it is there."),
]
License = Annotated[
    str | None, typer.Option("--license", metavar="ID", help="For the card, such as cc-by-4.0.")
]
Private = Annotated[bool, typer.Option("--private", help="A data set that only you may see.")]
WithoutTexts = Annotated[
    bool,
    typer.Option(
        "--without-texts", help="Leave out texts and tokens, and observables that show them."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would be pushed, push nothing.")]


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
        raise ArgumentError("--name needs --index, the number of the concept that it is for.")
    atlas = open_study(folder).concept
    layer_name = int(layer) if layer is not None and layer.removeprefix("-").isdecimal() else layer
    if index is None:
        _show(atlas.table(node, layer_name, step))
    elif name is not None:
        _show(atlas.label(node, layer_name, index, name, step=step))
        typer.echo(f"names: {atlas.folder / 'names.toml'}")
    else:
        _show(atlas(node, layer_name, index, step))


def _show(view: Any) -> None:
    """Print a card or a table: with colours on a terminal, plain elsewhere."""
    if not sys.stdout.isatty():
        typer.echo(repr(view))
        return
    from rich.console import Console

    Console(emoji=False).print(view, highlight=False, markup=False)


def push(
    folder: Folder,
    repository: Repository,
    study_file: StudyFile = None,
    license_id: License = None,
    private: Private = False,
    without_texts: WithoutTexts = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Push a study's page, result and study file to the Hub, after listing what is in them."""
    from ..errors import ArgumentError
    from ..share import prepare

    parcel = prepare(
        folder,
        repository,
        study_file=study_file,
        license_id=license_id,
        without_texts=without_texts,
    )
    typer.echo(repr(parcel))
    if dry_run:
        return
    if not yes and not parcel.listing.secrets:  # secrets are refused in any case
        if not sys.stdin.isatty():
            raise ArgumentError("nothing was pushed; pass --yes once you have read the list.")
        seen = "only you can read it" if private else "everybody can read it"
        if not typer.confirm(f"Push this to {repository}, where {seen}?"):
            raise typer.Exit(1)
    _show_bars()
    typer.echo(f"data set: {parcel.push(private=private)}")
    typer.echo(f'open it: ontogeny report {repository}, or og.open_study("{repository}")')


def _show_bars() -> None:
    """Show huggingface_hub's progress on a terminal only."""
    if not sys.stderr.isatty():
        from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()
