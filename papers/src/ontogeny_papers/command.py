"""The verb ``ontogeny reproduce``, which this distribution adds to the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ontogeny.cli.options import Quiet, output


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A recipe; without it all are listed."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A small run: fewer seeds and steps; it takes minutes."
        ),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many seeds; by default those of the setting."
        ),
    ] = None,
    output: Annotated[
        Path, output("DIR", "Folder for runs, studies and pages.")
    ] = Path("reproductions"),
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A text file, split at blank lines; by default Python's own documentation.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="A folder of checkpoints, or OWNER/NAME on the Hub, to study in place of trained "
            "seeds; can be given several times.",
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="What was found of every claim.")
    ] = False,
    by: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="Of --list, the column that orders it, as certainty."
        ),
    ] = "recipe",
    quiet: Quiet = False,
) -> None:
    """Train, measure and judge a claim of the papers or a known development, over seeds."""
    from ontogeny.cli.catalogue import table
    from ontogeny.cli.progress import TrainingLines, progress_for

    from . import reproduce as recipes

    if listed:
        from .reproduce.stored_claims import listed as claims

        heads, rows = claims(by)
        table(heads, rows)
        return
    if name is None:
        table(
            ("recipe", "what"), [(n, recipes.recipe(n).title) for n in recipes.names()]
        )
        return
    progress = progress_for(quiet)
    page = recipes.recipe(name).run(
        output,
        quick=quick,
        seeds=seeds,
        text=text,
        sources=source or (),
        progress=progress,
        training=TrainingLines(progress, 20),
    )
    typer.echo(f"page: {page.resolve()}")
