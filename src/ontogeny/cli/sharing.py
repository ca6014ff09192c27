"""The command that pushes a study to the Hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import Yes

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of a study or a comparison.")
]
Repository = Annotated[
    str, typer.Argument(metavar="OWNER/NAME", help="The data set on the Hub.")
]
StudyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The study file; DIR.toml by default, if it is there."
    ),
]
License = Annotated[
    str | None,
    typer.Option("--license", metavar="ID", help="For the card, such as cc-by-4.0."),
]
Private = Annotated[
    bool, typer.Option("--private", help="A data set that only you may see.")
]
WithoutTexts = Annotated[
    bool,
    typer.Option(
        "--without-texts",
        help="Leave out texts and tokens, and observables that show them.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="List what would be pushed, push nothing.")
]


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
            raise ArgumentError(
                "nothing was pushed; pass --yes once you have read the list."
            )
        seen = "only you can read it" if private else "everybody can read it"
        if not typer.confirm(f"Push this to {repository}, where {seen}?"):
            raise typer.Exit(1)
    _show_bars()
    typer.echo(f"data set: {parcel.push(private=private)}")
    typer.echo(
        f'open it: ontogeny report {repository}, or og.open_study("{repository}")'
    )


def _show_bars() -> None:
    """Show huggingface_hub's progress on a terminal only."""
    if not sys.stderr.isatty():
        from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()
