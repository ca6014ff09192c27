"""The commands that begin: from the name of a run to a study file, and on to the page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Quiet, Source, Yes, with_wishes


@with_wishes
def init(
    source: Source,
    asked: Any,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The study file.")
    ] = Path("study.toml"),
    yes: Yes = False,
) -> None:
    """Write a study file that fits a run."""
    from ..errors import ArgumentError
    from ..start import Wishes
    from .beginning import begin, say

    if output.exists():
        raise ArgumentError(f"{output} exists; give another --output, or remove it.")
    run_with = f"ontogeny run {shlex.quote(str(output))}"
    begun = begin(Wishes(source, **asked), output, yes, first_alone=True)
    begun.write(run_with)
    say([begun], 1)
    typer.echo(f"study file: {output}\nrun it: {run_with}")


@with_wishes
def study(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="A folder of checkpoints, one such file, or a repository OWNER/NAME on the Hub. "
            "Several, such as seeds, are compared.",
        ),
    ],
    asked: Any,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Its folder; studies/NAME by default. The study file is DIR.toml. Of several "
            "runs, the folder of their studies.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes on this machine; by default what fits, at most 4."),
    ] = None,
    max_revisions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep at most N downloaded Hub revisions on disk."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Study runs, from their names to a page; several are compared on one."""
    from .beginning import prepared
    from .finishing import compare, finish, open_page

    studies, workers = prepared(sources, asked, output, workers, yes, quiet, max_revisions)
    lost = False
    for name, folder in studies.items():
        if len(studies) > 1 and not quiet:
            typer.echo(f"studying {name}", err=True)
        lost |= finish(folder, workers, max_revisions, quiet)
    page = next(iter(studies.values())) / "report.html"
    if len(studies) > 1:
        page = compare(studies, (output or Path("studies")) / "comparison.html")
    if open_:
        open_page(page)
    if lost:
        raise typer.Exit(3)
