"""The commands that begin: what is proposed and what it costs, to the file and to the page."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import activity
from ..errors import ArgumentError
from ..machine import free_disk, free_memory, peak_memory, size_text
from ..start.cost import Cost, download_limit, estimate, to_fetch, total
from ..start.proposal import Proposal, Wishes, propose
from ..start.source import check_source, names_of, same_source
from ..start.written import study_text
from ..store import write_whole
from ..trajectory import Trajectory
from .options import MaxRevisions, Quiet, Source, Yes, output, with_wishes

_ASKED = "# Asked for: "


def study_file_of(folder: Path) -> Path:
    """Return the study file beside a study's folder."""
    return folder.with_name(f"{folder.name}.toml")


@dataclass(frozen=True)
class Begun:
    """A study that is proposed, and what it costs."""

    file: Path
    proposal: Proposal
    cost: Cost

    def write(self, run_with: str) -> None:
        """Write the study file, whole or not at all."""
        text = study_text(self.proposal, run_with)
        write_whole(self.file, _with_asked(text, self.proposal.wishes).encode())


def prepared(
    sources: Sequence[str],
    asked: Mapping[str, Any],
    output: Path | None,
    workers: int | None,
    yes: bool,
    quiet: bool,
    max_revisions: int | None,
) -> tuple[dict[str, Path], int]:
    """Return the folders of studies by name, with their study files written, and the workers."""
    for source in sources:
        check_source(source)
    names = names_of(sources)
    folders = {name: (output or Path("studies")) / name for name in names}
    if len(sources) == 1 and output is not None:
        folders = {names[0]: output}
    new = []
    for source, folder in zip(sources, folders.values(), strict=True):
        wishes, file = Wishes(source, **asked), study_file_of(folder)
        if file.exists():
            _check_begun(file, wishes, bool(asked))
            if not quiet:
                # How many processes the machine bears is known of new studies only.
                alone = "" if workers else ", one process unless --workers says more"
                typer.echo(f"going on with {file}{alone}")
        else:
            _check_new(folder)
            of = None if quiet else f" of {file.stem}" * (len(folders) > 1)
            new.append(begin(wishes, file, yes, bounded=max_revisions is not None, of=of))
    workers = workers or _workers(new)
    if new and not quiet:
        say(new, workers)
    if new:
        _ask(total([begun_study.cost for begun_study in new]).limits(workers), yes)
    for begun_study in new:
        folder = begun_study.file.with_name(begun_study.file.name.removesuffix(".toml"))
        usual = folder == Path("studies", folder.name)
        where = [] if usual else ["--output", str(folder)]
        begun_study.write(shlex.join(["ontogeny", "run", str(begun_study.file), *where]))
        if begun_study.cost.keep is not None:
            begun_study.cost.keep(folder)
    return folders, workers


def begin(
    wishes: Wishes,
    file: Path,
    yes: bool,
    first_alone: bool = False,
    bounded: bool = False,
    of: str | None = "",
) -> Begun:
    """Return a proposal and what it costs; ask before much is downloaded for it.

    What was found is said at once, `of` this run; None says nothing.
    """
    fetched = 0

    def before(trajectory: Trajectory) -> None:
        nonlocal fetched
        needed = fetched = to_fetch(trajectory, bounded or first_alone)
        if first_alone:  # the rest is fetched by the run
            needed = to_fetch(trajectory.select(steps=[int(trajectory.steps[-1])]))
        _ask(download_limit(needed), yes)

    file.parent.mkdir(parents=True, exist_ok=True)  # paths of the study file go through it
    proposal = propose(wishes, file.parent, before)
    if of is not None:
        lines = [f"checkpoints{of}: {line}" for line in proposal.lines]
        lines += [f"texts{of}: {line}" for line in proposal.texts]
        lines += [f"model{of}: {proposal.shown.line}", *proposal.left_out_lines()]
        typer.echo("\n".join(lines))
    return Begun(file, proposal, estimate(proposal.content, file.parent, fetched))


def say(begun: Sequence[Begun], workers: int) -> None:
    """Say what it will cost."""
    preset = begun[0].proposal.preset
    typer.echo(f"preset {preset.name}: {preset.title}")
    free = free_disk(begun[0].file)
    typer.echo("\n".join(total([study.cost for study in begun]).lines(workers, free)))
    if peak := peak_memory():
        of_each = f" in each of {workers} processes" if workers > 1 else ""
        typer.echo(f"memory: about {size_text(peak)}{of_each}")


def _check_begun(file: Path, wishes: Wishes, wished: bool) -> None:
    """Refuse to go on with the study of another run, or with one that was asked for otherwise."""
    try:
        content = file.read_text(encoding="utf-8")
        table = tomllib.loads(content).get("trajectory", {})
        studied = str(table.get("hub", table.get("folder", "")))
    except (OSError, ValueError, AttributeError):  # said with its line when it is read
        return
    if not same_source(wishes.source, studied, file.parent):
        raise ArgumentError(
            f"{file} is the study of {studied}; for {wishes.source} give another --output."
        )
    if wished and _asked_line(wishes) not in content.splitlines():
        before = [line for line in content.splitlines() if line.startswith(_ASKED)]
        words = f" It was begun with {_words(before[0])}." if before else ""
        raise ArgumentError(
            f"{file} exists: without options, or with the same, this command goes on with it; for "
            f"another study give another --output.{words}"
        )


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError(f"{folder} holds files that are no study; give another --output.")


def _with_asked(text: str, wishes: Wishes) -> str:
    """Return the text of a study file, with a comment on what was asked for below its first."""
    first, rest = text.split("\n", 1)
    return f"{first}\n{_asked_line(wishes)}\n{rest}"


def _asked_line(wishes: Wishes) -> str:
    return _ASKED + json.dumps(wishes.options())


def _words(line: str) -> str:
    asked = line.removeprefix(_ASKED)
    try:
        return shlex.join(json.loads(asked))
    except (ValueError, TypeError):  # it was edited
        return asked


def _workers(begun: Sequence[Begun]) -> int:
    """Return how many processes a small machine bears: each holds the model and activations."""
    if not begun or any(study.cost.device != "cpu" for study in begun):
        return 1
    # This process holds what it took to compute one checkpoint: the next ones take as much.
    cores, free = os.cpu_count() or 1, free_memory()
    room = cores if free is None else int(0.8 * free) // max(peak_memory(), 1)
    return max(1, min(4, cores, room))


def _ask(above: list[str], yes: bool) -> None:
    """Ask whether to go on where a limit is passed; without a terminal, refuse."""
    if not above or yes:
        return
    what = " and ".join(above)
    if not sys.stdin.isatty():
        raise ArgumentError(
            f"this would {what}; pass --yes to do so, or ask for less: --preset quick, --steps 8."
        )
    if not typer.confirm(f"This will {what}. Go on?"):
        raise typer.Exit(1)


@with_wishes
def init(
    source: Source,
    asked: Any,
    output: Annotated[Path, output("FILE", "The study file.")] = Path("study.toml"),
    yes: Yes = False,
) -> None:
    """Write a study file that fits a run."""
    from ..errors import ArgumentError
    from ..start import Wishes

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
        output(
            "DIR",
            "Its folder; studies/NAME by default. The study file is DIR.toml. Of several runs, "
            "the folder of their studies.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes on this machine; by default what fits, at most 4."),
    ] = None,
    max_revisions: MaxRevisions = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Study runs, from their names to a page; several are compared on one."""
    studies, workers = prepared(sources, asked, output, workers, yes, quiet, max_revisions)
    lost = False
    for name, folder in studies.items():
        if len(studies) > 1 and not quiet:
            typer.echo(f"studying {name}", err=True)
        lost |= _finish(folder, workers, max_revisions, quiet)
    page = next(iter(studies.values())) / "report.html"
    if len(studies) > 1:
        page = _compare(studies, (output or Path("studies")) / "comparison.html", quiet)
    if open_:
        webbrowser.open(page.resolve().as_uri())
    if lost:
        raise typer.Exit(3)


def _finish(folder: Path, workers: int, max_revisions: int | None, quiet: bool) -> bool:
    """Run the study of a folder and write its page; return whether an observable has no cell."""
    from ..study import open_study, read_study
    from .executors import executor_for
    from .progress import progress_for

    study_file = study_file_of(folder)
    spec, progress = read_study(study_file), progress_for(quiet)
    with executor_for(workers, None, spec.device) as executor:
        result = spec.run(folder, executor, progress, max_revisions=max_revisions)
    activity.now("writing the page")
    page = open_study(folder).report(folder / "report.html")
    typer.echo(f"study file: {study_file}\npage: {page}")
    return bool(result.problems().lost)


def _compare(studies: Mapping[str, Path], page: Path, quiet: bool) -> Path:
    """Write the page that compares studies, and say each of its sentences."""
    from .. import comparison, report
    from ..comparison.concepts import views_here
    from ..errors import ArgumentError
    from .progress import progress_for

    try:
        runs, progress = dict(studies), progress_for(quiet)
        tree = comparison.compare(runs, concepts=views_here(runs, progress), progress=progress)
    except ArgumentError as error:
        command = shlex.join(["ontogeny", "compare", *map(str, studies.values())])
        raise ArgumentError(f"the studies are finished, not compared: {error} {command}") from error
    activity.now("writing the page")
    typer.echo(f"comparison: {report.write(tree, page)}")
    for line in comparison.summary_lines(tree):
        typer.echo(line)
    return page
