"""What the variance rank of a path would be by chance, drawn from Gram matrices alone.

Shuffling *snapshots* is no null: principal components do not see order, and the number comes back
unchanged. Both nulls here keep the lengths of the steps at their place, because steps that shrink
with the learning rate lower the rank of any path. The random walk draws new directions, and
shuffled increments are the path's own directions in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ontogeny.arrays import Array
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.geometry.rank import ROUNDING, centred, components_holding

from .path import early_energies
from .snapshots import CHUNK, check_gram, increments_gram
from .snapshots import gram as displacement_gram
from .spectra import descending_eigenvalues


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """A statistic as observed, and what `n` draws of a null model give.

    Parameters
    ----------
    observed
        The statistic of the data, shape () or (windows,).
    draws
        The same of each draw, shape (n,) or (n, windows).

    Examples
    --------
    >>> null = NullDistribution(np.array(3), np.array([5, 6, 6, 7]))
    >>> print(null.mean, null.interval, null.p_lower)
    6.0 [5.075 6.925] 0.2
    """

    observed: np.ndarray
    draws: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over the draws, shape () or (windows,)."""
        return self.draws.mean(axis=0)

    @property
    def interval(self) -> np.ndarray:
        """The 2.5 and 97.5 % points of the draws, shape (2,) or (2, windows)."""
        return np.quantile(self.draws, [0.025, 0.975], axis=0)

    @property
    def p_lower(self) -> np.ndarray:
        """One-sided p-value for "lower than chance": (1 + draws ≤ observed) / (1 + n)."""
        return (1 + np.sum(self.draws <= self.observed, axis=0)) / (1 + len(self.draws))

    @property
    def p_higher(self) -> np.ndarray:
        """One-sided p-value for "higher than chance": (1 + draws ≥ observed) / (1 + n)."""
        return (1 + np.sum(self.draws >= self.observed, axis=0)) / (1 + len(self.draws))


def random_walk_null(
    snapshots: Array | None = None,
    n_draws: int = 100,
    random_state: int = 0,
    *,
    gram: np.ndarray | None = None,
    dimension: int | None = None,
    ends: Sequence[int] | None = None,
    variance: float = 0.9,
) -> NullDistribution:
    """Return `variance_rank` of random walks with the same step lengths and random directions.

    Directions are independent and uniform in `dimension` dimensions. Their Gram matrix is drawn
    exactly, by Bartlett's decomposition of a Wishart matrix with its rows normalised, at a cost
    that does not grow with the dimension.

    Parameters
    ----------
    snapshots
        A weight block at T steps, (T, ...).
    n_draws
        Number of walks.
    random_state
        Seed of the draws.
    gram, dimension
        Displacement Gram matrix (T, T) and number of coordinates, instead of `snapshots`.
    ends
        Windows that grow from the first snapshot: their numbers of snapshots, each 2 to T.
        Default: one window with all, and results without that axis.
    variance
        As in `variance_rank`.

    Returns
    -------
    NullDistribution
        Of `variance_rank`; its p-values are how often a random walk is as low or as high.

    Raises
    ------
    ArgumentError
        If both or neither of `snapshots` and `gram` are given, `dimension` is missing beside
        `gram`, or a number is out of range.
    NonFiniteError
        If a value is NaN or infinite.

    References
    ----------
    M. S. Bartlett, Proc. R. Soc. Edinburgh 53, 1933; J. Antognini, J. Sohl-Dickstein, PCA of high
    dimensional random walks with comparison to neural network training, NeurIPS 2018.

    Examples
    --------
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=(40, 2000)), axis=0)
    >>> null = random_walk_null(walk, n_draws=50)
    >>> print(null.observed, null.mean)
    6 6.0
    """
    gram, dimension = one_path(snapshots, gram, dimension)
    lengths = step_lengths(gram)
    rng = np.random.default_rng(random_state)
    return drawn_null(
        gram,
        n_draws,
        ends,
        variance,
        lambda size: _walk_grams(lengths, dimension, size, rng),
    )


def drawn_null(
    gram: np.ndarray,
    n: int,
    ends: Sequence[int] | None,
    variance: float,
    draw: Callable[[int], np.ndarray],
) -> NullDistribution:
    """Return `variance_rank` of `gram` (T, T) beside `n` draws; ``draw(size)`` is (size, T, T)."""
    windows = _windows(ends, gram)
    draws = [
        rank_draws(draw(size), windows, variance) for size in batches(n, len(gram))
    ]
    return _beside(np.concatenate(draws), gram, ends, variance)


def _windows(ends: Sequence[int] | None, gram: np.ndarray) -> list[int]:
    """Return the window ends as integers, all snapshots where there are none."""
    count = len(gram)
    lengths = [count] if ends is None else [int(end) for end in ends]
    if not lengths or min(lengths) < 2 or max(lengths) > count:
        raise ArgumentError(
            f"ends must be numbers of snapshots from 2 to {count}; got {ends}."
        )
    return lengths


def _beside(
    draws: np.ndarray, gram: np.ndarray, ends: Sequence[int] | None, variance: float
) -> NullDistribution:
    """Return `draws` (n, windows) beside the ranks of the path itself."""
    observed = rank_draws(gram[None], _windows(ends, gram), variance)[0]
    if ends is None:
        return NullDistribution(observed[0], draws[:, 0])
    return NullDistribution(observed, draws)


def step_lengths(gram: np.ndarray) -> np.ndarray:
    """Return the lengths (T − 1,) of the steps of a path with this displacement Gram matrix."""
    return np.sqrt(np.maximum(np.diagonal(increments_gram(gram)), 0.0))


def _walk_grams(
    lengths: np.ndarray, dimension: int, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw displacement Gram matrices (size, T, T) of walks with steps of these lengths."""
    return path_grams(gaussian_factor(len(lengths), dimension, size, rng), lengths)


def gaussian_factor(
    count: int, dimension: int, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw (size, count, min(count, dimension)) factors of Gram matrices of Gaussian vectors.

    `count` independent standard normal vectors in `dimension` dimensions have the Gram matrix
    F F' in law (Bartlett), at a cost that does not grow with `dimension`.
    """
    width = min(count, dimension)
    factor = np.tril(rng.standard_normal((size, count, width)), -1)
    diagonal = np.arange(width)
    factor[:, diagonal, diagonal] = np.sqrt(
        rng.chisquare(dimension - diagonal, (size, width))
    )
    return factor


def path_grams(steps: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return displacement Gram matrices of paths whose `steps` are given `lengths`."""
    steps = steps * (lengths / np.linalg.norm(steps, axis=-1))[..., None]
    path = np.zeros((len(steps), steps.shape[1] + 1, steps.shape[2]))
    np.cumsum(steps, axis=1, out=path[:, 1:])
    return path @ np.swapaxes(path, -1, -2)


def shuffled_increments_null(
    snapshots: Array | None = None,
    n_draws: int = 100,
    random_state: int = 0,
    *,
    gram: np.ndarray | None = None,
    ends: Sequence[int] | None = None,
    variance: float = 0.9,
) -> NullDistribution:
    """Return `variance_rank` of paths that take the same directions in random order.

    The increment at each place keeps its length and gets the direction of another one, so lengths
    stay where they are: warm-up and decay of the learning rate lower the rank by themselves. The
    set of directions with all angles between them stays too, and with it the drift. `p_lower` is
    the exact permutation p-value of "the rank is low because of the order of the directions"; where
    it is not small, lengths and drift explain the rank. Increments of length zero have no direction
    and stay where they are. In a growing window, only increments of that window are shuffled, so
    that each window equals a call on that window alone. Arguments and errors as in
    `random_walk_null`.

    Notes
    -----
    Exact for increments of any lengths whose directions are exchangeable, as in a random walk with
    a schedule. A drift that is a larger part of some increments than of others (checkpoints at
    unequal distances) and directions that remember the one before are an order as well.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.ones(50)
    >>> null = shuffled_increments_null(line, n_draws=20)
    >>> print(null.mean, null.p_lower)
    1.0 1.0
    """
    gram = one_gram(snapshots, gram)
    columns = []
    for end in _windows(ends, gram):
        batches = _shuffled_grams(gram[:end, :end], n_draws, random_state)
        columns.append(
            np.concatenate([rank_draws(batch, [end], variance) for batch in batches])
        )
    return _beside(np.concatenate(columns, axis=1), gram, ends, variance)


def early_energy_null(
    snapshots: Array | None = None,
    n_draws: int = 100,
    random_state: int = 0,
    *,
    gram: np.ndarray | None = None,
    early: float = 0.3,
    components: int = 4,
) -> NullDistribution:
    """Return `early_energy` of paths that take the same directions in random order.

    Lengths stay at their place, as in `shuffled_increments_null`. `p_higher` is the permutation
    p-value of "the directions of the run are set early".

    Parameters
    ----------
    snapshots, n_draws, random_state, gram
        As in `random_walk_null`.
    early, components
        As in `early_energy`.

    Returns
    -------
    NullDistribution
        Of `early_energy`.

    Examples
    --------
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=(40, 2000)), axis=0)
    >>> null = early_energy_null(walk, n_draws=50)
    >>> bool(null.interval[0] <= null.observed <= null.interval[1])
    True
    """
    gram = one_gram(snapshots, gram)
    observed = early_energies(gram[None], early, components)[0]
    batches = _shuffled_grams(gram, n_draws, random_state)
    draws = [early_energies(batch, early, components) for batch in batches]
    return NullDistribution(observed, np.concatenate(draws))


def _shuffled_grams(
    gram: np.ndarray, n: int, random_state: int
) -> Iterator[np.ndarray]:
    """Yield displacement Gram matrices (size, T, T) of the path with its directions shuffled."""
    steps = increments_gram(gram)
    count = len(gram)
    squares = np.maximum(np.diagonal(steps), 0.0)
    # Else no direction.
    moves = np.flatnonzero(squares > ROUNDING * np.diagonal(gram).max())
    lengths = np.sqrt(squares[moves])
    products = np.outer(lengths, lengths)
    cosines = steps[np.ix_(moves, moves)] / products
    rng = np.random.default_rng(random_state)
    for size in batches(n, count):
        order = rng.permuted(np.tile(np.arange(len(moves)), (size, 1)), axis=1)
        shuffled = np.zeros((size, count, count))
        shuffled[:, moves[:, None] + 1, moves + 1] = (
            cosines[order[:, :, None], order[:, None, :]] * products
        )
        yield np.cumsum(np.cumsum(shuffled, axis=1), axis=2)


def rank_draws(
    grams: np.ndarray, windows: Sequence[int], variance: float
) -> np.ndarray:
    """Return the variance ranks (n, windows) of Gram matrices (n, T, T)."""
    spectra = [descending_eigenvalues(centred(grams[:, :end, :end])) for end in windows]
    return np.stack(
        [components_holding(variance, values) for values in spectra], axis=1
    )


def one_gram(snapshots: Array | None, gram: np.ndarray | None) -> np.ndarray:
    """Return the Gram matrix of one of the two ways in which a path is given."""
    if (snapshots is None) == (gram is None):
        raise ArgumentError(
            "give either snapshots or gram=, their Gram matrix; not both."
        )
    argument = displacement_gram(snapshots) if gram is None else check_gram(gram)
    if len(argument) < 2:
        raise ArgumentError("a path needs at least 2 snapshots; got 1.")
    return argument


def one_path(
    snapshots: Array | None, gram: np.ndarray | None, dimension: int | None
) -> tuple[np.ndarray, int]:
    """Return the Gram matrix of a path and its number of coordinates."""
    argument = one_gram(snapshots, gram)
    if snapshots is not None:
        dimension = int(np.prod(tuple(snapshots.shape)[1:]))
    return argument, check_whole("dimension", dimension)


def batches(n_draws: int, count: int) -> list[int]:
    """Split the draws of (count, count) matrices into batches of bounded memory."""
    n_draws = check_whole("n_draws", n_draws)
    size = max(1, CHUNK // count**2)
    return [min(size, n_draws - start) for start in range(0, n_draws, size)]
