"""Tensors of one step that are found in another one, whole or in part.

A tensor that training has moved never comes back to what it was, byte for byte. So one that differs
from both neighbours and is that of another step was copied, as by a save into the wrong place. What
stays the same from a step to the next is frozen by right: such steps count as one place.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..checkpoint import Checkpoint
from ..findings import Finding, join_steps, some
from .copied_rows import copied_rows

Places: TypeAlias = tuple[tuple[int, ...], ...]
"""Where a value stands: runs of neighbouring checkpoints, by their numbers."""

_VERIFIED = 4  # of the tensors that came back together, that are read
_SAMPLED = 65_536  # elements of a tensor
_FEWEST = 16  # elements that have moved and come back
_OF_HALF = 0.1  # share of them: single elements of 16 bits may hover between two values


def places_of_return(values: Sequence[Hashable | None]) -> list[Places]:
    """Return for each value that comes back after another one where it stands.

    Examples
    --------
    >>> places_of_return(["a", "a", "b", "c", "b", "a"])
    [((0, 1), (5,)), ((2,), (4,))]
    >>> places_of_return(["a", "a", "b", None])
    []
    """
    runs: dict[Hashable, list[tuple[int, ...]]] = {}
    for value, group in itertools.groupby(range(len(values)), key=lambda i: values[i]):
        if value is not None:
            runs.setdefault(value, []).append(tuple(group))
    return [tuple(places) for places in runs.values() if len(places) > 1]


def copied(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield which tensors of which steps are those of another step, whole or in part.

    Parameters
    ----------
    checkpoints
        Those whose weights are on this machine, increasing.
    """
    if len(checkpoints) < 3:
        return
    digests = [checkpoint.digests() for checkpoint in checkpoints]
    contents = [tuple(sorted(of.items())) for of in digests]
    together: dict[Places, list[str]] = {}
    for name in sorted(set().union(*digests)):
        for places in places_of_return([of.get(name) for of in digests]):
            together.setdefault(places, []).append(name)
    whole: set[str] = set()
    for places, names in together.items():
        if _are_one(places, contents) or not _has_moved(checkpoints, places, names):
            continue
        whole |= set(names)
        yield _finding(checkpoints, places, names, len(digests[places[0][0]]))
    # A checkpoint that is saved twice is another finding.
    different = [
        c for i, c in enumerate(checkpoints) if contents.index(contents[i]) == i
    ]
    yield from copied_rows(different, whole)


def _are_one(places: Places, contents: Sequence[Hashable]) -> bool:
    """Return whether it is whole checkpoints that are the same, which is another finding."""
    return len({contents[run[0]] for run in places}) == 1


def _has_moved(
    checkpoints: Sequence[Checkpoint], places: Places, names: Sequence[str]
) -> bool:
    """Return whether tensors were something else in between, and not in single elements.

    Constant ones, such as a bias that is set to 0 again, say nothing.
    """
    at = places[0][-1]
    with checkpoints[at].open() as there, checkpoints[at + 1].open() as after:
        common = [name for name in names if name in set(after.names())]
        largest = sorted(
            common, key=lambda name: -torch.Size(there.shape(name)).numel()
        )
        return any(
            _differs(there.get(name), after.get(name))
            for name in largest[:_VERIFIED]
            if there.dtype(name).is_floating_point
            and there.shape(name) == after.shape(name)
        )


def _differs(tensor: Tensor, other: Tensor) -> bool:
    flat = tensor.detach().reshape(-1)
    if flat.numel() < _FEWEST or bool((flat == flat[0]).all()):
        return False
    moved = int((flat != other.detach().reshape(-1)).sum())
    least = _OF_HALF * flat.numel() if tensor.itemsize < 4 else 0
    return moved >= max(_FEWEST, least)


def _finding(
    checkpoints: Sequence[Checkpoint], places: Places, names: Sequence[str], count: int
) -> Finding:
    owner = _owner(checkpoints, places, names)
    others = sorted(chain(*(run for run in places if run is not owner)))
    steps = [checkpoints[i].step for i in others]
    of = join_steps([checkpoints[i].step for i in owner])
    verb = "is that" if len(names) == 1 else "are those"
    tensors = "tensor" if count == 1 else "tensors"
    text = (
        f"{len(names)} of {count} {tensors} of {join_steps(steps)} {verb} of {of}, byte for byte: "
        f"{some(names)}"
    )
    return Finding("copied", "certain", tuple(steps), text)


def _owner(
    checkpoints: Sequence[Checkpoint], places: Places, names: Sequence[str]
) -> tuple[int, ...]:
    """Return the place whose neighbours are nearest: there the tensors have come by training."""
    return min(
        places, key=lambda run: _from_neighbours(checkpoints, run, names[:_VERIFIED])
    )


def _from_neighbours(
    checkpoints: Sequence[Checkpoint], run: tuple[int, ...], names: Sequence[str]
) -> float:
    """Return the mean distance of tensors from those before and after a place."""
    ends = [(run[0], run[0] - 1), (run[-1], run[-1] + 1)]
    pairs = [(here, beside) for here, beside in ends if 0 <= beside < len(checkpoints)]
    return float(
        np.mean(
            [
                _distance(checkpoints[here], checkpoints[beside], names)
                for here, beside in pairs
            ]
        )
    )


def _distance(one: Checkpoint, other: Checkpoint, names: Sequence[str]) -> float:
    with one.open() as first, other.open() as second:
        there = set(second.names())
        samples = [
            (_sampled(first.get(name)), _sampled(second.get(name)))
            for name in names
            if name in there
        ]
    alike = [(a - b).square().sum() for a, b in samples if a.shape == b.shape]
    return float(sum(alike, torch.zeros(())))


def _sampled(tensor: Tensor) -> Tensor:
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, -(-flat.numel() // _SAMPLED))].double().cpu()
