"""Units of noise: what is independent of one another, such as texts, but not their tokens.

Texts that repeat, or that come from one document, belong to one unit. Whatever splits, shuffles or
resamples rows does it with whole units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Units:
    """Which unit, such as a text or a document, every row of a sample comes from.

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

    @classmethod
    def of(cls, groups: Any, count: int, rows: str = "rows") -> Self:
        """Return the units named by an argument ``groups`` (count,); None names each row alone.

        `rows` says in messages what there are `count` of.

        Raises
        ------
        ArgumentError
            If there is not one for every row, or one is missing or neither number nor text.

        Examples
        --------
        >>> (
        ...     Units.of(["a", "b", "a"], 3).place.tolist(),
        ...     Units.of(None, 3).place.tolist(),
        ... )
        ([0, 1, 0], [0, 1, 2])
        """
        of_row = np.arange(count) if groups is None else np.asarray(groups)
        if of_row.shape != (count,):
            raise ArgumentError(
                f"groups must name one unit for each of {count} {rows}; got shape {of_row.shape}."
            )
        missing = (
            of_row != of_row if of_row.dtype.kind in "biufUS" else np.ones(count, bool)
        )
        if missing.any():
            raise ArgumentError(
                f"groups must be numbers or texts, one for each of {count} {rows}; got "
                f"{of_row[missing].tolist()[0]!r} among {of_row.dtype} values."
            )
        return cls(of_row)

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.sizes)

    @property
    def distinct(self) -> bool:
        """Whether every row is a unit of its own."""
        return self.count == len(self.place)

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) the unit of every row, numbered 0, 1, ... in the order of their numbers."""
        return np.unique(self.of_row, return_inverse=True)[1]

    @cached_property
    def sizes(self) -> np.ndarray:
        """(count,) rows of every unit."""
        return np.bincount(self.place)

    @cached_property
    def first_rows(self) -> np.ndarray:
        """(count,) the first row of every unit."""
        return np.unique(self.of_row, return_index=True)[1]

    def constant(self, values: ArrayLike) -> bool:
        """Return whether values (n,) or (n, k) are the same in all rows of every unit.

        Examples
        --------
        >>> Units(np.array([0, 0, 3])).constant(["a", "a", "b"])
        True
        """
        values = np.asarray(values)
        return bool((values == values[self.first_rows][self.place]).all())

    # ---- resampling and shuffling ----------------------------------------------------------------

    def resampled(self, rng: np.random.Generator) -> np.ndarray:
        """Return rows of a bootstrap over units: each drawn unit with all of its rows, in order.

        Examples
        --------
        >>> Units(np.array([0, 0, 3, 3, 3])).resampled(
        ...     np.random.default_rng(1)
        ... ).tolist()
        [0, 1, 2, 3, 4]
        """
        times = np.bincount(
            rng.integers(0, self.count, self.count), minlength=self.count
        )
        return np.repeat(np.arange(len(self.place)), times[self.place])

    def shuffles(
        self, labels: ArrayLike, rng: np.random.Generator, n_draws: int
    ) -> Iterator[np.ndarray]:
        """Give (n,) row numbers so that ``labels[rows]`` is as likely as `labels` by chance.

        Where every row is a unit, these are permutations. Where labels are the same within every
        unit, units exchange their labels, whatever their sizes; classes then differ in their
        number of rows from draw to draw. Otherwise labels are permuted within units, and units of
        the same size exchange all of theirs: what rows of a unit share stays together (A. M.
        Winkler et al., *Multi-level block permutation*, NeuroImage 123, 2015).

        Parameters
        ----------
        labels
            (n,) or (n, k) values of the rows.
        rng
            Source of chance.
        n_draws
            Number of shuffles.

        Examples
        --------
        >>> units, labels = (
        ...     Units(np.array([0, 0, 1, 1, 1, 2])),
        ...     np.array([1, 1, 0, 0, 0, 0]),
        ... )
        >>> draws = units.shuffles(labels, np.random.default_rng(3), 2)
        >>> [labels[rows].tolist() for rows in draws]
        [[0, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0]]
        """
        labels = np.asarray(labels)
        whole = not self.distinct and self.constant(labels)
        for _ in range(n_draws):
            if self.distinct:
                yield rng.permutation(len(self.place))
            elif whole:
                yield self.first_rows[rng.permutation(self.count)][self.place]
            else:
                yield self._within_and_between(rng)

    def _within_and_between(self, rng: np.random.Generator) -> np.ndarray:
        rows = np.empty(len(self.place), dtype=np.int64)
        for table in self._tables:
            rows[table] = rng.permuted(table[rng.permutation(len(table))], axis=1)
        return rows

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """The rows of every unit."""
        return np.split(
            np.argsort(self.place, kind="stable"), np.cumsum(self.sizes)[:-1]
        )

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        """Rows of the units, (units, size), one table for each size."""
        return [
            np.stack([self.rows[unit] for unit in np.flatnonzero(self.sizes == size)])
            for size in np.unique(self.sizes)
        ]

    def blocks(self, count: int) -> list[np.ndarray]:
        """Return the rows of `count` blocks of neighbouring units with nearly as many rows each.

        Fewer blocks where there are fewer units.

        Examples
        --------
        >>> [rows.tolist() for rows in Units(np.array([0, 0, 1, 1, 2, 2, 2])).blocks(2)]
        [[0, 1, 2, 3], [4, 5, 6]]
        """
        sizes = self.sizes
        count = min(count, self.count)
        middles = np.cumsum(sizes) - sizes / 2
        block = np.minimum((middles * count / sizes.sum()).astype(int), count - 1)
        _, block = np.unique(block, return_inverse=True)
        return [np.flatnonzero(block[self.place] == i) for i in range(block.max() + 1)]

    # ---- sums and means --------------------------------------------------------------------------

    def sums(self, values: ArrayLike) -> np.ndarray:
        """Return the sums (..., count) of values (..., n) over the rows of every unit.

        Examples
        --------
        >>> Units(np.array([0, 0, 3])).sums(np.array([1.0, 2.0, 5.0]))
        array([3., 5.])
        """
        values = np.asarray(values, dtype=np.float64)
        flat = values.reshape(-1, len(self.place))
        sums = [
            np.bincount(self.place, weights=row, minlength=self.count) for row in flat
        ]
        return np.reshape(sums, (*values.shape[:-1], self.count))

    def means(
        self, values: ArrayLike, weights: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted means (..., count) of values (..., n), and the weights (count,).

        0 where a unit has no weight.

        Examples
        --------
        >>> Units(np.array([0, 0, 3])).means([1.0, 4.0, 5.0], weights=[1, 2, 3])
        (array([3., 5.]), array([3., 3.]))
        """
        counted = (
            np.ones(len(self.place))
            if weights is None
            else np.asarray(weights, np.float64)
        )
        total = self.sums(counted)
        summed = self.sums(np.asarray(values, dtype=np.float64) * counted)
        return np.divide(
            summed, total, out=np.zeros_like(summed), where=total > 0
        ), total

    def sum_stderr(self, values: ArrayLike) -> float | None:
        """Return the standard error of the sum of values (n,) over all rows; None of one unit.

        Examples
        --------
        >>> round(Units(np.array([0, 1])).sum_stderr(np.array([1.0, 3.0])), 6)
        2.0
        """
        totals = self.sums(values)
        return (
            float(np.sqrt(len(totals)) * totals.std(ddof=1))
            if len(totals) > 1
            else None
        )

    def effective_count(self, values: ArrayLike) -> float:
        """Return how many independent rows would give the mean of values (n,) as exactly.

        The number of rows over the design effect: how much the variance of the mean over units
        exceeds that over rows (L. Kish, *Survey Sampling*, 1965). It is bounded by what units give
        whose rows all say the same, which also stands where values do not vary.

        Examples
        --------
        >>> Units(np.array([0, 0, 1, 1])).effective_count([1.0, 1.0, 0.0, 0.0])
        2.0
        """
        values = np.asarray(values, dtype=np.float64)
        n = len(values)
        apart = values - np.mean(values)
        if self.distinct:
            return float(n)
        largest = float((self.sizes**2).sum()) / n
        spread = float((apart**2).sum())
        if spread == 0 or self.count < 2:
            return n / largest
        correction = self.count / (self.count - 1) * (n - 1) / n
        effect = correction * float((self.sums(apart) ** 2).sum()) / spread
        return n / min(max(effect, 1.0), largest)
