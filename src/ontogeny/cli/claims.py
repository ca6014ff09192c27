"""``ontogeny claims``: what a study says, as a table or file, or beside what is expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ArgumentError, OntogenyError
from .catalogue import table
from .options import Studied

if TYPE_CHECKING:
    from ..claims import Claim

_HEADS = ("what", "of", "certainty", "first", "last", "since", "p")


def claims(
    folder: Studied,
    json: Annotated[
        bool, typer.Option("--json", help="As JSON, a list of objects.")
    ] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="As CSV, with a line of heads.")
    ] = False,
    expect: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare with a file of expectations, one a line, as 'learned loss by 2000'; "
            "exit with 1 if one fails.",
        ),
    ] = None,
    allow_open: Annotated[
        bool,
        typer.Option(
            "--allow-open", help="What is open for a reason fails no expectation."
        ),
    ] = False,
) -> None:
    """Show what a study says, or compare it with what is expected."""
    from ..claims.expectations import failures, read
    from ..study import open_study
    from ..words.page_claims import claims_of_result

    try:
        if json and csv:
            raise ArgumentError("--json and --csv must not be given together.")
        said = claims_of_result(open_study(folder).tree)
        failed = (
            []
            if expect is None
            else failures(said, read(expect), allow_open=allow_open)
        )
    except OntogenyError as error:
        error.exit_code = 2  # 1 is that of an expectation that fails
        raise
    if expect is None:
        _show(said, json, csv)
        return
    typer.echo("\n".join(failed) if failed else "every expectation is met")
    if failed:
        raise typer.Exit(1)


def _show(said: Sequence[Claim], json: bool, csv: bool) -> None:
    from ..claims.table import claims_frame

    if json:
        typer.echo(
            claims_frame(said).to_json(orient="records", indent=1, force_ascii=False)
        )
    elif csv:
        from ..markup import csv_text

        typer.echo(csv_text(claims_frame(said)), nl=False)
    else:
        table(_HEADS, [_line(claim) for claim in said])


def _line(claim: Claim) -> tuple[str, ...]:
    subject = claim.subject
    where = [subject.node, subject.layer, subject.label]
    certainty = claim.certainty.value
    if claim.reason is not None:
        certainty += f": {claim.reason.value}"
    numbers = (claim.first, claim.last, claim.since, claim.p_value)
    texts = ["" if math.isnan(number) else f"{number:.3g}" for number in numbers]
    return (claim.kind.value, " ".join(filter(None, where)), certainty, *texts)
