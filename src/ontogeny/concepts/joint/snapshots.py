"""The same tokens at several checkpoints, read one checkpoint at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import is_array, matrix, to_numpy
from ...errors import ArgumentError, check_whole

SCALES = ("step", "none")


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Activations (n, m) of the same n tokens at S checkpoints, which may be read again.

    Parameters
    ----------
    source
        Array (S, n, m), sequence of S matrices (n, m), or a function without arguments that
        returns a fresh iterator over the matrices. Of a sequence one matrix is asked for at a
        time, so that it may read them from a file.
    """

    source: Any
    name: str = "X"

    def __post_init__(self) -> None:
        source = self.source
        if is_array(source) and source.ndim != 3:
            raise ArgumentError(
                f"{self.name} must be an array (checkpoint, token, feature); its shape is "
                f"{source.shape}."
            )
        if not callable(source) and not (hasattr(source, "__len__") and len(source)):
            raise ArgumentError(
                f"{self.name} must be an array (S, n, m), a sequence of S matrices (n, m), or a "
                "function that returns a fresh iterator over them, since they are read more than "
                f"once; got {type(source).__name__}."
            )

    def count(self) -> int:
        """Return the number S of checkpoints; a function is called to count them."""
        if hasattr(self.source, "__len__"):
            return len(self.source)
        count = sum(1 for _ in self.source())
        if not count:
            raise ArgumentError(
                f"{self.name} must give at least one checkpoint; it gave none."
            )
        return count

    def read(self, chosen: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
        """Give index and matrix (n, m) of the chosen checkpoints, in order; all must agree."""
        indices = sorted(chosen)
        shape: tuple[int, ...] | None = None
        for index, snapshot in _matrices(self.source, indices, self.name):
            values = to_numpy(matrix(f"{self.name}[{index}]", snapshot))
            if shape is None:
                shape = values.shape
            if values.shape != shape:
                raise ArgumentError(
                    "every checkpoint must have the same tokens and features; "
                    f"{self.name}[{indices[0]}] has shape {shape}, {self.name}[{index}] has "
                    f"{values.shape}."
                )
            yield index, values


def _matrices(
    source: Any, indices: Sequence[int], name: str
) -> Iterator[tuple[int, Any]]:
    if not callable(source):
        yield from ((index, source[index]) for index in indices)
        return
    rest = set(indices)
    for index, values in enumerate(source()):
        if index in rest:
            rest.remove(index)
            yield index, values
    if rest:
        raise ArgumentError(
            f"{name} must give the same number of checkpoints each time; {min(rest)} was missing."
        )


@dataclass(frozen=True, eq=False)
class Permuted:
    """The same checkpoints, each with its tokens in another random order, or all `together` in one.

    `together`, the run itself stays what it was; only with other runs it shares no token.
    """

    source: Any
    seed: int
    together: bool = False

    def __call__(self) -> Iterator[np.ndarray]:
        """Give the checkpoints in order; each time the same ones."""
        snapshots = Snapshots(self.source)
        for index, values in snapshots.read(range(snapshots.count())):
            rng = np.random.default_rng((self.seed, 0 if self.together else index))
            yield values[rng.permutation(len(values))]


def deviation(values: np.ndarray, rows: np.ndarray) -> float:
    """Return the root of the total variance of rows of `values` (n, m)."""
    return _centred(values, rows)[1]


def standardised(
    values: np.ndarray, rows: np.ndarray, common: float | None = None
) -> tuple[np.ndarray, float]:
    """Return rows of `values` (n, m) centred and divided, and what they are divided by.

    That is `common`, or else their own standard deviation; 1 of rows that do not vary.
    """
    X, scale = _centred(values, rows)
    by = scale if common is None else common
    by = by if by > 0 else 1.0
    return (X / by).astype(np.float32), by


def _centred(values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, float]:
    X = values[rows].astype(np.float64)
    X -= X.mean(axis=0)
    size = float(np.abs(values).max())
    # What centring leaves of a constant column is rounding, not variance.
    X[:, np.abs(X).max(axis=0) <= 1e-6 * np.abs(values[rows]).max(axis=0)] = 0.0
    spread = X / size if size > 0 else X
    return X, size * float(np.sqrt((spread**2).mean(axis=0).sum()))


def chosen_rows(n: int, max_tokens: int | None, rng: np.random.Generator) -> np.ndarray:
    """Return the rows that are used, in order: all, or `max_tokens` drawn at random."""
    if max_tokens is None or n <= check_whole("max_tokens", max_tokens, 4):
        return np.arange(n)
    return np.sort(rng.choice(n, max_tokens, replace=False))


def fitted_steps(fit_steps: int | Sequence[int] | None, count: int) -> np.ndarray:
    """Return the indexes of the checkpoints that codes are fitted on.

    Examples
    --------
    >>> fitted_steps(3, 9), fitted_steps((0, 2), 9)
    (array([0, 4, 8]), array([0, 2]))
    """
    if fit_steps is None:
        return np.arange(count)
    if isinstance(fit_steps, Sequence | np.ndarray):
        positions = sorted({check_whole("fit_steps", i, 0) for i in fit_steps})
        if not positions or positions[-1] >= count:
            raise ArgumentError(
                f"fit_steps must hold indexes from 0 to {count - 1}; got {list(fit_steps)}."
            )
        return np.array(positions)
    n_steps = min(check_whole("fit_steps", fit_steps, 1), count)
    return np.unique(np.linspace(0, count - 1, n_steps).round().astype(int))


def text_folds(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return (n,) True for the tokens of a random half of the texts."""
    names, inverse = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise ArgumentError(
            "groups must hold at least two texts: one is predicted from the other."
        )
    order = rng.permutation(len(names))
    sizes = np.bincount(inverse)[order]
    before = np.cumsum(sizes) - sizes / 2
    first = before < sizes.sum() / 2
    first[0] = True
    first[-1] = False
    half = np.empty(len(names), dtype=bool)
    half[order] = first
    return np.asarray(half[inverse])


def fixed_half(groups: np.ndarray) -> np.ndarray:
    """Return (n,) True for the tokens of one half of the texts, which no seed and no order moves.

    What both halves of the texts find is shown: with another split, other latents near the limit
    would be.
    """
    return text_folds(groups, np.random.default_rng(0))


def text_blocks(groups: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return (n,) the block of each token: its text, or several texts where there are many."""
    names, inverse = np.unique(groups, return_inverse=True)
    return np.asarray((rng.permutation(len(names)) % most)[inverse])


def training_steps(steps: Any, count: int | None, name: str = "steps") -> np.ndarray:
    """Return increasing training steps, indexes by default."""
    if steps is None:
        return np.arange(count or 0)
    numbers = np.asarray(steps)
    right = numbers.ndim == 1 and len(numbers) and numbers.dtype.kind in "iuf"
    if (
        not right
        or not (np.diff(numbers) > 0).all()
        or not np.isfinite(numbers).all()
        or (count is not None and len(numbers) != count)
    ):
        length = "" if count is None else f" {count}"
        raise ArgumentError(
            f"{name} must be{length} increasing numbers; got {steps!r}."
        )
    return numbers
