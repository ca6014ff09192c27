"""Concept tracks: which concept of one step continues which of the step before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ontogeny.arrays import Array, to_numpy
from ontogeny.distances.correlations import optimal_of
from ontogeny.distances.pair import Factors, Pair, pair_of, stacked
from ontogeny.errors import ArgumentError

from .all_pairs import part, prepared, step_labels

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class MatchingLevel:
    """How well the columns of two dictionaries match, and what else would.

    Attributes
    ----------
    score
        Optimal correlation: mean ``|cos|`` of matched columns.
    chance
        Its mean when the features of each column of V are shuffled.
    chance_interval
        The middle 95 % of these shuffled scores.
    p_value
        Share of shuffled scores that reach the score, (b + 1) / (n + 1).
    ceiling
        The score between W and a refit of W with another seed, or NaN without one: what the
        extractor's own freedom leaves.
    """

    score: float
    chance: float
    chance_interval: tuple[float, float]
    p_value: float
    ceiling: float = np.nan


def matching_level(
    W: Array,
    V: Array,
    *,
    reseeded: Array | None = None,
    n_shuffles: int = 100,
    random_state: int = 0,
) -> MatchingLevel:
    """Score the best one-to-one matching of columns, with its chance level and its ceiling.

    Parameters
    ----------
    W, V
        Dictionaries of shape (m, r), NumPy or PyTorch.
    reseeded
        A second fit of W's step with another seed, (m, r).
    n_shuffles
        Number of shuffled copies of V. Each column's entries are permuted over the features: its
        values stay, so that dictionaries of one sign keep their trivial overlap in the null.
    random_state
        Seed of the shuffles.

    Returns
    -------
    MatchingLevel

    Raises
    ------
    ArgumentError
        If a shape is wrong or `n_shuffles` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.random.default_rng(0).standard_normal((60, 5))
    >>> level = matching_level(W, -W[:, ::-1])
    >>> level.score > 0.999 and level.chance < 0.4 and level.p_value < 0.01
    True
    """
    pair, argument = pair_of(W, V)
    if argument.ndim != 2:
        raise ArgumentError(
            f"W and V must have two dimensions; their shape is {argument.shape}."
        )
    score = float(optimal_of(pair)[0])
    null = shuffled_matches(
        pair.first, pair.second, n_shuffles, np.random.default_rng(random_state)
    ).mean(axis=-1)
    low, high = np.quantile(null, [0.025, 0.975])
    ceiling = np.nan
    if reseeded is not None:
        ceiling = float(optimal_of(pair_of(argument, reseeded)[0])[0])
    return MatchingLevel(
        score=score,
        chance=float(null.mean()),
        chance_interval=(float(low), float(high)),
        p_value=float((np.sum(null >= score) + 1) / (n_shuffles + 1)),
        ceiling=ceiling,
    )


def shuffled_matches(
    first: Factors, second: Factors, n_shuffles: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the matched ``|cos|`` of one W with shuffled copies of one V, (n_shuffles, r)."""
    if n_shuffles < 1:
        raise ArgumentError(f"n_shuffles must be at least 1; got {n_shuffles}.")
    W = to_numpy(first.stack)
    V = to_numpy(second.stack)
    if len(W) != 1 or len(V) != 1:
        raise ArgumentError("shuffled matches are those of a single pair.")
    here = prepared(Factors(W, first.floor), svd=False)
    copies = (
        Factors(rng.permuted(V, axis=-2), second.floor) for _ in range(n_shuffles)
    )
    return np.concatenate([Pair(here, copy).matched for copy in copies])


def tracks(
    stack: Array,
    *,
    steps: Sequence[int] | np.ndarray | None = None,
    threshold: float | None = None,
    level: float = 0.01,
    n_shuffles: int = 20,
    random_state: int = 0,
) -> xr.Dataset:
    """Follow concepts from step to step.

    Neighbouring steps are matched one-to-one by ``|cos|``. A match above the threshold continues
    its track; a concept without one dies, and a successor without one is born. Where a newborn
    concept resembles, above the threshold, one that lives on in another, that one has split; where
    a dying concept resembles a living successor, it has merged.

    Parameters
    ----------
    stack
        Dictionaries of all steps, (T, m, r), NumPy or PyTorch, T at least 2.
    steps
        Labels of the steps; 0 to T - 1 by default.
    threshold
        Smallest ``|cos|`` of a continuation, for every transition; by default found for each from
        its chance level.
    level
        The default threshold is exceeded by this share of the matches with a shuffled successor.
    n_shuffles, random_state
        Number and seed of the shuffles (see `matching_level`).

    Returns
    -------
    xarray.Dataset
        ``track(step, concept)``: number of the track a concept belongs to, counted by birth;
        ``cosine``: ``|cos|`` with its predecessor (NaN where a track begins); ``sign``: -1 where
        the column is flipped against its track's first; ``start``: ``"first"``, ``"continued"``,
        ``"birth"`` or ``"split"``; ``end``: ``"last"``, ``"continued"``, ``"death"`` or
        ``"merge"``; ``parent``: track split from, else -1; ``heir``: track merged into, else -1;
        ``threshold(step)``: towards the step before (NaN at the first).

    Raises
    ------
    ArgumentError
        If the stack has no two steps, or a level or threshold is outside of 0 to 1.

    Notes
    -----
    The threshold guards against chance only. In a dictionary whose own columns resemble one
    another (see ``correlation("internal", W)``) a birth beside a similar concept reads as a split.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.random.default_rng(0).standard_normal((60, 4))
    >>> life = tracks(np.stack([W, -W[:, [2, 0, 1, 3]]]))
    >>> life["track"].values[1].tolist(), life["sign"].values[1].tolist()
    ([2, 0, 1, 3], [-1, -1, -1, -1])
    """
    factors, argument = stacked("stack", stack)
    if argument.ndim != 3 or len(argument) < 2:
        raise ArgumentError(
            f"stack must have shape (T, m, r) with T at least 2; got {tuple(argument.shape)}."
        )
    for name, value in (("threshold", threshold), ("level", level)):
        if value is not None and not 0 <= value <= 1:
            raise ArgumentError(f"{name} must be between 0 and 1; got {value}.")
    labels = step_labels(steps, len(argument))
    rng = np.random.default_rng(random_state)
    prepared(factors, svd=False)
    record = _Record(len(argument), int(argument.shape[-1]))
    for t in range(1, len(argument)):
        pair = Pair(part(factors, slice(t - 1, t)), part(factors, slice(t, t + 1)))
        limit = (
            _chance(pair, n_shuffles, level, rng) if threshold is None else threshold
        )
        record.extend(t, pair, limit)
    return record.dataset(labels)


def _chance(
    pair: Pair, n_shuffles: int, level: float, rng: np.random.Generator
) -> float:
    null = shuffled_matches(pair.first, pair.second, n_shuffles, rng)
    return float(np.quantile(null, 1.0 - level))


class _Record:
    """The tables of `tracks`, filled from transition to transition."""

    def __init__(self, count: int, r: int) -> None:
        shape = (count, r)
        self.track = np.full(shape, -1)
        self.track[0] = np.arange(r)
        self.sign = np.ones(shape, dtype=int)
        self.cosine = np.full(shape, np.nan)
        self.parent = np.full(shape, -1)
        self.heir = np.full(shape, -1)
        self.start = np.full(shape, "birth", dtype="<U9")
        self.start[0] = "first"
        self.end = np.full(shape, "death", dtype="<U9")
        self.end[-1] = "last"
        self.threshold = np.full(count, np.nan)

    def extend(self, t: int, pair: Pair, limit: float) -> None:
        cosines = to_numpy(pair.cosines)[0]
        inner = to_numpy(pair.inner)[0]
        before = np.arange(len(cosines))
        after = pair.matches[0]
        is_alike = cosines[before, after] > limit
        before = before[is_alike]
        after = after[is_alike]
        self.threshold[t] = limit
        self.cosine[t, after] = cosines[before, after]
        self.track[t, after] = self.track[t - 1, before]
        self.sign[t, after] = (
            np.where(inner[before, after] < 0, -1, 1) * self.sign[t - 1, before]
        )
        self.start[t, after] = "continued"
        self.end[t - 1, before] = "continued"
        self._new(
            t, np.setdiff1d(np.arange(len(cosines)), after), before, cosines, limit
        )
        self._ended(
            t, np.setdiff1d(np.arange(len(cosines)), before), after, cosines, limit
        )

    def _new(
        self,
        t: int,
        born: np.ndarray,
        alive: np.ndarray,
        cosines: np.ndarray,
        limit: float,
    ) -> None:
        self.track[t, born] = self.track.max() + 1 + np.arange(len(born))
        for child in born if len(alive) else ():
            parent = alive[np.argmax(cosines[alive, child])]
            if cosines[parent, child] > limit:
                self.start[t, child] = "split"
                self.parent[t, child] = self.track[t - 1, parent]

    def _ended(
        self,
        t: int,
        dying: np.ndarray,
        alive: np.ndarray,
        cosines: np.ndarray,
        limit: float,
    ) -> None:
        for column in dying if len(alive) else ():
            heir = alive[np.argmax(cosines[column, alive])]
            if cosines[column, heir] > limit:
                self.end[t - 1, column] = "merge"
                self.heir[t - 1, column] = self.track[t, heir]

    def dataset(self, steps: np.ndarray) -> xr.Dataset:
        import xarray as xr

        tables = ("track", "cosine", "sign", "start", "end", "parent", "heir")
        variables = {
            name: (("step", "concept"), getattr(self, name)) for name in tables
        }
        return xr.Dataset(
            variables | {"threshold": ("step", self.threshold)},
            coords={"step": steps, "concept": np.arange(self.track.shape[1])},
        )
