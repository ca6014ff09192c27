"""Several runs in one folder: weights that have nothing in common with those before them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import torch

from ..checkpoint import Checkpoint
from ..findings import Finding
from ..weights.files import matrix_names
from .digests import remedy

_MATRICES = 6  # of a checkpoint, that are looked at
_ELEMENTS = 16_384  # of a matrix
_FEWEST = 1_000  # elements of all together
_COMMON = 0.05  # correlation: training from one initialisation leaves more
# Standard errors from 0: of few elements, a higher correlation may be chance.
_ERRORS = 4.0

_Sample = Mapping[tuple[str, tuple[int, ...]], torch.Tensor]


def restarts(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield every step whose weights are not related to those of the step before.

    Matrices of unrelated initialisations do not correlate, in whatever way they were drawn; those
    of one run do, as long as weight decay has left something of the checkpoint before. Two
    checkpoints are enough to tell.
    """
    runs: list[list[Checkpoint]] = []
    samples: list[_Sample] = []
    place: dict[int, int] = {}
    for checkpoint in checkpoints:
        sample = _sample(checkpoint)
        at = next(
            (i for i, last in enumerate(samples) if _related(last, sample)), len(runs)
        )
        if at == len(runs):
            runs.append([])
            samples.append(sample)
        runs[at].append(checkpoint)
        samples[at] = sample
        place[checkpoint.step] = at
    for before, after in itertools.pairwise(place):
        if place[before] != place[after]:
            text = (
                f"the weights of {{step}} {after} have nothing in common with those of {{step}} "
                f"{before}: much weight decay in between, or another run{remedy(runs)}"
            )
            yield Finding("restart", "suspected", (after,), text)


def _sample(checkpoint: Checkpoint) -> _Sample:
    """Return the first elements of a few matrices."""
    with checkpoint.open() as reader:
        names = matrix_names(reader)
        sample = names[:: max(1, len(names) // _MATRICES)]
        shapes = [reader.shape(name) for name in sample]
        heights = [-(-_ELEMENTS // max(1, columns)) for _, columns in shapes]
        rows = [reader.rows(n, 0, h) for n, h in zip(sample, heights, strict=True)]
        return {
            key: part.detach().reshape(-1)[:_ELEMENTS].cpu().double()
            for key, part in zip(zip(sample, shapes, strict=True), rows, strict=True)
        }


def _related(first: _Sample, second: _Sample) -> bool:
    """Return whether anything speaks for one run; what cannot be compared does."""
    both = [torch.stack([first[key], second[key]]) for key in first if key in second]
    both = [
        pair for pair in both if pair.isfinite().all() and (pair.std(dim=1) > 0).all()
    ]
    sizes = torch.tensor([pair.shape[1] for pair in both], dtype=torch.float64)
    if sizes.sum() < _FEWEST:
        return True
    correlation = torch.stack([torch.corrcoef(pair)[0, 1] for pair in both])
    errors = float((correlation * sizes.sqrt()).sum() / len(both) ** 0.5)
    return float(correlation.mean()) >= _COMMON or errors >= _ERRORS
