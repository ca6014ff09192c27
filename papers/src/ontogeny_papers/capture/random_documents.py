"""Draws of random concepts whose texts come from documents, as the concept's own do.

A mean over 40 texts of eight documents varies like one over eight texts where texts of a document
are alike. Random concepts that mix texts of all documents vary less, and the concept would differ
from them by its documents alone. So each draw has as many documents as the concept, with as many
texts of each.
"""

from __future__ import annotations

import numpy as np

from ontogeny.errors import ArgumentError
from ontogeny.units import Units


def document_draws(
    concept: Units,
    pool: Units,
    n_runs: int,
    size: int | None = None,
    random_state: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the concept, and two disjoint draws of as many from the pool for each run.

    Parameters
    ----------
    concept, pool
        Which document, or other unit, the texts of both come from.
    n_runs
        Runs.
    size
        Texts of each draw; by default as many as both have in documents alike.
    random_state
        Seed.

    Returns
    -------
    own, draws : numpy.ndarray
        (size,) rows of the concept, (n_runs, 2, size) rows of the pool.

    Raises
    ------
    ArgumentError
        If the pool has a single document, or `size` texts cannot be drawn.

    Examples
    --------
    >>> concept, pool = Units(np.repeat([0, 1], 3)), Units(np.repeat(np.arange(6), 3))
    >>> ids, draws = document_draws(concept, pool, n_runs=4)
    >>> ids.tolist(), [len(np.unique(pool.of_row[rows])) for rows in draws[0]]
    ([0, 1, 2, 3, 4, 5], [2, 2])
    """
    rng = np.random.default_rng([random_state, 1])
    units = rng.permutation(concept.count)
    units = units[np.argsort(-concept.sizes[units], kind="stable")]
    # Both draws of a run take a document of the pool for each of the concept's.
    largest = np.sort(pool.sizes)[::-1][1::2]
    number = min(len(units), len(largest))
    sizes = np.minimum(concept.sizes[units[:number]], largest[:number])
    if not number:
        raise ArgumentError(
            "random must hold two disjoint draws of documents; its texts are all of one."
        )
    if size is not None:
        if not 1 <= size <= sizes.sum():
            raise ArgumentError(
                f"size must lie between 1 and {sizes.sum()}, the texts of {number} documents that "
                f"the concept and two disjoint draws have alike; got {size}."
            )
        sizes = np.diff(np.minimum(np.cumsum([0, *sizes]), size))
        sizes = sizes[sizes > 0]
    ids = [
        _rows(concept, unit, count, rng)
        for unit, count in zip(units, sizes, strict=False)
    ]
    draws = np.random.default_rng(random_state)
    return np.sort(np.concatenate(ids)), np.stack(
        [_run(pool, sizes, draws) for _ in range(n_runs)]
    )


def _run(pool: Units, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return two draws (2, size) of different documents, with `sizes` texts of each document."""
    order = rng.permutation(pool.count).tolist()
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for count in sizes:
        # The largest first: what holds one of them holds all that follow.
        for side in sides:
            unit = next(unit for unit in order if pool.sizes[unit] >= count)
            order.remove(unit)
            side.append(_rows(pool, unit, count, rng))
    return np.stack([np.concatenate(side) for side in sides])


def _rows(units: Units, unit: int, count: int, rng: np.random.Generator) -> np.ndarray:
    rows = units.rows[unit]
    return (
        rows if len(rows) == count else np.sort(rng.choice(rows, count, replace=False))
    )
