"""All measures of all pairs of a stack of dictionaries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from ontogeny.arrays import Array, namespace, to_numpy
from ontogeny.distances.correlations import (
    CORRELATIONS,
    column_weights,
    columnwise_of,
    internal_of,
    optimal_of,
    weighted_of,
)
from ontogeny.distances.pair import Factors, Pair, stacked
from ontogeny.distances.registry import MEASURES, Options, bound_measures
from ontogeny.errors import ArgumentError, check_choice


def prepared(factors: Factors, *, svd: bool) -> Factors:
    """Compute now what `part` hands on: norms and, if asked for, the SVD."""
    _ = (factors.squares, factors.lengths, factors.svd if svd else None)
    return factors


def part(factors: Factors, index: Any) -> Factors:
    """Return some members of the stack, with what is already computed of them."""
    return _changed(factors, lambda array: array[index])


def repeated(factors: Factors, row: int, count: int) -> Factors:
    """Return one member `count` times, without copying it."""
    xp = namespace(factors.stack)
    return _changed(factors, lambda x: xp.broadcast_to(x[row], (count, *x.shape[1:])))


def _changed(factors: Factors, change: Callable[[Array], Array]) -> Factors:
    result = Factors(change(factors.stack), factors.floor)
    for name in ("squares", "lengths"):
        if name in factors.__dict__:
            result.__dict__[name] = change(factors.__dict__[name])
    if "svd" in factors.__dict__:
        result.__dict__["svd"] = tuple(change(array) for array in factors.svd)
    return result


def step_labels(steps: Sequence[int] | np.ndarray | None, count: int) -> np.ndarray:
    """Return labels of `count` steps, 0 to count - 1 if `steps` is None.

    Raises
    ------
    ArgumentError
        If there are more or fewer of them, two are equal, or numbers do not increase.

    Examples
    --------
    >>> step_labels([0, 100, 50], 3)
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: steps must increase; 50 follows 100. Sort the stack by its steps.
    """
    labels = np.arange(count) if steps is None else np.asarray(steps)
    if labels.shape != (count,):
        raise ArgumentError(
            f"steps must name the {count} steps; its shape is {labels.shape}."
        )
    distinct, times = np.unique(labels, return_counts=True)
    if len(distinct) < count:
        twice = distinct[times > 1][0]
        often = times[times > 1][0]
        raise ArgumentError(f"steps must differ; {twice} stands there {often} times.")
    if (
        labels.dtype.kind in "iuf"
        and (at := np.flatnonzero(~(labels[1:] > labels[:-1]))).size
    ):
        before = labels[at[0]]
        after = labels[at[0] + 1]
        raise ArgumentError(
            f"steps must increase; {after} follows {before}. Sort the stack by its steps."
        )
    return labels


def pairwise(
    stack: Array,
    U: Array | None = None,
    *,
    steps: Sequence[int] | np.ndarray | None = None,
    measures: Sequence[str] | None = None,
    options: Options | None = None,
    workers: int | None = None,
    batch_size: int = 4,
) -> xr.DataArray:
    """Compare every step's dictionary with every other step's.

    Parameters
    ----------
    stack
        Dictionaries of all steps, (..., T, m, r), NumPy or PyTorch on any device. They are copied
        to the CPU once and compared there.
    U
        Codes of all steps, (..., T, n, r), for ``"weighted"``.
    steps
        Labels of the T steps; 0 to T - 1 by default.
    measures
        Names of distances and correlations; by default the nine distances, ``"columnwise"``,
        ``"optimal"``, ``"internal"`` and, with U, ``"weighted"``.
    options
        Options of single distances, as in `compare`.
    workers
        Threads, each with pairs of its own, while the linear algebra library has one; by default
        the usable cores. The numbers do not depend on it.
    batch_size
        Pairs computed together; memory grows with it.

    Returns
    -------
    xarray.DataArray
        Dimensions ``distance``, (``batch_0``, ... for leading dimensions,) ``step``, ``step_``;
        float64. ``"internal"`` and ``"weighted"`` belong to the row: they use the dictionary
        and the codes of ``step``. All others are symmetric.

    Raises
    ------
    ArgumentError
        If a shape, a name or an option is wrong. ``NonFiniteError`` if a number is not finite.

    Notes
    -----
    One thin SVD for each step; each pair then costs matrix products (r x m by m x r) and small
    factorisations. Differences are formed before their norms, and a distance near zero is taken
    from a residual, so that nothing is lost where checkpoints are close.

    Examples
    --------
    >>> stack = np.random.default_rng(0).standard_normal((4, 20, 3))
    >>> matrix = pairwise(stack, steps=[0, 10, 100, 1000])
    >>> bool(matrix.sel(distance="procrustes", step=0, step_=100) > 1)
    True
    """
    bound = bound_measures(options)
    factors, argument = stacked("stack", stack)
    if argument.ndim < 3:
        raise ArgumentError(
            "stack must have at least three dimensions, (..., T, m, r); "
            f"its shape is {tuple(argument.shape)}."
        )
    *lead, count, _, r = (int(n) for n in argument.shape)
    for name, value in (("workers", workers), ("batch_size", batch_size)):
        if value is not None and value < 1:
            raise ArgumentError(f"{name} must be at least 1; got {value}.")
    labels = step_labels(steps, count)
    names = _measures(measures, with_codes=U is not None, r=r)
    weights = None if U is None else column_weights(U, argument)
    prepared(factors, svd=any(name in MEASURES for name in names))
    values = np.empty((len(names), len(factors.stack), count))

    def fill(row: int, columns: range) -> None:
        here = slice(columns.start, columns.stop)
        within = [column % count for column in columns]
        pair = Pair(repeated(factors, row, len(columns)), part(factors, here))
        for name, cells in zip(names, values, strict=True):
            if name == "internal":
                continue
            if name == "weighted" and weights is not None:
                there, back = _weighted(pair, weights[row], weights[here])
            else:
                there = back = (bound | _UNWEIGHTED)[name](pair)
            cells[row, within] = to_numpy(there)
            cells[here, row % count] = to_numpy(back)

    blocks = _blocks(len(values[0]), count, batch_size)
    with threadpool_limits(1), ThreadPoolExecutor(workers or _cores()) as pool:
        for _ in pool.map(lambda block: fill(*block), blocks):
            pass  # an error of any block is raised here
    if "internal" in names:
        values[names.index("internal")] = to_numpy(internal_of(factors))[:, None]
    return _labelled(values, names, lead, labels)


_UNWEIGHTED = {"columnwise": columnwise_of, "optimal": optimal_of}


def _weighted(pair: Pair, first: Array, second: Array) -> tuple[Array, Array]:
    """Weighted correlation by the codes of the row, and by those of the columns."""
    xp = pair.xp
    index = xp.asarray(pair.matches, device=second.device)
    return (
        weighted_of(pair, first),
        weighted_of(pair, xp.take_along_axis(second, index, axis=-1)),
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blocks(rows: int, count: int, size: int) -> Iterator[tuple[int, range]]:
    """Every row of the stack with its later steps and itself, `size` at a time."""
    for row in range(rows):
        end = (row // count + 1) * count
        for start in range(row, end, size):
            yield row, range(start, min(start + size, end))


def _measures(measures: Sequence[str] | None, *, with_codes: bool, r: int) -> list[str]:
    possible = [n for n in CORRELATIONS if n != "internal" or r > 1]
    possible = [*MEASURES, *(n for n in possible if n != "weighted" or with_codes)]
    if measures is None:
        return possible
    return [check_choice("each of measures", name, possible) for name in measures]


def _labelled(
    values: np.ndarray, names: list[str], lead: list[int], steps: np.ndarray
) -> xr.DataArray:
    leading = [f"batch_{i}" for i in range(len(lead))]
    return xr.DataArray(
        values.reshape(len(names), *lead, len(steps), len(steps)),
        dims=("distance", *leading, "step", "step_"),
        coords={"distance": names, "step": steps, "step_": steps},
        attrs={"long_name": "distance between the dictionaries of two steps"},
    )
