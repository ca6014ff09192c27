"""The first answer of a study: which runs there are, said before anything of them is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from .. import activity
from ..errors import ArgumentError
from ..start.opened import Opened
from ..start.source import check_source, names_of
from ..start.wishes import Wishes


def study_file_of(folder: Path) -> Path:
    """Return the study file beside a study's folder."""
    return folder.with_name(f"{folder.name}.toml")


def wished(
    sources: Sequence[str], asked: Mapping[str, Any], output: Path | None
) -> dict[Path, Wishes]:
    """Return what is asked of each run by the folder of its study.

    Raises
    ------
    ArgumentError
        If there is no such run, one is given twice, or the folder of a study has no name.
    """
    for source in sources:
        check_source(source)
    folders = [(output or Path("studies")) / name for name in names_of(sources)]
    if len(sources) == 1 and output is not None:
        _check_named(output)
        folders = [output]
    wishes = [Wishes(source, **asked) for source in sources]
    return dict(zip(folders, wishes, strict=True))


def _check_named(output: Path) -> None:
    """Refuse a folder without a name, which the study file beside it would have."""
    if output.name in ("", ".."):
        raise ArgumentError(
            f"--output {output} has no name for a study and the file beside it; name a new folder, "
            f"such as {output / 'study'}."
        )


def found(studies: Mapping[Path, Wishes], quiet: bool) -> dict[Path, Opened]:
    """Return the runs of studies that are not begun yet."""
    runs = {
        folder: opened(wishes, quiet)
        for folder, wishes in studies.items()
        if not study_file_of(folder).exists()
    }
    activity.now("loading libraries")
    return runs


def opened(wishes: Wishes, quiet: bool) -> Opened:
    """Return a run, and say what there is."""
    activity.now(f"opening {wishes.source}")
    run = Opened.of(wishes)
    if not quiet:
        typer.echo(f"found in {wishes.source}: {run.line}")
        activity.touch()
    return run
