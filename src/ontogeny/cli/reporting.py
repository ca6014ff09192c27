"""The command that writes a page, and figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Studied, output


def report(
    folder: Studied,
    output: Annotated[
        Path | None,
        output(
            "PAGE", "The page; DIR/report.html by default, NAME.html for OWNER/NAME."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write every figure and its data."),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE/NAME",
            help="Write this figure alone, into --figures or here, and no page.",
        ),
    ] = None,
    expect: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Say on the first screen which lines of a file of expectations are not met.",
        ),
    ] = None,
    formats: Annotated[
        str, typer.Option(metavar="LIST", help="Formats of the figures.")
    ] = "pdf,svg,png",
) -> None:
    """Write a study's page: one HTML file that opens without a network."""
    from .. import atlas
    from .. import report as reports
    from ..report.files.write import check_formats
    from ..study import open_study

    kinds = check_formats([kind.strip() for kind in formats.split(",") if kind.strip()])
    study = open_study(folder)
    if figure:
        for one in [study.figure(name) for name in figure]:
            for kind in ["csv"] if one.table is not None else [*kinds, "csv"]:
                name = f"{one.name.replace('/', '-')}.{kind}"
                typer.echo(f"figure: {one.save((figures or Path()) / name)}")
        return
    place = study.folder
    page = (
        place / "report.html"
        if place is not None and Path(folder).is_dir()
        else Path(f"{Path(folder).name}.html")
    )
    typer.echo(f"page: {study.report(output or page, expect)}")
    if figures is not None:
        written = reports.write_figures(atlas.with_labels(study), figures, kinds)
        typer.echo(f"figures: {len(written)} files in {figures}")
