"""The commands that say what there is: extractors, distances, observables, and one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ..markup import text_table
from .catalogue import PACKAGES, catalogue


def _kinds(incomplete: str) -> list[str]:
    return [name for name in _all_names() if name.startswith(incomplete)]


def list_(
    what: Annotated[
        str, typer.Argument(help="observables, extractors or distances; all by default.")
    ] = "all",
) -> None:
    """List observables, extractors and distances."""
    from ..errors import check_choice

    check_choice("what", what, ["all", *PACKAGES])
    for name in PACKAGES if what == "all" else [what]:
        things = catalogue()[name]
        if name == "observables":
            typer.echo("observables (ontogeny help KIND says more):")
            typer.echo("\n".join(line for line, _ in things.values()))
        else:
            typer.echo(f"{name}: {', '.join(things)}")


def help_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="An observable, extractor or distance; without it all commands.",
            autocompletion=_kinds,
        ),
    ] = None,
) -> None:
    """Explain an observable, extractor or distance."""
    if kind is None:
        typer.echo("ontogeny --help lists the commands, ontogeny COMMAND --help their options, and")
        typer.echo("ontogeny list the observables; ontogeny help KIND explains one of these.")
        return
    from .._papers import kinds_of_papers, require_papers
    from ..errors import check_choice

    names = _all_names()
    if kind in kinds_of_papers() and kind not in names:
        require_papers(f"the observable {kind!r}")
    check_choice("kind", kind, names)
    entries = catalogue()
    typer.echo(next(entries[name][kind][1] for name in PACKAGES if kind in entries[name]))


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows below each other, the columns as wide as they must be."""
    typer.echo("\n".join(text_table(heads, *rows)))


def _all_names() -> list[str]:
    return [name for package in PACKAGES for name in catalogue()[package]]
