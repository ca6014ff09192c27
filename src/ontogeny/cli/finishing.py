"""From study files to pages: what `ontogeny study` does when everything is agreed."""

from __future__ import annotations

import shlex
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import typer

from .. import comparison, report
from ..errors import ArgumentError
from ..study import open_study, read_study
from .executors import executor_for
from .progress import progress_for


def study_file_of(folder: Path) -> Path:
    """Return the study file beside a study's folder."""
    return folder.with_name(f"{folder.name}.toml")


def finish(folder: Path, workers: int, max_revisions: int | None, quiet: bool) -> bool:
    """Run the study of a folder and write its page; return whether an observable has no cell."""
    study_file = study_file_of(folder)
    chosen, progress = read_study(study_file), progress_for(quiet)
    with executor_for(workers, None, chosen.device) as executor:
        result = chosen.run(folder, executor, progress, max_revisions=max_revisions)
    page = open_study(folder).report(folder / "report.html")
    typer.echo(f"study file: {study_file}\npage: {page}")
    return bool(result.problems().lost)


def compare(studies: Mapping[str, Path], page: Path) -> Path:
    """Write the page that compares studies, and say each of its sentences."""
    try:
        tree = comparison.compare(dict(studies))
    except ArgumentError as error:
        command = shlex.join(["ontogeny", "compare", *map(str, studies.values())])
        raise ArgumentError(f"the studies are finished, not compared: {error} {command}") from error
    typer.echo(f"comparison: {report.write(tree, page)}")
    for line in comparison.summary_lines(tree):
        typer.echo(line)
    return page


def open_page(page: Path) -> None:
    """Open a page in the browser."""
    webbrowser.open(page.resolve().as_uri())
