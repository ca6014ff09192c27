"""The commands that begin: from a run's name to a study file, and on to the page."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..start import Proposal, Wishes
    from ..trajectory import Trajectory


def _presets(incomplete: str) -> list[str]:
    from ..start.presets import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)]


Source = Annotated[
    str, typer.Argument(help="A folder of checkpoints, or a repository OWNER/NAME on the Hub.")
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="quick, standard (default), weights, circuits or everything.",
        autocompletion=_presets,
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE", help="Texts, or token ids (.npy, .bin); a sample of English by default."
    ),
]
Steps = Annotated[
    str, typer.Option(metavar="N", help="How many checkpoints; or steps with commas; or all.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any key of the study file: inputs.max_texts=50."
    ),
]
Model = Annotated[
    str, typer.Option(metavar="FILE:NAME", help="Code of yours that builds the model; it is run.")
]
Tokenizer = Annotated[
    str, typer.Option(metavar="NAME", help="A tokenizer on the Hub, a folder, or FILE:NAME.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however long it takes.")]


def init(
    source: Source,
    preset: Preset = None,
    texts: Texts = None,
    steps: Steps = "",
    sets: Sets = None,
    model: Model = "",
    tokenizer: Tokenizer = "",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The study file.")
    ] = Path("study.toml"),
    yes: Yes = False,
) -> None:
    """Write a study file that fits a run."""
    from ..errors import ArgumentError

    if output.exists():
        raise ArgumentError(f"{output} exists; give another --output, or remove it.")
    wishes = _wishes(source, preset, texts, steps, sets, model, tokenizer)
    proposal, cost = _proposed(wishes, output.parent, yes, first_alone=True)
    _write(output, proposal, f"ontogeny run {shlex.quote(str(output))}")
    _say(proposal, cost, 1)
    typer.echo(f"study file: {output}\nrun it: ontogeny run {shlex.quote(str(output))}")


def study(
    source: Source,
    preset: Preset = None,
    texts: Texts = None,
    steps: Steps = "",
    sets: Sets = None,
    model: Model = "",
    tokenizer: Tokenizer = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Its folder; studies/NAME by default. The study file is DIR.toml.",
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
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Study a run: from its name to its page."""
    from ..start import check_source, name_of

    check_source(source)
    folder = output or Path("studies") / name_of(source)
    study_file = folder.with_name(f"{folder.name}.toml")
    wished = any((preset, texts, steps, sets, model, tokenizer))
    if study_file.exists():
        _check_begun(study_file, wished)
        if not quiet:
            typer.echo(f"going on with {study_file}")
    else:
        wishes = _wishes(source, preset, texts, steps, sets, model, tokenizer)
        _check_new(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)  # paths of the study file go through it
        proposal, cost = _proposed(wishes, folder.parent, yes, bounded=max_revisions is not None)
        workers = workers or _workers(proposal, cost.device)
        if not quiet:
            _say(proposal, cost, workers)
        _ask(cost.limits(workers), yes)
        where = "" if folder == Path("studies", folder.name) else f" --output {folder}"
        _write(study_file, proposal, f"ontogeny run {study_file}{where}")
    _finish(study_file, folder, workers or 1, max_revisions, open_, quiet)


def _wishes(
    source: str, preset: str | None, texts: Any, steps: str, sets: Any, model: str, tokenizer: str
) -> Wishes:
    from ..start import Wishes

    return Wishes(source, preset or "standard", texts or (), steps, sets or (), model, tokenizer)


def _check_begun(study_file: Path, wished: bool) -> None:
    from ..errors import ArgumentError

    if wished:
        raise ArgumentError(
            f"{study_file} exists: without --preset, --texts, --steps, --set, --model and "
            f"--tokenizer this command goes on with it; for another study give another --output."
        )


def _check_new(folder: Path) -> None:
    from ..errors import ArgumentError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError(f"{folder} holds files that are no study; give another --output.")


def _proposed(
    wishes: Wishes, folder: Path, yes: bool, first_alone: bool = False, bounded: bool = False
) -> tuple[Proposal, Any]:
    """Return the proposal and what it costs; ask before much is downloaded for it."""
    from ..start import download_limit, estimate, propose, to_fetch

    fetched = 0

    def before(trajectory: Trajectory) -> None:
        nonlocal fetched
        fetched = to_fetch(trajectory, bounded or first_alone)
        needed = fetched
        if first_alone:  # the rest is fetched by the run
            needed = to_fetch(trajectory.select(steps=[int(trajectory.steps[-1])]))
        _ask(download_limit(needed), yes)

    proposal = propose(wishes, folder, before)
    return proposal, estimate(proposal.content, folder, fetched)


def _workers(proposal: Proposal, device: str) -> int:
    """Return how many processes a small machine bears: each holds the model and activations."""
    if device != "cpu":
        return 1
    each = 16 * proposal.shown.parameters  # weights, a copy of them, and as much again
    return max(1, min(4, os.cpu_count() or 1, 4_000_000_000 // max(each, 1)))


def _say(proposal: Proposal, cost: Any, workers: int) -> None:
    """Say what was found, what is left out, and what it will cost."""
    typer.echo(f"model: {proposal.shown.line}")
    typer.echo(f"preset {proposal.wishes.preset}: {proposal.preset.title}")
    typer.echo("\n".join([*proposal.left_out_lines(), *cost.lines(workers)]))


def _ask(above: list[str], yes: bool) -> None:
    """Ask whether to go on where a limit is passed; without a terminal, refuse."""
    from ..errors import ArgumentError

    if not above or yes:
        return
    what = " and ".join(above)
    if not sys.stdin.isatty():
        raise ArgumentError(
            f"this would {what}; pass --yes to do so, or ask for less: --preset quick, --steps 8."
        )
    if not typer.confirm(f"This will {what}. Go on?"):
        raise typer.Exit(1)


def _write(path: Path, proposal: Proposal, run_with: str) -> None:
    from ..start import study_text

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(study_text(proposal, run_with), encoding="utf-8")
    partial.replace(path)


def _finish(
    study_file: Path,
    folder: Path,
    workers: int,
    max_revisions: int | None,
    open_: bool,
    quiet: bool,
) -> None:
    """Run a study file and write its page; exit with 3 if an observable has no cell."""
    from ..study import open_study, read_study
    from .executors import executor_for
    from .progress import progress_for

    chosen, progress = read_study(study_file), progress_for(quiet)
    with executor_for(workers, None, chosen.device) as executor:
        result = chosen.run(folder, executor, progress, max_revisions=max_revisions)
    page = open_study(folder).report(folder / "report.html")
    typer.echo(f"study file: {study_file}\npage: {page}")
    if open_:
        import webbrowser

        webbrowser.open(Path(page).resolve().as_uri())
    if result.problems().lost:
        raise typer.Exit(3)
