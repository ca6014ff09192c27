"""``ontogeny run --watch``: a study of a run that is still training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArgumentError, check_number, check_whole

if TYPE_CHECKING:
    from ..study.running.executors import Submitting

Watch = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Study checkpoints as they land, look every so many seconds, and rewrite the page.",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        metavar="STEP", help="With --watch: the training has ended at this step."
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="With --watch: the training has ended if no checkpoint has landed for so long.",
    ),
]


def refuse_with_watch(options: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing while a run is watched.

    Raises
    ------
    ArgumentError
        If one of them is given.
    """
    for name, value in options.items():
        if value:
            raise ArgumentError(f"{name} does not go with --watch.")


def watched(
    study: Path,
    folder: Path,
    every: float | None,
    until: int | None,
    patience: float | None,
    executor: Submitting | None,
    keep_going: bool,
    quiet: bool,
) -> Any:
    """Watch the run of a study file, say where the page is, and return the result.

    Raises
    ------
    ArgumentError
        If `until` or `patience` come without `every`, or one of them is out of range.
    """
    from ..study import read_study, watch
    from .progress import progress_for

    if every is None:
        raise ArgumentError("--until and --patience go with --watch SECONDS.")
    check_number("--watch", every, 0, above=True)
    if until is not None:
        check_whole("--until", until, 0)
    if patience is not None:
        check_number("--patience", patience, 0, above=True)
    page = folder / "report.html"
    result = watch(
        lambda: read_study(study),
        folder,
        every=every,
        until=until,
        patience=patience,
        page=page,
        executor=executor,
        progress=progress_for(quiet),
        keep_going=keep_going,
    )
    typer.echo(f"result: {folder / 'result.zarr'}\npage: {page}")
    return result
