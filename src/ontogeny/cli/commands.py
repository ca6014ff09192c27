"""The commands; each is a few lines over the library."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from .._version import __version__
from ..errors import ArgumentError
from .batch import slurm
from .catalogue import help_, list_, table
from .claims import claims
from .comparing import compare
from .concept import concept
from .devices import Devices, Sharing
from .exporting import export
from .options import (
    OF_FILES,
    MaxRevisions,
    Model,
    Output,
    Quiet,
    Source,
    StudyFile,
    Trust,
    asks,
    folder_of,
    output,
)
from .plugins import add_commands
from .reporting import report
from .sharing import push
from .starting import init, study
from .texts import texts
from .watching import Patience, Until, Watch, refuse_with_watch, watched

app = typer.Typer(
    help="How a language model develops during training: from checkpoints to a page.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Add --debug to any command to see where an error comes from.",
)

Rereference = Annotated[
    bool,
    typer.Option(
        "--rereference", help="Move the reference to today's last (or first) step."
    ),
]


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log every phase.")
    ] = False,
) -> None:
    if verbose:
        logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("ontogeny").setLevel(logging.DEBUG)
    if version:
        typer.echo(f"ontogeny {__version__}")
        context.exit()


app.command()(study)
app.command()(init)


@app.command()
def demo(
    output: Annotated[Path, output("DIR", "Folder for run, study and page.")] = Path(
        "ontogeny-demo"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller model, for checks.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a small language model, record it, study it, and write its page."""
    from ..demo import run_demo
    from .progress import TrainingLines, progress_for

    progress = progress_for(quiet)
    page = run_demo(
        output, quick=quick, progress=progress, training=TrainingLines(progress)
    )
    typer.echo(f"page: {page.resolve()}")


@app.command()
@asks(OF_FILES)
def audit(
    source: Source,
    asked: Any,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 on findings.")
    ] = False,
) -> None:
    """Report what is wrong with the checkpoints of a run: duplicates, gaps, changes."""
    from .sources import open_trajectory

    trajectory = open_trajectory(source, **asked)
    findings = trajectory.audit()
    typer.echo("\n".join([repr(trajectory), *trajectory.lines(), str(findings)]))
    if any(finding.kind == "unreadable" for finding in findings) or (
        strict and len(findings)
    ):
        raise typer.Exit(3)


@app.command()
@asks(OF_FILES)
def steps(source: Source, asked: Any) -> None:
    """Show which checkpoints would be taken, in which order and why, and what is left out."""
    from .sources import open_trajectory

    trajectory = open_trajectory(source, **asked)
    typer.echo("\n".join(trajectory.lines()))
    table(("step", "checkpoint"), [(f"{c.step:,}", c.label) for c in trajectory])


@app.command()
def plan(
    study: StudyFile,
    output: Output = None,
    rereference: Rereference = False,
    trust_remote_code: Trust = False,
    timed: Annotated[
        bool,
        typer.Option(
            "--time", help="Compute one checkpoint to say what the rest takes."
        ),
    ] = False,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Plan for so many GPUs, from headers alone: no weights are read.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Say what to leave out to fit a time, such as 8h."
        ),
    ] = None,
) -> None:
    """Report what a run would read, compute and store, and what would fail; nothing is written."""
    from ..start.cost import time_left
    from ..start.fitting import lines_on_paper
    from ..start.paper import Paper
    from ..start.times import hours_of
    from ..study import read_study

    on_paper = devices is not None or budget is not None
    if on_paper and (timed or rereference):
        raise ArgumentError(
            "--devices and --budget plan from headers alone, without --time and --rereference."
        )
    hours = None if budget is None else hours_of(budget)
    spec = read_study(study, trust_remote_code=trust_remote_code)
    if on_paper:
        lines = lines_on_paper(Paper.of(spec), devices or 1, hours)
        typer.echo("\n".join([*spec.trajectory.lines(), *lines]))
        return
    planned = spec.plan(folder_of(study, output), rereference=rereference)
    typer.echo("\n".join([*spec.trajectory.lines(), str(planned)]))
    if planned.refused:
        raise ArgumentError(planned.refused)
    if timed and planned.to_do:
        cost = time_left(spec, planned)
        new = [line for line in cost.failing if line not in planned.notes]
        typer.echo("\n".join([*new, *cost.lines()[1 + len(cost.failing) :]]))


@app.command()
def prefetch(
    study: StudyFile, quiet: Quiet = False, trust_remote_code: Trust = False
) -> None:
    """Fetch what a study reads from the Hub, for a machine that has no network later."""
    from ..study.file import read_sources
    from .progress import download_shown, progress_for

    trajectory, _ = read_sources(study, trust_remote_code=trust_remote_code)
    count = download_shown(trajectory, progress_for(quiet))
    typer.echo(
        f"{count} revisions are on this machine; HF_HUB_OFFLINE=1 ontogeny run {study}"
    )


@app.command()
def run(
    study: StudyFile,
    output: Output = None,
    workers: Annotated[
        int,
        typer.Option(min=1, help="Processes on this machine, each on the next GPU."),
    ] = 1,
    devices: Devices = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler to compute on."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="An executor of an installed package."),
    ] = None,
    max_revisions: MaxRevisions = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with 3 if a cell or a planned checkpoint is missing."
        ),
    ] = False,
    rereference: Rereference = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Go on although an observable is known to fail; try it at every step.",
        ),
    ] = False,
    watch: Watch = None,
    until: Until = None,
    patience: Patience = None,
    quiet: Quiet = False,
    trust_remote_code: Trust = False,
) -> None:
    """Compute what is missing of a study; stopped and started again, it goes on."""
    from ..study import read_study
    from ..study.file import read_device
    from .executors import executor_for
    from .progress import progress_for

    folder = folder_of(study, output)
    sharing = Sharing.of(workers if workers > 1 else None, devices)
    if sharing.gpus and (scheduler or executor):
        raise ArgumentError("give one of --devices, --scheduler and --executor.")
    if watch is not None or until is not None or patience is not None:
        refused: dict[str, object] = {
            "--devices": devices,
            "--max-revisions": max_revisions,
            "--rereference": rereference,
            "--trust-remote-code": trust_remote_code,
        }
        refuse_with_watch(refused)
        device = read_device(study)
        with executor_for(workers, scheduler, device, executor) as used:
            result = watched(
                study, folder, watch, until, patience, used, keep_going, quiet
            )
        _leave(result, strict)
        return
    spec = read_study(
        study, trust_remote_code=trust_remote_code, placed=bool(sharing.gpus)
    )
    workers = sharing.processes(spec)
    progress = progress_for(quiet)
    if line := sharing.line(spec, workers):
        progress.note(line)
    with executor_for(workers, scheduler, spec.device, executor) as used:
        result = spec.run(
            folder,
            used,
            progress,
            max_revisions=max_revisions,
            rereference=rereference,
            keep_going=keep_going,
        )
    typer.echo(
        f"result: {folder / 'result.zarr'}\npage: ontogeny report {quote(str(folder))}"
    )
    _leave(result, strict)


app.command()(claims)
app.command()(compare)
app.command()(concept)
app.command()(export)
app.command()(push)
app.command()(report)
app.command()(slurm)
app.command()(texts)
app.command(name="list")(list_)
app.command(name="help")(help_)


@app.command()
def layers(
    source: Source,
    pattern: Annotated[str, typer.Argument(help="Glob over module paths.")] = "**",
    model: Model = "",
) -> None:
    """Show which modules a layer pattern matches, with the shapes of their outputs."""
    from ..capture import list_layers
    from .sources import open_model

    rows = [
        (info.path, info.kind, "×".join(map(str, info.shape)) if info.shape else "-")
        for info in list_layers(open_model(source, model), pattern)
    ]
    table(("layer", "class", "output"), rows)


def _leave(result: Any, strict: bool) -> None:
    """Exit with 3 if an observable has no cell, or if anything is missing where that counts."""
    if result.lost or (strict and not _whole(result.attrs)):
        raise typer.Exit(3)


def _whole(attributes: Mapping[Any, Any]) -> bool:
    """Return whether every cell is done and every checkpoint that there should be is there."""
    import json

    absent = [
        finding
        for finding in json.loads(attributes["findings"])
        if finding["kind"] in ("missing", "incomplete")
        and finding["certainty"] == "certain"
    ]
    return not absent and not json.loads(attributes["problems"])


add_commands(app)
