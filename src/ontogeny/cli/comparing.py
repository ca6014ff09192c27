"""The command that compares studied runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import activity
from .options import Quiet, output

Folders = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR DIR ...", help="Folders of studies, or OWNER/NAME on the Hub."
    ),
]
Page = Annotated[Path, output("PAGE", "The page, one HTML file.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Also keep the result, for `ontogeny report DIR`."
    ),
]
Align = Annotated[str, typer.Option(help="step, tokens or loss.")]
Names = Annotated[
    str | None,
    typer.Option(
        metavar="LIST", help="Names of the runs; those of their folders by default."
    ),
]
Allow = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="What may differ, said on the page: inputs, tokenizers, arguments, settings, "
        "checkpoints.",
    ),
]
PerStep = Annotated[
    str | None,
    typer.Option(
        metavar="LIST", help="Tokens of a training step: one number, or one for each."
    ),
]


Concepts = Annotated[
    bool,
    typer.Option(
        "--concepts",
        help="Fit one dictionary of concepts to all runs: checkpoints are read once more.",
    ),
]
Seeds = Annotated[
    bool,
    typer.Option(
        "--seeds", help="The runs are seeds of one recipe: their mean is drawn."
    ),
]
Plan = Annotated[
    bool,
    typer.Option("--plan", help="Say what --concepts would read and keep, and stop."),
]


def compare(
    folders: Folders,
    output: Page = Path("comparison.html"),
    folder: Folder = None,
    align: Align = "step",
    names: Names = None,
    allow: Allow = "",
    tokens_per_step: PerStep = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    concepts: Concepts = False,
    seeds: Seeds = False,
    plan: Plan = False,
    quiet: Quiet = False,
) -> None:
    """Compare several studied runs: one page, and a line for each quantity."""
    from .. import comparison, report
    from .progress import progress_for

    labels = _labels(folders, names)
    runs = dict(zip(labels, folders, strict=True))
    if plan:
        from ..comparison.concepts.shared import price_of_concepts
        from ..comparison.concepts.views import studies_of

        typer.echo(price_of_concepts(studies_of(runs, True)))
        return
    tree = comparison.compare(
        runs,
        align=align,
        allow=_parts(allow),
        tokens_per_step=_rates(tokens_per_step, labels),
        title=title,
        concepts=concepts,
        seeds=seeds,
        progress=progress_for(quiet),
    )
    if folder is not None:
        comparison.write_comparison(tree, folder)
    activity.now("writing the page")
    typer.echo(f"page: {report.write(tree, output)}")
    for line in comparison.summary_lines(tree):
        typer.echo(line)


def _labels(folders: list[str], names: str | None) -> list[str]:
    """Return the names of the runs, as given or as their folders are called."""
    from ..errors import ArgumentError

    if names is not None:
        labels = _parts(names)
        if len(labels) != len(folders) or len(set(labels)) < len(labels):
            raise ArgumentError(
                f"--names must hold {len(folders)} different names, with commas between them; "
                f"got {names!r}."
            )
        return labels
    labels = [Path(folder).resolve().name for folder in folders]
    if len(set(labels)) == len(labels):
        return labels
    labels = list(folders)
    if len(set(labels)) < len(labels):
        raise ArgumentError(
            f"every folder must be given once; got {', '.join(labels)}."
        )
    return labels


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _rates(text: str | None, labels: list[str]) -> float | dict[str, float] | None:
    """Return tokens per step, one number or one for each run."""
    from ..errors import ArgumentError

    if text is None:
        return None
    try:
        rates = [float(part) for part in _parts(text)]
    except ValueError:
        rates = []
    if len(rates) not in (1, len(labels)):
        raise ArgumentError(
            f"--tokens-per-step must hold one number, or {len(labels)} with commas between them; "
            f"got {text!r}."
        )
    return rates[0] if len(rates) == 1 else dict(zip(labels, rates, strict=True))
