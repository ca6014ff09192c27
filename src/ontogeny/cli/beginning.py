"""Before a study runs: what is proposed, what it costs, and whether it was begun already."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from ..errors import ArgumentError
from ..machine import free_disk, free_memory, peak_memory, size_text
from ..start.budget import within
from ..start.cost import Cost, download_limit, estimate, to_fetch, total
from ..start.opened import Opened
from ..start.proposal import Proposal, propose
from ..start.source import same_source
from ..start.times import hours_of
from ..start.wishes import Wishes
from ..start.written import study_text
from ..study import Study
from ..trajectory import Trajectory
from ..whole_files import write_whole
from .runs import study_file_of

_ASKED = "# Asked for: "


@dataclass(frozen=True)
class Begun:
    """A study that is proposed, and what it costs."""

    file: Path
    proposal: Proposal
    cost: Cost

    def write(self, run_with: str) -> None:
        """Write the study file, whole or not at all."""
        first, rest = study_text(self.proposal, run_with).split("\n", 1)
        text = f"{first}\n{_asked_line(self.proposal.wishes)}\n{rest}"
        write_whole(self.file, text.encode())


def prepared(
    wished: Mapping[Path, Wishes],
    opened: Mapping[Path, Opened],
    has_options: bool,
    workers: int | None,
    yes: bool,
    quiet: bool,
    max_revisions: int | None,
) -> tuple[dict[Path, Study], int]:
    """Return the studies that are begun now by their study files, and the workers.

    Their study files are written.

    Parameters
    ----------
    wished, opened
        By the folders of studies what was asked for, and the runs of those that are new.
    has_options
        Whether anything was asked for beside the runs.
    """
    new = []
    studies = {}
    for folder, wishes in wished.items():
        file = study_file_of(folder)
        if file.exists():
            _check_begun(file, wishes, has_options)
            if not quiet:
                # How many processes the machine bears is known of new studies only.
                alone = "" if workers else ", one process unless --workers says more"
                typer.echo(f"going on with {file}{alone}")
        else:
            _check_new(folder)
            of = f" of {file.stem}" if len(wished) > 1 else ""
            new.append(
                begin(
                    wishes,
                    file,
                    yes,
                    bounded=max_revisions is not None,
                    of=None if quiet else of,
                    opened=opened.get(folder),
                    workers=workers,
                    runs=len(wished),
                )
            )
    workers = workers or _workers([one.cost for one in new])
    if new and not quiet:
        say(new, workers)
    if new:
        cost = total([begun_study.cost for begun_study in new])
        _ask(cost.limits(workers), yes, _less(new[0]))
    for begun_study in new:
        folder = begun_study.file.with_name(begun_study.file.name.removesuffix(".toml"))
        usual = folder == Path("studies", folder.name)
        where = [] if usual else ["--output", str(folder)]
        begun_study.write(
            shlex.join(["ontogeny", "run", str(begun_study.file), *where])
        )
        if begun_study.cost.keep is not None:
            studies[begun_study.file] = begun_study.cost.keep(folder)
    return studies, workers


def begin(
    wishes: Wishes,
    file: Path,
    yes: bool,
    first_alone: bool = False,
    bounded: bool = False,
    of: str | None = "",
    opened: Opened | None = None,
    workers: int | None = None,
    runs: int = 1,
) -> Begun:
    """Return a proposal and what it costs; ask before much is downloaded for it.

    What was found is said at once, `of` this run; None says nothing. It may be `opened` already. A
    budget of time is that of so many `runs`, which so many `workers` compute; None: what fits.
    """
    seconds = 3600 * hours_of(wishes.budget) / runs if wishes.budget else math.inf
    fetched = 0

    def before(trajectory: Trajectory) -> None:
        nonlocal fetched
        needed = fetched = to_fetch(trajectory, bounded or first_alone)
        if first_alone:  # the rest is fetched by the run
            needed = to_fetch(trajectory.select(steps=[int(trajectory.steps[-1])]))
        _ask(
            download_limit(needed), yes, (["--steps 8"] if len(trajectory) > 8 else [])
        )

    # Paths of the study file go through it.
    file.parent.mkdir(parents=True, exist_ok=True)
    agree = partial(_agree, yes)
    proposal = propose(wishes, file.parent, before, agree, opened)
    if of is not None:
        lines = [f"checkpoints{of}: {line}" for line in proposal.lines]
        lines += [f"texts{of}: {line}" for line in proposal.texts]
        lines += [f"model{of}: {proposal.shown.line}", *proposal.left_out_lines()]
        typer.echo("\n".join(lines))
    if math.isinf(seconds):
        return Begun(file, proposal, estimate(proposal.content, file.parent, fetched))
    content, cost, lines = within(
        proposal.content,
        file.parent,
        fetched,
        seconds,
        lambda cost: workers or _workers([cost]),
    )
    if of is not None and lines:
        typer.echo(f"budget{of}: {lines[0]}")
    return Begun(file, replace(proposal, content=content), cost)


def _agree(yes: bool, line: str) -> bool:
    """Return whether to score what trial passes show; without a terminal only with --yes."""
    if yes:
        typer.echo(f"places: {line}")
    return yes or (
        sys.stdin.isatty() and typer.confirm(f"{line}. Score only these?", default=True)
    )


def say(begun: Sequence[Begun], workers: int) -> None:
    """Say what it will cost."""
    preset = begun[0].proposal.preset
    typer.echo(f"preset {preset.name}: {preset.title}")
    free = free_disk(begun[0].file)
    typer.echo("\n".join(total([study.cost for study in begun]).lines(workers, free)))
    if peak := peak_memory():
        of_each = f" in each of {workers} processes" if workers > 1 else ""
        typer.echo(f"memory: about {size_text(peak)}{of_each}")


def _check_begun(file: Path, wishes: Wishes, has_options: bool) -> None:
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
    if has_options and _asked_line(wishes) not in content.splitlines():
        before = [line for line in content.splitlines() if line.startswith(_ASKED)]
        words = f" It was begun with {_words(before[0])}." if before else ""
        raise ArgumentError(
            f"{file} exists: without options, or with the same, this command goes on with it; for "
            f"another study give another --output.{words}"
        )


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError(
            f"{folder} holds files that are no study; give another --output."
        )


def _asked_line(wishes: Wishes) -> str:
    return _ASKED + json.dumps(wishes.options())


def _words(line: str) -> str:
    asked = line.removeprefix(_ASKED)
    try:
        return shlex.join(json.loads(asked))
    except (ValueError, TypeError):  # it was edited
        return asked


def _workers(costs: Sequence[Cost]) -> int:
    """Return how many processes a small machine bears: each holds the model and activations."""
    if not costs or any(cost.device != "cpu" for cost in costs):
        return 1
    # This process holds what it took to compute one checkpoint: the next ones take as much.
    cores = os.cpu_count() or 1
    free = free_memory()
    room = cores if free is None else int(0.8 * free) // max(peak_memory(), 1)
    return max(1, min(4, cores, room))


def _less(begun: Begun) -> list[str]:
    """Return options that ask for less than this study; none that it is below already."""
    options = {
        "--preset quick": begun.proposal.preset.name != "quick",
        "--steps 8": begun.cost.checkpoints > 8,
        "--set inputs.max_texts=80": begun.proposal.content["inputs"]["max_texts"] > 80,
    }
    return [option for option, is_less in options.items() if is_less]


def _ask(above: list[str], yes: bool, less: Sequence[str]) -> None:
    """Ask whether to go on where a limit is passed; without a terminal, refuse.

    `less` are options that ask for less.
    """
    if not above or yes:
        return
    what = " and ".join(above)
    if not sys.stdin.isatty():
        smaller = (", or ask for less: " if bool(less) else "") + ", ".join(less)
        raise ArgumentError(f"this would {what}; pass --yes to do so{smaller}.")
    if not typer.confirm(f"This will {what}. Go on?"):
        raise typer.Exit(1)
