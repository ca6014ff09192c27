"""The rows that codes are of: their tokens, their neighbours, the units that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ....arrays import Array, numpy_matrix
from ....errors import ArgumentError, check_type
from ....inputs import Inputs, stratified_split
from ....inputs.sampling import TokenSample
from ....units import Units

BEYOND = -1  # the id of what lies beyond a text


@dataclass(frozen=True, eq=False)
class Rows:
    """The sampled tokens of a set of texts."""

    inputs: Inputs
    sample: TokenSample

    def __post_init__(self) -> None:
        check_type("inputs", self.inputs, Inputs)
        check_type("sample", self.sample, TokenSample)
        text = self.sample.text
        position = self.sample.position
        if not len(text) or text.min() < 0 or text.max() >= len(self.inputs):
            raise ArgumentError(
                f"sample must name texts 0 to {len(self.inputs) - 1} of inputs, at least one."
            )
        if (position >= self.inputs.lengths[text]).any() or position.min() < -1:
            raise ArgumentError(
                "sample names a position beyond its text: it is of other inputs than these."
            )

    def __len__(self) -> int:
        return len(self.sample)

    @cached_property
    def units(self) -> Units:
        """The unit of noise of each row: texts that repeat or share a document are one."""
        return Units(self.inputs.groups[self.sample.text])

    @cached_property
    def has_tokens(self) -> bool:
        """Whether the rows are of tokens; those of means of texts are not."""
        return bool((self.sample.position >= 0).all())

    def ids(self, offset: int = 0) -> np.ndarray:
        """Return (n,) the id of each row's token, or of the one `offset` places after it.

        -1 beyond the text, and for a row that is the mean of a text.
        """
        return self.ids_at(self.sample.text, self.sample.position, np.array([offset]))[
            :, 0
        ]

    def ids_at(
        self, text: np.ndarray, position: np.ndarray, offsets: np.ndarray
    ) -> np.ndarray:
        """Return (n, k) the ids at `offsets` (k,) from positions (n,) of texts (n,)."""
        at = position[:, None] + offsets
        there = (
            (position[:, None] >= 0)
            & (at >= 0)
            & (at < self.inputs.lengths[text][:, None])
        )
        column = self._first[text][:, None] + np.where(there, at, 0)
        return np.where(there, self.inputs.ids[text[:, None], column], BEYOND)

    def rows_at(
        self, text: np.ndarray, position: np.ndarray, offsets: np.ndarray
    ) -> np.ndarray:
        """Return (n, k) which row is of that token, as in `ids_at`; -1 where none is."""
        at = position[:, None] + offsets
        inside = (at >= 0) & (at < self._row_of.shape[1])
        return np.where(
            inside, self._row_of[text[:, None], np.where(inside, at, 0)], -1
        )

    @cached_property
    def _first(self) -> np.ndarray:
        return np.asarray(self.inputs.mask.argmax(axis=1))

    @cached_property
    def _row_of(self) -> np.ndarray:
        numbers = np.full(self.inputs.ids.shape, -1)
        rows = np.flatnonzero(self.sample.position >= 0)
        numbers[self.sample.text[rows], self.sample.position[rows]] = rows
        return numbers


def described(
    codes: Array, inputs: Inputs, sample: TokenSample
) -> tuple[np.ndarray, Rows]:
    """Return the codes (n, r) turned to their strong side, as float64, and their rows.

    Raises
    ------
    ArgumentError
        If there is not one row of codes for every row of the sample.
    NonFiniteError
        If a code is NaN or infinite.
    """
    rows = Rows(inputs, sample)
    values = numpy_matrix("codes", codes)
    if len(values) != len(rows):
        raise ArgumentError(
            f"codes must have one row for each of {len(rows)} rows of sample; got {len(values)}."
        )
    return turned(values), rows


def turned(values: np.ndarray) -> np.ndarray:
    """Return codes (n, r) turned to the side where they are strong, as float64."""
    return np.asarray(values, dtype=np.float64) * orientation(values)


def orientation(codes: Array) -> np.ndarray:
    """Return for each concept 1, or -1 where it is stronger on its negative side.

    The side is that of the sum of cubes, which for centred codes is their skewness: a sparse
    feature is mostly absent and sometimes large. Codes that are not negative are not turned.

    Parameters
    ----------
    codes
        (n, r).

    Returns
    -------
    numpy.ndarray
        (r,) of 1 and -1.

    Examples
    --------
    >>> orientation(np.array([[0.1, 1.0], [0.1, 2.0], [-0.9, 3.0]]))
    array([-1.,  1.])
    """
    values = numpy_matrix("codes", codes)
    largest = np.abs(values).max(axis=0)
    cubes = (values / np.where(largest > 0, largest, 1.0)) ** 3
    return np.where(cubes.sum(axis=0) < 0, -1.0, 1.0)


def squared(codes: np.ndarray) -> np.ndarray:
    """Return the squares of codes where they are positive, 0 elsewhere."""
    return np.maximum(codes, 0.0) ** 2


@dataclass(frozen=True, eq=False)
class Kinds:
    """Which of several kinds, such as token ids, each row is of."""

    values: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> Kinds:
        """Return the kinds of labels (n,), in their order."""
        return cls(*np.unique(labels, return_inverse=True))

    def counts(self, among: np.ndarray | None = None) -> np.ndarray:
        """Return (kinds,) rows of every kind, `among` some rows."""
        place = self.place if among is None else self.place[among]
        return np.bincount(place, minlength=len(self.values))

    def sums(self, values: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Return (kinds, r) sums of values (n, r) over the rows of every kind."""
        rows = np.arange(len(values)) if among is None else among
        shape = (len(self.values), len(values))
        return (
            sparse.csr_array((np.ones(len(rows)), (self.place[rows], rows)), shape)
            @ values
        )


CHOSEN = 3  # tokens that a concept may concentrate on


def check_units(units: Units) -> None:
    """Check that rows come from two units of texts at least."""
    if units.count < 2:
        raise ArgumentError(
            "inputs must hold two units of texts at least (texts that repeat or share a document "
            "are one): what is found in one is confirmed in the other; the rows come from 1."
        )


@dataclass(frozen=True, eq=False)
class Confirmation:
    """The tokens chosen on one half of the texts, on the other half.

    Attributes
    ----------
    strength
        (n_half, r) squared codes.
    carried
        (r,) squared code on the chosen tokens.
    occurrences
        (r,) rows that are of a chosen token.
    """

    strength: np.ndarray
    carried: np.ndarray
    occurrences: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """(r,) share of the squared code on the chosen tokens; 0 where nothing fires."""
        total = self.strength.sum(axis=0)
        shares = np.where(
            total > 0, self.carried / np.where(total > 0, total, 1.0), 0.0
        )
        # Two orders of adding up round apart.
        return np.asarray(np.minimum(shares, 1.0).round(12))


def confirmations(
    values: np.ndarray, rows: Rows, random_state: int
) -> list[Confirmation]:
    """Return what each half of the texts confirms of the tokens chosen on the other one."""
    check_units(rows.units)
    halves = stratified_split(
        np.zeros(len(rows), dtype=int), 0.5, random_state, groups=rows.units.of_row
    )
    kinds = Kinds.of(rows.ids())
    strength = squared(values)
    sums = [kinds.sums(strength, half) for half in halves]
    pairs = []
    for first, second in ((0, 1), (1, 0)):
        strongest = np.argsort(-sums[first], axis=0, kind="stable")[:CHOSEN]
        fires = np.take_along_axis(sums[first], strongest, axis=0) > 0
        carried = np.where(
            fires, np.take_along_axis(sums[second], strongest, axis=0), 0.0
        )
        there = np.where(fires, kinds.counts(halves[second])[strongest], 0)
        pairs.append(
            Confirmation(
                strength[halves[second]], carried.sum(axis=0), there.sum(axis=0)
            )
        )
    return pairs


def concentration(
    codes: Array, inputs: Inputs, sample: TokenSample, random_state: int = 0
) -> np.ndarray:
    """Return the share of each concept's squared code that three tokens carry.

    The three tokens that carry most are chosen on one half of the units of texts, and their share
    is measured on the other half; the mean of both directions. A concept that fires on three rows
    in all therefore gets a high share only if they are of the same tokens in both halves. Only
    the positive side of a code counts, after `orientation`.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    random_state
        Seed of the halves.

    Returns
    -------
    numpy.ndarray
        (r,) 0 to 1; 0 for a concept that fires in one half alone or nowhere; NaN for rows that
        are means of texts, which have no token.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, or all rows come from one unit of texts.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[7, 8, 9], [9, 7, 8], [6, 5, 7]])
    >>> codes = (inputs.ids == 7).reshape(-1, 1)
    >>> concentration(codes, inputs, inputs.sample())
    array([1.])
    """
    values, rows = described(codes, inputs, sample)
    if not rows.has_tokens:
        return np.full(values.shape[1], np.nan)
    halves = confirmations(values, rows, random_state)
    return np.asarray(np.mean([half.share for half in halves], axis=0))
