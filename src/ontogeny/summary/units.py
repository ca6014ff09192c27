"""Resampling over texts, the unit of all noise: tokens of one text are not independent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Units:
    """Which unit, such as a text, every row of a sample comes from.

    Parameters
    ----------
    of_row
        (n,) whole numbers; rows with the same number belong together.

    Examples
    --------
    >>> Units(np.array([0, 0, 3, 3, 3])).count
    2
    """

    of_row: np.ndarray

    @property
    def count(self) -> int:
        """Number of units."""
        return len(np.unique(self.of_row))

    def resampled(self, rng: np.random.Generator) -> np.ndarray:
        """Return rows of a bootstrap over units: each drawn unit with all of its rows, in order.

        Examples
        --------
        >>> Units(np.array([0, 0, 3, 3, 3])).resampled(np.random.default_rng(1)).tolist()
        [0, 1, 2, 3, 4]
        """
        names, inverse = np.unique(self.of_row, return_inverse=True)
        times = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        return np.repeat(np.arange(len(inverse)), times[inverse])

    def blocks(self, count: int) -> list[np.ndarray]:
        """Return the rows of `count` blocks of neighbouring units with nearly as many rows each.

        Fewer blocks where there are fewer units.

        Examples
        --------
        >>> [rows.tolist() for rows in Units(np.array([0, 0, 1, 1, 2, 2, 2])).blocks(2)]
        [[0, 1, 2, 3], [4, 5, 6]]
        """
        _, inverse = np.unique(self.of_row, return_inverse=True)
        sizes = np.bincount(inverse)
        count = min(count, len(sizes))
        middles = np.cumsum(sizes) - sizes / 2
        block = np.minimum((middles * count / sizes.sum()).astype(int), count - 1)
        _, block = np.unique(block, return_inverse=True)
        return [np.flatnonzero(block[inverse] == i) for i in range(block.max() + 1)]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values (n,) over the rows of every unit.

        Examples
        --------
        >>> Units(np.array([0, 0, 3])).sums(np.array([1.0, 2.0, 5.0]))
        array([3., 5.])
        """
        _, inverse = np.unique(self.of_row, return_inverse=True)
        return np.bincount(inverse, weights=values)

    def sum_stderr(self, values: np.ndarray) -> float | None:
        """Return the standard error of the sum of values (n,) over all rows; None of one unit.

        Examples
        --------
        >>> round(Units(np.array([0, 1])).sum_stderr(np.array([1.0, 3.0])), 6)
        2.0
        """
        totals = self.sums(np.asarray(values, dtype=np.float64))
        return float(np.sqrt(len(totals)) * totals.std(ddof=1)) if len(totals) > 1 else None
