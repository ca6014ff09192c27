"""What the weights themselves make suspicious: far neighbours, swapped steps, no initialisation.

Distances are taken between samples of the weights: the same evenly spaced elements of every
tensor, scaled so that they estimate distances between all weights.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..adapters.base import BaseWeights
from ..checkpoint import Checkpoint
from ..findings import Finding, join_steps, some
from ..weights.files import Reader, ShardsReader, WeightFiles, Weights
from .digests import duplicate_groups

_SAMPLE = 65_536  # elements of all tensors together
_PER_TENSOR = 16  # at least
_FEWEST_ELEMENTS = 256  # below that, distances of unrelated weights vary too much
_FEWEST = 5  # checkpoints
_DETOUR = 4.0  # a step of pure noise makes a detour of 2, a random walk one of 1.4
_JUMP = 8.0  # times what the gaps around lead to expect
_AROUND = 3  # gaps on each side
_BETTER = 0.8  # way through two exchanged steps, as a share of the way as labelled
_HEAVY = 6.0  # kurtosis of most matrices; normal values have 3, uniform ones 1.8
_LARGE = 512  # elements of a matrix whose kurtosis is looked at
_MATRICES = 4  # at least: an embedding that was enlarged has heavy tails of its own
_SCALES = ("weight", "scale", "gamma")


@dataclass(frozen=True)
class _Sample:
    """Evenly spaced elements of all floating-point tensors of one checkpoint.

    Attributes
    ----------
    scales
        Vectors that scale (of norms).
    uneven
        Those of them that are not constant.
    sizes
        How many elements are of each tensor of the `layout`.
    kurtosis
        Median over the larger matrices; 0 if there are few.
    """

    layout: tuple[tuple[str, tuple[int, ...]], ...]
    values: np.ndarray
    scales: tuple[str, ...]
    uneven: tuple[str, ...]
    kurtosis: float
    sizes: tuple[int, ...] = ()

    def parts(self) -> Iterator[tuple[tuple[str, tuple[int, ...]], int, int]]:
        """Yield each tensor's name and shape, and where its elements begin and end."""
        ends = np.cumsum(self.sizes).tolist()
        yield from zip(self.layout, [0, *ends[:-1]], ends, strict=True)


def numbers(
    checkpoints: Sequence[Checkpoint], explained: Collection[int] = ()
) -> Iterator[Finding]:
    """Yield what the numbers make suspicious; needs the weights on this machine.

    Steps that are `explained`, as by tensors of another one, are passed over.
    """
    from scipy.spatial.distance import pdist, squareform  # slow to import

    copies = (group[1:] for group in duplicate_groups(checkpoints))
    repeated = set(explained).union(*copies)
    single = [c for c in checkpoints if c.step not in repeated]
    if not single:
        return
    samples = {c.step: sample_of(c.weights) for c in single}
    alike = {
        step: sample
        for step, sample in samples.items()
        if np.isfinite(sample.values).all()
        and sample.layout == samples[single[0].step].layout
    }
    # One model claims to be no initialisation, and neither does the base of a further training.
    is_base = isinstance(single[0].derived, BaseWeights)
    if single[0].step == 0 and len(checkpoints) > 1 and not is_base:
        yield from _initialisation(samples[0])
    steps = list(alike)
    values = np.array([alike[step].values for step in steps])
    if len(steps) < _FEWEST or values.shape[1] < _FEWEST_ELEMENTS:
        return
    yield from suspicions(steps, squareform(pdist(values)))


def suspicions(steps: Sequence[int], distances: np.ndarray) -> list[Finding]:
    """Return what distances make suspicious: an exchange of two steps, or else far neighbours.

    Two exchanged checkpoints are both far from their neighbours; one that is far alone is not
    explained by an exchange.

    Parameters
    ----------
    steps
        Increasing, length n.
    distances
        Between checkpoints, shape (n, n).
    """
    far = list(far_neighbours(steps, distances))
    alone = [finding.steps[0] for finding in far if len(finding.steps) == 1]
    exchanged = list(misordered(steps, distances))
    with_an_end = exchanged and {steps[0], steps[-1]} & {*exchanged[0].steps}
    return far if len(alone) == 1 and not with_an_end else exchanged or far


def far_neighbours(steps: Sequence[int], distances: np.ndarray) -> Iterator[Finding]:
    """Yield checkpoints that lie off the way, and jumps that the gaps around do not explain.

    Parameters
    ----------
    steps
        Increasing, length n.
    distances
        Between checkpoints, shape (n, n).
    """
    others = list(range(len(steps)))
    for i in range(1, len(steps) - 1):
        way = distances[i - 1, i] + distances[i, i + 1]
        if way > _DETOUR * distances[i - 1, i + 1] > 0:
            others.remove(i)
            text = (
                f"{{step}} {steps[i]} is far from both neighbours: the way through it is "
                f"{way / distances[i - 1, i + 1]:.3g} times as long as past it"
            )
            yield Finding("far", "suspected", (steps[i],), text)
    at = np.array([steps[i] for i in others], dtype=np.float64)
    gaps = np.array([distances[i, j] for i, j in itertools.pairwise(others)])
    for k, ratio in enumerate(_excess(at, gaps)):
        if ratio > _JUMP:
            pair = (int(at[k]), int(at[k + 1]))
            text = (
                f"{{step}}s {pair[0]} and {pair[1]} are {ratio:.3g} times as far apart as the "
                "checkpoints around lead to expect"
            )
            yield Finding("far", "suspected", pair, text)


def _excess(at: np.ndarray, gaps: np.ndarray) -> list[float]:
    """Return each gap over the median of the gaps around, allowing motion in proportion to steps.

    A shorter stretch of training is taken to go as far as the longer one in proportion, which is
    more than a random walk does; a longer one is not discounted.
    """
    lengths = np.diff(at)
    ratios = []
    for k in range(len(gaps)):
        around = [
            j
            for j in range(k - _AROUND, k + _AROUND + 1)
            if j != k and 0 <= j < len(gaps)
        ]
        expected = [gaps[j] * max(1.0, lengths[k] / lengths[j]) for j in around]
        middle = float(np.median(expected)) if len(around) > _AROUND else 0.0
        ratios.append(float(gaps[k]) / middle if middle > 0 else 0.0)
    return ratios


def misordered(steps: Sequence[int], distances: np.ndarray) -> Iterator[Finding]:
    """Yield the pair of steps whose exchange shortens the way through the weights most, if much.

    Compared is the way through both steps and their neighbours, as labelled and exchanged. On a
    random walk in the right order an exchange makes it longer by 1.4, in a wrong order shorter
    by as much.
    """
    best = _BETTER
    found: Finding | None = None
    for i, j, labelled, exchanged in _exchanges(distances):
        for k in np.flatnonzero((labelled > 0) & (exchanged < best * labelled)):
            if exchanged[k] < best * labelled[k]:
                best = exchanged[k] / labelled[k]
                pair = tuple(steps[place] for place in sorted((i, int(j[k]))))
                found = _exchange(pair, float(labelled[k]), float(exchanged[k]))
    if found is not None:
        yield found


_Ways: TypeAlias = tuple[int, np.ndarray, np.ndarray, np.ndarray]
"""A place, others, and for each of these the way as labelled and with both exchanged."""


def _exchanges(distances: np.ndarray) -> Iterator[_Ways]:
    """Yield each place with all that it can be exchanged with; the sums are in the way's order.

    All at once: of 1,000 checkpoints the pairs one by one took 12 s. The first and the last, which
    have one neighbour, are exchanged with all but this one.
    """
    gaps = np.diagonal(distances, 1)
    last = len(distances) - 1
    for i in range(1, last - 1):
        j = np.arange(i + 1, last)
        apart = j > i + 1  # neighbours have the way between them in common
        labelled = gaps[i - 1] + gaps[i] + np.where(apart, gaps[j - 1], 0) + gaps[j]
        to_next = distances[i - 1, j] + distances[j, np.where(apart, i + 1, i)]
        exchanged = (
            to_next + np.where(apart, distances[j - 1, i], 0) + distances[i, j + 1]
        )
        yield i, j, labelled, exchanged
    for end, beside in ((0, 1), (last, last - 1)):
        j = np.array([k for k in range(1, last) if abs(k - end) > 1], dtype=np.int64)
        labelled = gaps[j - 1] + gaps[j] + distances[beside, end]
        exchanged = distances[j - 1, end] + distances[end, j + 1] + distances[beside, j]
        # Any outlier makes less of a detour at an end; the right one is nearer to what is there.
        nearer = distances[beside, j] < _BETTER * distances[beside, end]
        yield end, j, labelled, np.where(nearer, exchanged, np.inf)


def _exchange(pair: tuple[int, ...], labelled: float, turned: float) -> Finding:
    text = (
        f"{join_steps(pair)} look exchanged: the other way round, the way through the weights "
        f"is {turned / labelled:.2g} times as long, {turned:.3g} in place of {labelled:.3g} "
        "between them and their neighbours"
    )
    return Finding("order", "suspected", pair, text)


def is_initialisation(checkpoint: Checkpoint) -> bool:
    """Return whether nothing in the weights speaks against an initialisation."""
    return not list(_initialisation(sample_of(checkpoint.weights)))


def _initialisation(sample: _Sample) -> Iterator[Finding]:
    reasons = []
    if 2 * len(sample.uneven) > len(sample.scales):
        reasons.append(f"the scales of norms are not constant ({some(sample.uneven)})")
    if sample.kurtosis > _HEAVY:
        reasons.append(
            f"the weights are heavy-tailed (median kurtosis {sample.kurtosis:.3g})"
        )
    if reasons:
        text = f"{{step}} 0 is not like an initialisation: {' and '.join(reasons)}"
        yield Finding("initialisation", "suspected", (0,), text)


def sample_of(weights: Weights) -> _Sample:
    """Return evenly spaced elements of all tensors of a checkpoint, once in a process."""
    files = weights.on_disk()
    if files is not None:
        return _sample_of_files(files, files.stamp())
    with weights.open() as reader:
        return _take(reader)


@functools.lru_cache(maxsize=256)
def _sample_of_files(files: WeightFiles, stamp: tuple[object, ...]) -> _Sample:
    with files.open() as reader:
        return _take(reader)


def _take(reader: Reader) -> _Sample:
    names = [name for name in reader.names() if reader.dtype(name).is_floating_point]
    quota = max(_PER_TENSOR, _SAMPLE // max(1, len(names)))
    layout = []
    parts = []
    scales = []
    uneven = []
    kurtoses = []
    for name in names:
        shape = reader.shape(name)
        count = math.prod(shape)
        stride = max(1, -(-count // quota))
        taken = _every(reader, name, stride).to("cpu", torch.float64).numpy()
        layout.append((name, shape))
        parts.append(taken * np.sqrt(count / max(1, taken.size)))
        if len(shape) == 1 and name.rpartition(".")[2] in _SCALES:
            scales.append(name)
            uneven += [name] if _varies(taken) else []
        elif len(shape) == 2 and taken.size >= _LARGE and _varies(taken):
            centred = taken - taken.mean()
            kurtoses.append(float((centred**4).mean() / (centred**2).mean() ** 2))
    values = np.concatenate(parts) if parts else np.zeros(0)
    kurtosis = float(np.median(kurtoses)) if len(kurtoses) >= _MATRICES else 0.0
    sizes = tuple(part.size for part in parts)
    return _Sample(tuple(layout), values, tuple(scales), tuple(uneven), kurtosis, sizes)


def _every(reader: Reader, name: str, stride: int) -> Tensor:
    if isinstance(reader, ShardsReader):
        return reader.every(name, stride)
    return reader.get(name).detach().reshape(-1)[::stride]


def _varies(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).all() and (values != values[:1]).any())
