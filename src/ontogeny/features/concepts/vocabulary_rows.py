"""Rows of an embedding over the steps, as a joint dictionary reads them, and what chance gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.fft

from ...errors import ArgumentError
from ...observables.base import BlockReading

Transform: TypeAlias = Callable[[int, np.ndarray], np.ndarray]


def chosen_ids(
    counts: np.ndarray, special: np.ndarray, size: int, max_tokens: int | None
) -> np.ndarray:
    """Return the token ids whose rows are read, increasing.

    The most frequent tokens come first, then the others in the order of their ids: vocabularies
    list frequent tokens first. Special tokens are left out.

    Parameters
    ----------
    counts
        (V,) how often each id occurs in the texts.
    special
        (V,) True for special tokens.
    size
        Rows of the matrix.
    max_tokens
        How many are read; None takes all.

    Raises
    ------
    ArgumentError
        If texts hold ids that the matrix has no row for.

    Examples
    --------
    >>> chosen_ids(np.array([0, 1, 9, 2]), np.array([True, False, False, False]), 6, 4)
    array([1, 2, 3, 4])
    """
    highest = int(np.flatnonzero(counts).max(initial=-1))
    if highest >= size:
        raise ArgumentError(
            f"it has {size} rows and the texts hold the token id {highest}: it is no matrix with "
            "one row a token"
        )
    ids = np.flatnonzero(~_of_size(special, size))
    order = np.argsort(-_of_size(counts, size)[ids], kind="stable")
    return np.sort(ids[order[:max_tokens]])


def _of_size(values: np.ndarray, size: int) -> np.ndarray:
    """Return the first `size` values, with zeros for ids that are not known."""
    return np.pad(values[:size], (0, max(size - len(values), 0)))


@dataclass(frozen=True, eq=False)
class Rows(Sequence[np.ndarray]):
    """Rows of a matrix at every step, read when asked for: a sequence of (n, m) arrays.

    Parameters
    ----------
    reading
        The matrix.
    ids
        Its rows.
    start
        What is taken off at every step: the rows of the untrained model, or None.
    transform
        What else is done to the rows of each step, by its index.
    """

    reading: BlockReading
    ids: np.ndarray
    start: np.ndarray | None = None
    transform: Transform | None = None

    def __len__(self) -> int:
        return len(self.reading.steps)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return the rows at one step; there are no slices."""
        rows = self.reading.rows(int(self.reading.steps[index]), self.ids)
        if self.start is not None:
            rows = rows - self.start
        return rows if self.transform is None else self.transform(index, rows)

    def permuted(self, seed: int) -> Rows:
        """Return the rows with their tokens in another random order at every step."""

        def transform(index: int, rows: np.ndarray) -> np.ndarray:
            return rows[np.random.default_rng((seed, index)).permutation(len(rows))]

        return replace(self, transform=transform)

    def mixed(self, seed: int) -> Rows:
        """Return random orthogonal mixtures of the rows, the same at all steps.

        All products of two features at any two steps are kept, so what persists does persist.
        But every row is a sum over all tokens, and so no code is sparse.
        """
        rng = np.random.default_rng(seed)
        n = len(self.ids)
        turns = [(rng.choice((-1.0, 1.0), n), rng.permutation(n)) for _ in range(2)]

        def transform(_: int, rows: np.ndarray) -> np.ndarray:
            mixture = rows - rows.mean(axis=0)
            for signs, order in turns:  # one round alone would leave waves of single tokens
                mixture = scipy.fft.dct(signs[:, None] * mixture[order], axis=0, norm="ortho")
            return np.asarray(mixture, dtype=np.float32)

        return replace(self, transform=transform)
