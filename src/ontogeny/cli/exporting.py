"""The command that writes read-outs of concepts for SAELens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Studied, layer_of


def export(
    folder: Studied,
    sae_lens: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where SAELens finds the read-outs.")
    ],
    node: Annotated[
        str | None, typer.Option(metavar="NODE", help="Such as learned-concepts.")
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            metavar="L", help="A layer's number, path or short name; else all."
        ),
    ] = None,
    step: Annotated[
        int, typer.Option(metavar="S", help="Training step; -1 is the last.")
    ] = -1,
    threshold: Annotated[
        float,
        typer.Option(
            metavar="T", help="Standard deviations from which a latent fires."
        ),
    ] = 1.0,
) -> None:
    """Write the concepts of a layer as an autoencoder that SAELens loads."""
    import pandas as pd

    from ..atlas import export_sae
    from ..study import open_study

    written = export_sae(
        open_study(folder).tree,
        sae_lens,
        node=node,
        layer=layer_of(layer),
        step=step,
        threshold=threshold,
    )
    for path, place in written.items():
        labels = pd.read_csv(place / "labels.csv")
        half = labels.correlation[: len(labels) // 2].dropna()
        how = f"; correlation with their codes {half.min():.2f} to {half.max():.2f}"
        typer.echo(
            f"{place}: {len(labels) // 2} concepts of {path} as {len(labels)} latents"
            f"{how if len(half) else ''}"
        )
