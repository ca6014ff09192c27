"""Fetch the revisions of a trajectory beforehand, for machines that have no network later."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..errors import CheckpointError
from ..machine import free_disk, size_text
from .hub.repository import list_files
from .hub.revision import HubRevision
from .tokenizers import tokenizer_files
from .trajectory import Trajectory


def missing_bytes(trajectory: Trajectory) -> int:
    """Return the bytes of weights that `download` would fetch; what steps share counts once.

    Raises
    ------
    CheckpointError
        If the Hub cannot be reached, or a revision holds no weights or not all shards.

    Examples
    --------
    >>> import torch
    >>> missing_bytes(Trajectory.from_models({0: torch.nn.Linear(2, 1)}))
    0
    """
    sources = list(chain.from_iterable(_sources(trajectory).values()))
    list_files(sources)
    sizes: dict[tuple[Path, str], int] = {}
    for source in sources:
        listing = source.listing()
        for name in source.missing():
            blob = source.folder / "blobs" / listing[name].digest
            if not blob.exists():
                sizes[source.folder, listing[name].digest] = listing[name].size
    return sum(sizes.values())


def download(trajectory: Trajectory) -> Iterator[int]:
    """Fetch weights, configuration and tokenizer of every Hub revision; give each step.

    What is there already is not fetched again, so a download that was stopped goes on. Nothing
    is fetched if the disk has too little space for all. Afterwards the same trajectory opens
    offline (``HF_HUB_OFFLINE=1``).

    Yields
    ------
    int
        The step whose revision is now on this machine; checkpoints that are not of the Hub are
        passed over.

    Raises
    ------
    CheckpointError
        If the disk has too little space, or a file cannot be fetched whole.

    Examples
    --------
    >>> import torch
    >>> list(download(Trajectory.from_models({0: torch.nn.Linear(2, 1)})))
    []
    """
    sources = _sources(trajectory)
    if not sources:
        return
    check_space(missing_bytes(trajectory), next(iter(sources.values()))[0].cache)
    for step, revisions in sources.items():
        for source in revisions:
            source.download()
        tokenizer_files(trajectory[step])
        yield step


def _sources(trajectory: Trajectory) -> dict[int, list[HubRevision]]:
    """Return, for each checkpoint of the Hub, all revisions that its weights are made of."""
    return {c.step: c.hub_revisions for c in trajectory if c.source is not None}


def check_space(needed: int, cache: Path) -> None:
    """Refuse what the disk of a cache cannot hold.

    Raises
    ------
    CheckpointError
        If it has too little space.
    """
    free = free_disk(cache)
    if needed > free:
        raise CheckpointError(
            f"{size_text(needed)} are to be fetched, but {cache} has space for {size_text(free)}; "
            "select fewer steps (--steps 8), or keep a few revisions on disk at once where the "
            "Hub can be reached (--max-revisions 2)."
        )
