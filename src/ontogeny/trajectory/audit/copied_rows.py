"""Rows of a tensor of one step that are found in another one, by the samples that are taken anyway.

Digests are of whole tensors. Within one, blocks of neighbouring samples are compared over the steps
as tensors are, and the tensors where that shows something are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ..checkpoint import Checkpoint
from ..findings import Finding, join_steps, some
from .weight_values import sample_of

_BLOCK = 16  # samples
_FEWEST = 2  # blocks
_MOST = 8  # tensors that are read


def copied_rows(
    checkpoints: Sequence[Checkpoint], known: Collection[str]
) -> Iterator[Finding]:
    """Yield rows that a checkpoint has from another one; tensors that are `known` are passed over.

    Parameters
    ----------
    checkpoints
        Increasing, with their weights on this machine.
    known
        Names of tensors that are found out otherwise.
    """
    samples = [sample_of(checkpoint.weights) for checkpoint in checkpoints]
    if any(sample.layout != samples[0].layout for sample in samples):
        return
    values = np.stack([sample.values for sample in samples])
    found = 0
    for (name, shape), start, stop in samples[0].parts():
        if len(shape) < 2 or name in known or stop - start < _FEWEST * _BLOCK:
            continue
        pair = _pair(values[:, start:stop])
        finding = None if pair is None else _verified(checkpoints, name, *pair)
        if finding is not None:
            yield finding
            found += 1
        if found == _MOST:
            return


def _pair(values: np.ndarray) -> tuple[int, int] | None:
    """Return the numbers of a step and of the one whose blocks of samples it has, else None.

    Parameters
    ----------
    values
        (steps, samples) of a tensor.
    """
    steps = len(values)
    blocks = values.shape[1] // _BLOCK
    parts = values[:, : blocks * _BLOCK].reshape(steps, blocks, _BLOCK)
    bits = np.ascontiguousarray(parts).view(np.uint64)
    weights = np.random.default_rng(0).integers(
        1, 2**63, _BLOCK, dtype=np.uint64
    ) | np.uint64(1)
    hashes = (bits * weights).sum(axis=2, dtype=np.uint64)
    ordered = np.sort(hashes, axis=0)
    different = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
    runs = 1 + (hashes[1:] != hashes[:-1]).sum(axis=0)
    counts: dict[tuple[int, int], int] = {}
    for block in np.flatnonzero(runs > different):
        for pair in _returns(parts[:, block], hashes[:, block]):
            counts[pair] = counts.get(pair, 0) + 1
    one, other = max(counts, key=lambda pair: counts[pair], default=(0, 0))
    if counts.get((one, other), 0) < _FEWEST:
        return None
    far = [_misfit(parts, step, one, other, hashes) for step in (one, other)]
    return (one, other) if far[0] > far[1] else (other, one)


def _returns(parts: np.ndarray, hashes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield pairs of steps with the same samples, most of which were others in between."""
    for one in range(len(hashes) - 2):
        later = np.flatnonzero(hashes[one + 2 :] == hashes[one])
        moved = (parts[one] != parts[one + 1]).mean() if len(later) else 0.0
        constant = (parts[one] == parts[one, 0]).all()
        if moved > 0.5 and not constant:
            yield one, int(later[0]) + one + 2


def _misfit(
    parts: np.ndarray, step: int, one: int, other: int, hashes: np.ndarray
) -> float:
    """Return the mean squared distance of a step's shared blocks from those of its neighbours."""
    shared = parts[:, hashes[one] == hashes[other]]
    beside = [s for s in (step - 1, step + 1) if 0 <= s < len(parts)]
    return float(np.mean([np.square(shared[step] - shared[s]).mean() for s in beside]))


def _verified(
    checkpoints: Sequence[Checkpoint], name: str, step: int, owner: int
) -> Finding | None:
    """Return which rows are the same, the longest stretch of them, by the tensors themselves."""
    with checkpoints[step].open() as one, checkpoints[owner].open() as other:
        same = (one.get(name) == other.get(name)).flatten(1).all(dim=1).cpu().numpy()
    edges = np.flatnonzero(
        np.diff(np.concatenate([[False], same, [False]]).astype(np.int8))
    )
    stretches = edges.reshape(-1, 2).tolist()
    first, stop = max(stretches, key=lambda ends: ends[1] - ends[0], default=(0, 0))
    if stop - first < 2:
        return None
    at = checkpoints[step].step
    text = (
        f"rows {first:,} to {stop - 1:,} of {len(same):,} of {some([name])} of "
        f"{join_steps([at])} are those of {{step}} {checkpoints[owner].step}, byte for byte"
    )
    return Finding("copied", "certain", (at,), text)
