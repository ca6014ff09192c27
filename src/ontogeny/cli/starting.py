"""The commands that begin: from the name of a run to a study file, and on to the page.

`beginning`, which loads torch, is imported when one of them runs: together in one module, even
``ontogeny --help`` took 4 s.
"""

from __future__ import annotations

import shlex
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import activity
from .devices import Devices, Sharing
from .options import OF_FILES, WISHED, MaxRevisions, Quiet, Source, Yes, asks, output


@asks(WISHED, OF_FILES)
def init(
    source: Source,
    asked: Any,
    output: Annotated[Path, output("FILE", "The study file.")] = Path("study.toml"),
    yes: Yes = False,
) -> None:
    """Write a study file that fits a run."""
    from ..errors import ArgumentError
    from ..start.wishes import Wishes
    from .runs import opened

    if output.exists():
        raise ArgumentError(f"{output} exists; give another --output, or remove it.")
    wishes = Wishes(source, **asked)
    run = opened(wishes, quiet=False)
    from .beginning import begin, say

    run_with = f"ontogeny run {shlex.quote(str(output))}"
    begun = begin(wishes, output, yes, first_alone=True, opened=run)
    begun.write(run_with)
    say([begun], 1)
    typer.echo(f"study file: {output}\nrun it: {run_with}")


@asks(WISHED, OF_FILES)
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
        output(
            "DIR",
            "Its folder; studies/NAME by default. The study file is DIR.toml. Of several runs, "
            "the folder of their studies.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes on this machine; by default what fits, at most 4."
        ),
    ] = None,
    devices: Devices = None,
    max_revisions: MaxRevisions = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser.")
    ] = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Study runs, from their names to a page; several are compared on one."""
    sharing = Sharing.of(workers, devices)
    if sharing.gpus:
        asked["sets"] = [*asked.get("sets", []), "trajectory.placed=true"]
    from .runs import found, wished

    of_folders = wished(sources, asked, output)
    opened = found(of_folders, quiet)
    from .beginning import prepared

    begun, usual = prepared(
        of_folders, opened, bool(asked), sharing.usual, yes, quiet, max_revisions
    )
    studies = {folder.name: folder for folder in of_folders}
    lost = False
    for name, folder in studies.items():
        if len(studies) > 1 and not quiet:
            typer.echo(f"studying {name}", err=True)
        lost |= _finish(folder, begun, sharing, usual, max_revisions, quiet)
    page = next(iter(studies.values())) / "report.html"
    if len(studies) > 1:
        page = _compare(studies, (output or Path("studies")) / "comparison.html", quiet)
    if open_:
        webbrowser.open(page.resolve().as_uri())
    if lost:
        raise typer.Exit(3)


def _finish(
    folder: Path,
    begun: dict[Path, Any],
    sharing: Sharing,
    usual: int,
    max_revisions: int | None,
    quiet: bool,
) -> bool:
    """Run the study of a folder and write its page; return whether an observable has no cell."""
    from ..study import read_study
    from ..study.results.page import write_page
    from .executors import executor_for
    from .progress import progress_for
    from .runs import study_file_of

    study_file = study_file_of(folder)
    # One that was begun now is examined already.
    spec = begun.pop(study_file, None) or read_study(study_file)
    progress = progress_for(quiet)
    workers = sharing.processes(spec, usual)
    if line := sharing.line(spec, workers):
        progress.note(line)
    with executor_for(workers, None, spec.device) as executor:
        result = spec.run(folder, executor, progress, max_revisions=max_revisions)
    activity.now("writing the page")
    page = write_page(folder, folder / "report.html")
    typer.echo(f"study file: {study_file}\npage: {page}")
    return bool(result.lost)


def _compare(studies: Mapping[str, Path], page: Path, quiet: bool) -> Path:
    """Write the page that compares studies, and say each of its sentences."""
    from .. import comparison, report
    from ..comparison.concepts.views import views_here
    from ..errors import ArgumentError
    from .progress import progress_for

    try:
        runs = dict(studies)
        progress = progress_for(quiet)
        tree = comparison.compare(
            runs, concepts=views_here(runs, progress), progress=progress
        )
    except ArgumentError as error:
        command = shlex.join(["ontogeny", "compare", *map(str, studies.values())])
        raise ArgumentError(
            f"the studies are finished, not compared: {error} {command}"
        ) from error
    activity.now("writing the page")
    typer.echo(f"comparison: {report.write(tree, page)}")
    for line in comparison.summary_lines(tree):
        typer.echo(line)
    return page
